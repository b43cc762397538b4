"""The rows of a Ray trial, with everything that processes do to files."""

from __future__ import annotations

import json
import math
from array import array
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.sweeps.ray_files import RayExperiment, row
from tune_guard.monitor import Monitor
from tune_guard.policy import Policy
from tune_guard.rules import ThermalThrottle
from tune_guard.sweeps import load_sweep
from tune_guard.sweeps.replay import replay

if TYPE_CHECKING:
    from tune_guard.sweeps import Curve, Sweep


def loaded(experiment: RayExperiment, *rows: dict[str, Any] | str) -> Sweep:
    """Write one trial of these rows and load the experiment."""
    experiment.trial("trial_t0", rows)
    return load_sweep(experiment.path)


def curve(sweep: Sweep, metric: str = "loss") -> Curve:
    """Return a curve of the only trial."""
    return sweep.curves.of(sweep.trials[0].id)[metric]


def said(sweep: Sweep) -> list[tuple[int | None, str]]:
    """Return line and text of all problems."""
    return [(problem.line, problem.what) for problem in sweep.problems]


def test_metrics_are_read_and_bookkeeping_is_not(experiment: RayExperiment) -> None:
    """Nested metrics become ``a/b``; clocks, hosts and configs are no metrics."""
    sweep = loaded(experiment, row(1, loss=0.5, eval={"acc": 0.1}, note="x", flag=True))
    assert sweep.curves.metrics() == ["eval/acc", "loss"]
    assert sweep.problems == []


def test_non_finite_tokens_are_numbers(experiment: RayExperiment) -> None:
    """Bare NaN and Infinity, which are no JSON, are read as what they are."""
    sweep = loaded(
        experiment, *(row(i, loss=v) for i, v in enumerate([math.nan, math.inf], 1))
    )
    assert math.isnan(curve(sweep).values[0])
    assert curve(sweep).values[1] == math.inf


def test_the_text_null_of_a_numeric_metric_is_nan(experiment: RayExperiment) -> None:
    """Ray writes the NaN of a NumPy scalar as the text "null"."""
    rows = [row(1, loss=0.5), row(2, loss="null"), row(3, loss="null")]
    sweep = loaded(experiment, *rows)
    assert list(map(math.isnan, curve(sweep).values)) == [False, True, True]
    problem = sweep.problems[0]
    assert (problem.line, problem.lines, problem.repaired) == (2, 2, True)


def test_null_before_the_first_number_is_nan_too(experiment: RayExperiment) -> None:
    """A metric that starts as NaN is known to be one by its later numbers."""
    sweep = loaded(experiment, row(1, loss="null"), row(2, loss=0.5))
    assert math.isnan(curve(sweep).values[0])


def test_null_among_other_texts_is_a_word(experiment: RayExperiment) -> None:
    """A column of text that also says "null" is no metric."""
    sweep = loaded(
        experiment, row(1, loss=1.0, kind="null"), row(2, loss=1.0, kind="a")
    )
    assert sweep.curves.metrics() == ["loss"]
    assert sweep.problems == []


def test_the_text_of_a_tensor_is_its_number(experiment: RayExperiment) -> None:
    """Ray writes a tensor as its text, here on a GPU."""
    sweep = loaded(experiment, row(1, loss="tensor(1.5000, device='cuda:0')"))
    assert list(curve(sweep).values) == [1.5]
    assert sweep.problems[0].repaired


@pytest.mark.parametrize("hot", ["0x0000000000000060", ["0x60"], "96"])
def test_throttle_reasons_cut_in_replay_where_they_cut_live(
    experiment: RayExperiment, hot: Any
) -> None:
    """nvidia-smi prints them in hexadecimal; other metrics are never written so."""
    rows = [row(i, loss=1.0, gpu_reasons=hot, hash="0x60") for i in (1, 2, 3, 4)]
    rule = ThermalThrottle(consecutive=2, holds=())
    policy = Policy("loss", "min", rules=(rule,))
    monitor = Monitor(policy)
    verdicts = [monitor.observe(i, one) for i, one in enumerate(rows, start=1)]
    assert [verdict.stop for verdict in verdicts[:2]] == [False, True]
    sweep = loaded(experiment, *rows)
    assert [found.step for found in replay(sweep, policy)] == [2]
    assert sweep.curves.metrics() == ["gpu_reasons", "loss"]


