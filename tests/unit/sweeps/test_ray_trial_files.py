"""How a Ray trial ended: its record, rows, state and error."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.unit.sweeps.ray_files import (
    RayExperiment,
    ended,
    known,
    record_text,
    row,
    stamped,
)
from tune_guard.record import FALLBACK_FOLDER, FALLBACK_SUFFIX, Outcome, StopRecord
from tune_guard.sweeps import INTERRUPTED, UNKNOWN, load_sweep
from tune_guard.verdict import Blame

if TYPE_CHECKING:
    from pathlib import Path


def test_a_terminated_trial_completed(experiment: RayExperiment) -> None:
    """There is no reason to give."""
    trial = ended(experiment, row(1, loss=1.0))
    assert (trial.outcome, trial.reason, trial.state) == (
        Outcome.COMPLETED,
        "",
        "TERMINATED",
    )


@pytest.mark.parametrize("status", ["RUNNING", "PENDING", "PAUSED"])
def test_a_trial_without_an_end_was_interrupted(
    experiment: RayExperiment, status: str
) -> None:
    """Or it still runs: from files the two look alike."""
    trial = ended(experiment, row(1, loss=1.0), status=status)
    assert (trial.outcome, trial.reason) == (Outcome.INTERRUPTED, INTERRUPTED)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "Traceback ...\n  raise\nFloatingPointError: boom\n",
            "error:FloatingPointError",
        ),
        (
            "x\nray.exceptions.ActorDiedError: The actor\nClass: x\n",
            "error:ActorDiedError",
        ),
        ("something else\n", "error"),
        ("", "error"),
    ],
)
def test_an_error_is_named_by_its_kind(
    experiment: RayExperiment, text: str, reason: str
) -> None:
    """The last exception of error.txt is what ended the trial."""
    experiment.trial("a_t0", [row(1, loss=1.0)], error=text)
    experiment.state(known(status="ERROR"))
    trial = load_sweep(experiment.path).trials[0]
    assert (trial.outcome, trial.reason) == (Outcome.ERROR, reason)


def test_an_error_that_a_retry_got_over_is_none(experiment: RayExperiment) -> None:
    """error.txt stays when the next attempt completes."""
    experiment.trial("a_t0", [row(1, loss=1.0)], error="ValueError: x")
    experiment.state(known())
    assert load_sweep(experiment.path).trials[0].reason == ""


def test_a_trial_that_met_the_stop_criterion_is_healthy(
    experiment: RayExperiment,
) -> None:
    """``stop={"training_iteration": 2}`` is also the sweep's budget."""
    experiment.trial("a_t0", [row(1, loss=1.0), row(2, loss=1.0) | {"done": True}])
    experiment.state(known(stopping_criterion={"training_iteration": 2}))
    sweep = load_sweep(experiment.path)
    assert sweep.trials[0].outcome is Outcome.CRITERION
    assert sweep.budget_steps == 2


def test_a_trial_cut_early_by_something_unrecorded_is_unknown(
    experiment: RayExperiment,
) -> None:
    """Its last row says done and another trial ran longer; Ray says TERMINATED."""
    experiment.trial("a_t0", [row(1, loss=1.0) | {"done": True}])
    experiment.trial("a_t1", [row(1, loss=1.0), row(2, loss=1.0) | {"done": True}])
    experiment.state(known("t0"), known("t1"))
    reasons = {t.id: t.reason for t in load_sweep(experiment.path).trials}
    assert reasons == {"t0": UNKNOWN, "t1": ""}