def test_a_metric_of_none_is_missing_and_not_nan(experiment: RayExperiment) -> None:
    """JSON's null is a reading that was not made."""
    sweep = loaded(experiment, row(1, loss=None), row(2, loss=0.5))
    assert curve(sweep).steps == array("q", [2])


def test_an_integer_beyond_floats_is_infinite(experiment: RayExperiment) -> None:
    """A huge integer costs the reading its value, not the sweep its report."""
    sweep = loaded(experiment, row(1, loss=10**400))
    assert list(curve(sweep).values) == [math.inf]


def test_a_torn_last_line_is_left_out_and_named(experiment: RayExperiment) -> None:
    """A killed process leaves half a line; the rows before it hold."""
    sweep = loaded(experiment, row(1, loss=0.5), json.dumps(row(2, loss=0.4))[:40])
    assert list(curve(sweep).values) == [0.5]
    assert said(sweep) == [(2, "torn last line left out")]


def test_a_row_appended_to_a_torn_line_is_found(experiment: RayExperiment) -> None:
    """A restarted process appends to the torn line; its row is whole."""
    torn = json.dumps(row(2, loss=0.4))[:40]
    sweep = loaded(experiment, row(1, loss=0.5), torn + json.dumps(row(2, loss=0.3)))
    assert list(curve(sweep).values) == [0.5, 0.3]
    assert said(sweep) == [(2, "torn start of line left out")]


def test_a_nested_object_at_the_end_of_a_torn_line_is_no_row(
    experiment: RayExperiment,
) -> None:
    """What a tear leaves whole inside a row is not taken for one."""
    torn = '{"loss": 0.4, "eval": {"loss": 9.0}'
    sweep = loaded(experiment, row(1, loss=0.5), torn)
    assert list(curve(sweep).values) == [0.5]


@pytest.mark.parametrize("line", ["[1, 2]\n", "3\n", '"text"\n'])
def test_json_that_is_no_row_is_named(experiment: RayExperiment, line: str) -> None:
    """Valid JSON in the wrong place is left out."""
    sweep = loaded(experiment, line, row(1, loss=0.5))
    assert said(sweep) == [(1, "left out: valid JSON, but no row")]


def test_blank_lines_are_nothing(experiment: RayExperiment) -> None:
    """An empty line is neither a row nor a problem."""
    assert loaded(experiment, row(1, loss=0.5), "\n", row(2, loss=0.4)).problems == []


def test_after_a_retry_from_a_checkpoint_the_later_rows_hold(
    experiment: RayExperiment,
) -> None:
    """Rows 4 and 5 were run twice: the file has them twice, the curve once."""
    first = [row(i, loss=float(i)) for i in (1, 2, 3, 4, 5)]
    second = [
        row(i, loss=10.0 * i)
        | {"iterations_since_restore": i - 3, "time_since_restore": i - 3}
        for i in (4, 5, 6)
    ]
    sweep = loaded(experiment, *first, *second)
    assert list(curve(sweep).values) == [1.0, 2.0, 3.0, 40.0, 50.0, 60.0]
    assert said(sweep) == [
        (4, "2 rows were run again after a retry: the later ones hold")
    ]


def test_after_a_retry_from_the_start_the_lost_attempt_is_gone(
    experiment: RayExperiment,
) -> None:
    """Without a checkpoint, steps that the second attempt never reached are lost."""
    rows = [*(row(i, loss=1.0) for i in (1, 2, 3)), *(row(i, loss=2.0) for i in (1, 2))]
    sweep = loaded(experiment, *rows)
    assert list(curve(sweep).steps) == [1, 2]
    assert sweep.trials[0].steps_run == 2


def test_the_time_of_a_lost_attempt_was_spent_all_the_same(
    experiment: RayExperiment,
) -> None:
    """Six seconds in the first attempt and four in the second make ten."""
    rows = [*(row(i, loss=1.0) for i in (1, 2, 3)), *(row(i, loss=2.0) for i in (1, 2))]
    assert loaded(experiment, *rows).trials[0].time_s == 10.0