def test_the_record_file_says_why(experiment: RayExperiment) -> None:
    """It is there before the state knows that the trial ended."""
    text = record_text(
        reason="slow_step",
        outcome=Outcome.GUARD,
        step=4,
        blame=Blame.INFRASTRUCTURE,
        objective="loss",
        mode="min",
    )
    experiment.trial("a_t0", [stamped(4, "slow_step", loss=1.0)], tune_guard=text)
    experiment.state(known(status="RUNNING"))
    sweep = load_sweep(experiment.path)
    trial = sweep.trials[0]
    assert (trial.outcome, trial.reason, trial.step, trial.blame) == (
        Outcome.GUARD,
        "slow_step",
        4,
        Blame.INFRASTRUCTURE,
    )
    assert (sweep.metric, sweep.mode) == ("loss", "min")
    assert sweep.records["t0"].reason == "slow_step"


def test_without_the_file_the_last_row_says_why(experiment: RayExperiment) -> None:
    """The guard stamps every row; the cut is in the last one."""
    trial = ended(experiment, stamped(1, loss=1.0), stamped(2, "plateau", loss=1.0))
    assert (trial.outcome, trial.reason, trial.step) == (Outcome.GUARD, "plateau", 2)


def test_without_rows_the_state_says_why(experiment: RayExperiment) -> None:
    """An error is recorded in the trial's last result."""
    stored = StopRecord(reason="error:OSError", outcome=Outcome.ERROR).metadata()
    trial = ended(experiment, status="ERROR", last_result=row(1, loss=1.0) | stored)
    assert trial.reason == "error:OSError"


def test_stamps_of_a_running_trial_are_no_end(experiment: RayExperiment) -> None:
    """A healthy stamp on the last row of a killed sweep is no completion."""
    trial = ended(experiment, stamped(1, loss=1.0), status="RUNNING")
    assert trial.outcome is Outcome.INTERRUPTED


def test_a_cut_that_was_run_again_is_out_of_date(experiment: RayExperiment) -> None:
    """After a restore without the callback the old record file is still there."""
    text = record_text(reason="plateau", outcome=Outcome.GUARD, step=2)
    experiment.trial(
        "a_t0", [stamped(1, loss=1.0), stamped(3, loss=1.0)], tune_guard=text
    )
    experiment.state(known())
    sweep = load_sweep(experiment.path)
    assert sweep.trials[0].reason == ""
    assert "run again" in sweep.problems[0].what


JUST_CUT = {"reason": "plateau", "outcome": Outcome.GUARD, "step": 4}
AT_8_S = "2023-11-14T22:13:28+00:00"  # when step 4 ended


@pytest.mark.parametrize("behind", ["rows", "state", "both", "no rows"])
def test_a_record_is_newer_than_rows_and_state(
    behind: str, experiment: RayExperiment
) -> None:
    """While a sweep runs both come later, of a step at which nothing was cut yet."""
    rows = [stamped(step, loss=1.0) for step in (1, 2)]
    whole = [*rows, stamped(3, loss=1.0), stamped(4, "plateau", loss=1.0)]
    written = {"state": whole, "no rows": None}.get(behind, rows)
    stored = StopRecord(**JUST_CUT, time=AT_8_S).metadata()
    text = json.dumps({**stored, "training_iteration": 4})
    experiment.trial("a_t0", written, tune_guard=text)
    last = {} if behind == "rows" else {"last_result": stamped(1, loss=1.0)}
    experiment.state(known(status="RUNNING", **last))
    sweep = load_sweep(experiment.path)
    trial = sweep.trials[0]
    assert (trial.reason, trial.steps_run) == ("plateau", 4)
    assert not any("run again" in problem.what for problem in sweep.problems)
    told = any("rows not written yet" in problem.what for problem in sweep.problems)
    assert told is (behind != "state")


def test_a_cut_that_was_run_again_from_earlier_is_out_of_date(
    experiment: RayExperiment,
) -> None:
    """The time of its last row tells: the step alone is below that of the cut."""
    stored = StopRecord(**JUST_CUT, time=AT_8_S).metadata()
    text = json.dumps({**stored, "training_iteration": 4})
    again = stamped(2, loss=1.0) | {"timestamp": 1_700_000_100}
    experiment.trial("a_t0", [stamped(1, loss=1.0), again], tune_guard=text)
    experiment.state(known())
    sweep = load_sweep(experiment.path)
    assert (sweep.trials[0].reason, sweep.trials[0].steps_run) == ("", 2)
    assert "run again" in sweep.problems[0].what