def test_rows_without_an_iteration_are_counted(experiment: RayExperiment) -> None:
    """A trainable may report no ``training_iteration``: rows have an order still."""
    sweep = loaded(experiment, {"loss": 0.5}, {"loss": 0.4}, {"loss": 0.3})
    assert list(curve(sweep).steps) == [1, 2, 3]


def test_metrics_of_every_row_share_their_steps(experiment: RayExperiment) -> None:
    """Ten metrics of a trial hold one array of steps, not ten."""
    sweep = loaded(experiment, *(row(i, loss=1.0, acc=2.0) for i in (1, 2, 3)))
    assert curve(sweep, "loss").steps is curve(sweep, "acc").steps


def test_a_sparse_metric_has_its_own_steps(experiment: RayExperiment) -> None:
    """A metric that comes every other row is read where it was reported."""
    rows = [row(1, loss=1.0), row(2, loss=0.9, acc=0.1), row(3, loss=0.8)]
    sweep = loaded(experiment, *rows)
    assert list(curve(sweep, "acc").steps) == [2]
    assert list(curve(sweep, "acc").times_s or []) == [4.0]


# ----------------------------------------------------------------- progress.csv


HEADER = "loss,training_iteration,trial_id,done\n"


def test_the_csv_is_read_where_result_json_is_missing(
    experiment: RayExperiment,
) -> None:
    """Cells are read as what they are, and what the file cannot hold is said."""
    experiment.trial(
        "a", progress=HEADER + "0.5,1,t0,False\nnan,2,t0,False\n,3,t0,True\n"
    )
    sweep = load_sweep(experiment.path)
    assert curve(sweep).steps == array("q", [1, 2])
    assert math.isnan(curve(sweep).values[1])
    assert "later metrics are not in this file" in sweep.problems[0].what
    assert sweep.trials[0].id == "t0"


def test_result_json_goes_first(experiment: RayExperiment) -> None:
    """The CSV lacks what came after the first row, so it is the second choice."""
    experiment.trial("a", [row(1, loss=0.25)], progress=HEADER + "0.5,1,t0,False\n")
    assert list(curve(load_sweep(experiment.path)).values) == [0.25]


def test_an_empty_result_json_leaves_the_csv(experiment: RayExperiment) -> None:
    """A file without a row says nothing."""
    experiment.trial("a", [], progress=HEADER + "0.5,1,t0,False\n")
    assert list(curve(load_sweep(experiment.path)).values) == [0.5]


def test_a_csv_without_its_header_is_named_and_not_guessed(
    experiment: RayExperiment,
) -> None:
    """The first row of numbers is no header."""
    experiment.trial("a", progress="0.5,1,t0,False\n0.4,2,t0,False\n")
    sweep = load_sweep(experiment.path)
    assert sweep.curves.metrics() == []
    assert said(sweep) == [
        (1, "no header line: the columns are unknown, so nothing is read")
    ]


def test_a_torn_csv_row_is_left_out(experiment: RayExperiment) -> None:
    """A row with too few cells is no row."""
    experiment.trial("a", progress=HEADER + "0.5,1,t0,False\n0.4,2\n")
    sweep = load_sweep(experiment.path)
    assert list(curve(sweep).values) == [0.5]
    assert said(sweep)[1] == (3, "left out: 2 cells under 4 columns")


def test_a_header_that_comes_again_is_no_row(experiment: RayExperiment) -> None:
    """Early versions wrote the header again after a restore."""
    experiment.trial(
        "a", progress=HEADER + "0.5,1,t0,False\n" + HEADER + "0.4,2,t0,False\n"
    )
    assert list(curve(load_sweep(experiment.path)).values) == [0.5, 0.4]


def test_a_literal_in_a_cell_is_nested_metrics(experiment: RayExperiment) -> None:
    """Ray of 2018 wrote nested results as Python literals."""
    cell = "\"{'learner': {'grad_gnorm': 40.0}}\""
    experiment.trial("a", progress=f"info,training_iteration\n{cell},1\n")
    sweep = load_sweep(experiment.path)
    assert list(curve(sweep, "info/learner/grad_gnorm").values) == [40.0]