def test_a_state_that_is_newer_than_the_rows_counts(experiment: RayExperiment) -> None:
    """How far a trial ran, and the time that it took: two seconds a step."""
    trial = ended(experiment, row(1, loss=1.0), last_result=row(3, loss=0.5))
    assert (trial.steps_run, trial.time_s) == (3, 6.0)


def test_a_damaged_record_file_costs_itself_only(experiment: RayExperiment) -> None:
    """The row says the same."""
    experiment.trial("a_t0", [stamped(2, "plateau", loss=1.0)], tune_guard='{"tune')
    sweep = load_sweep(experiment.path)
    assert sweep.trials[0].reason == "plateau"
    assert sweep.problems[0].file.endswith("tune_guard.json")


def test_a_file_that_cannot_be_read_costs_itself_only(
    experiment: RayExperiment,
) -> None:
    """A link to nothing, say: the other trial is read."""
    folder = experiment.trial("a_t0")
    for name in ("result.json", "params.json"):
        (folder / name).symlink_to(folder / "gone")
    experiment.trial("b_t1", [row(1, loss=1.0)])
    sweep = load_sweep(experiment.path)
    assert [trial.steps_run for trial in sweep.trials] == [0, 1]
    assert "cannot be read" in sweep.problems[0].what


def test_a_record_that_the_storage_refused_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Below the working directory, by name and id, also when nothing else is left."""
    experiment = RayExperiment(tmp_path / "exp")
    experiment.trial("a_t0", [row(1, loss=0.5)])
    experiment.trial("a_t1", [{**row(1, loss=0.5), "trial_id": "t1"}])
    record = StopRecord(reason="stalled", outcome=Outcome.ERROR, step=1, trial="t0")
    lost = {**record.metadata(), "trial_id": "t2", "path": f"{tmp_path}/exp/a_t2"}
    foreign = {**lost, "trial_id": "t3", "path": "/another/exp/a_t3"}
    lines = [{**record.metadata(), "trial_id": "t0"}, lost, foreign, {"trial_id": 9}]
    kept = tmp_path / "work" / ".tune_guard" / "exp.tune_guard.jsonl"
    kept.parent.mkdir(parents=True)
    kept.write_text("".join(json.dumps(line) + "\n" for line in lines) + "torn")
    monkeypatch.chdir(tmp_path / "work")
    trials = load_sweep(str(experiment.path)).trials
    found = {trial.id: trial.reason for trial in trials}
    assert (found["t0"], found["t2"]) == ("stalled", "stalled")
    assert found["t1"] != "stalled"
    assert "t3" not in found


def test_a_trial_whose_files_are_lost_does_not_end_the_reading(
    experiment: RayExperiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk: the state knows it, and its record was kept aside."""
    monkeypatch.setenv("HOME", str(tmp_path))
    aside = tmp_path / FALLBACK_FOLDER / f"experiment{FALLBACK_SUFFIX}"
    aside.parent.mkdir()
    record = StopRecord(outcome=Outcome.GUARD, reason="nan").metadata()
    entry = {**record, "trial_id": "t0", "training_iteration": 7}
    aside.write_text(json.dumps(entry), encoding="utf-8")
    experiment.trial("a_t1", [row(1, loss=1.0)])
    experiment.state(known(), known("t1"))
    sweep = load_sweep(experiment.path)
    assert [(trial.reason, trial.steps_run) for trial in sweep.trials] == [
        ("nan", 7),
        ("", 1),
    ]
    assert [(problem.file, problem.what) for problem in sweep.problems] == [
        (
            str(experiment.path),
            "rows not written yet: how far it ran is known by its record",
        )
    ]
