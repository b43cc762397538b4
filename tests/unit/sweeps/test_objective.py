"""Which readings rank a trial, and which metric ranks the sweep."""

from __future__ import annotations

import math
from array import array
from typing import Any

import pytest

from tests.unit.sweeps.ray_files import RayExperiment, row, stamped
from tune_guard import ConfigError
from tune_guard.record import Outcome, StopRecord
from tune_guard.sweeps import Curve, Curves, Sweep, Trial, load_sweep
from tune_guard.sweeps.objective import best_trial, recorded, resolve, usable_before

NAN = math.nan


def curve(*values: float) -> Curve:
    """Return a curve over the steps 1, 2, ..."""
    return Curve(array("q", range(1, len(values) + 1)), array("d", values))


def cut(step: int, metric: str = "loss", reason: str = "non_finite") -> StopRecord:
    """Return the record of a trial that the guard cut."""
    return StopRecord(reason=reason, outcome=Outcome.GUARD, step=step, metric=metric)


def sweep_of(finals: dict[str, float] | None = None, **curves: Curve) -> Sweep:
    """Return a sweep with one completed trial a curve of ``loss``."""
    trials = [
        Trial(id=name, outcome=Outcome.COMPLETED, finals=_final(name, finals))
        for name in curves
    ]
    by_trial = {name: {"loss": found} for name, found in curves.items()}
    return Sweep(source="here", engine="ray", trials=trials, curves=Curves(by_trial))


def _final(name: str, finals: dict[str, float] | None) -> dict[str, float]:
    return {"loss": finals[name]} if finals and name in finals else {}


@pytest.mark.parametrize(
    ("record", "loss", "expected"),
    [
        (None, curve(1, NAN), None),
        (cut(2, reason="plateau"), curve(1, NAN), None),
        (cut(3), curve(1, 0.5, NAN), 3),
        (cut(4), curve(1, NAN, NAN, NAN), 2),
        (cut(4), curve(NAN, 1, NAN, NAN), 3),
        (cut(3, metric="grad_norm"), curve(1, 0.5, 0.0), 3),
        (cut(2), curve(1, 0.0, 0.0, 0.0), 2),
        (cut(-1), curve(1, 2), None),
    ],
    ids=[
        "no record",
        "another reason",
        "one reading",
        "a streak",
        "an earlier gap that recovered",
        "the metric that broke has no curve",
        "a loss of exactly zero",
        "no step",
    ],
)
def test_readings_count_up_to_the_streak_that_stopped_the_trial(
    record: StopRecord | None, loss: Curve, expected: int | None
) -> None:
    """From the first reading of that streak on, nothing says how good it was."""
    assert usable_before(record, {"loss": loss}) == expected


def test_a_loss_of_zero_beside_a_nan_norm_is_not_the_best(
    experiment: RayExperiment,
) -> None:
    """A trainer that filters NaN logs 0.0: the trial ranks by what came before."""
    norm = {"outcome": "guard", "metric": "grad_norm"}
    rows = [stamped(1, loss=0.9, grad_norm=1.0), stamped(2, "non_finite", loss=0.0)]
    rows[1]["tune_guard/detail"] = norm
    experiment.trial("a_t0", rows)
    experiment.trial("b_t1", [row(1, loss=0.8) | {"trial_id": "t1"}])
    ranked = load_sweep(experiment.path).with_objective("loss", "min")
    assert [(t.best_value, t.best_step) for t in ranked.trials] == [(0.9, 1), (0.8, 1)]
    best = best_trial(ranked)
    assert best is not None
    assert best.id == "t1"


@pytest.mark.parametrize(("mode", "expected"), [("min", "b"), ("max", "c")])
def test_the_best_trial_has_the_best_finite_reading(mode: str, expected: str) -> None:
    """NaN and infinities never rank."""
    sweep = sweep_of(a=curve(1, 2), b=curve(3, 0.5, math.inf), c=curve(NAN, 9))
    best = best_trial(sweep.with_objective("loss", mode))
    assert best is not None
    assert best.id == expected


def test_the_first_of_equals_is_the_best() -> None:
    """Ties go to the earlier trial."""
    best = best_trial(sweep_of(a=curve(1), b=curve(1)).with_objective("loss", "min"))
    assert best is not None
    assert best.id == "a"


def test_final_values_rank_where_the_engine_has_them() -> None:
    """A pruned trial with a good reading does not beat a completed one."""
    sweep = sweep_of({"a": 0.9}, a=curve(1, 0.9), b=curve(0.1))
    best = best_trial(sweep.with_objective("loss", "min"))
    assert best is not None
    assert best.id == "a"


def test_a_final_value_alone_is_best_and_last() -> None:
    """An objective that was never reported on the way."""
    trial = Trial(id="a", outcome=Outcome.COMPLETED, finals={"acc": 0.7})
    ranked = Sweep(source="x", engine="optuna", trials=[trial]).with_objective(
        "acc", "max"
    )
    assert (ranked.trials[0].best_value, ranked.trials[0].last_value) == (0.7, 0.7)


@pytest.mark.parametrize("curves", [{}, {"a": curve(NAN)}], ids=["none", "no number"])
def test_without_a_finite_reading_there_is_no_best(curves: dict[str, Curve]) -> None:
    """Nothing is the best of nothing."""
    assert best_trial(sweep_of(**curves).with_objective("loss", "min")) is None


# ------------------------------------------------------------- which metric it is


def said(objective: str = "loss", mode: str = "min") -> StopRecord:
    """Return a record that names its objective."""
    return StopRecord(objective=objective, mode=mode)


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        ({}, ("", {})),
        ({"a": said(), "b": said()}, ("loss", {"loss": "min"})),
        ({"a": said(), "b": StopRecord()}, ("loss", {"loss": "min"})),
        ({"a": said(), "b": said("acc", "max")}, ("", {})),
        ({"a": said(mode="up")}, ("loss", {})),
    ],
    ids=["none", "agreed", "one silent", "at odds", "odd mode"],
)
def test_the_objective_is_what_the_records_agree_on(
    records: Any, expected: Any
) -> None:
    """A record of before the objective was stored says nothing against it."""
    assert recorded(records) == expected


def test_a_sweep_of_others_is_asked_about() -> None:
    """The error names the metrics found and how to say which."""
    with pytest.raises(ConfigError, match=r"--metric.*--mode min\|max.*`loss`"):
        resolve(sweep_of(a=curve(1)))


def test_a_direction_that_is_not_recorded_is_asked_about() -> None:
    """The metric alone does not say which way is better."""
    with pytest.raises(ConfigError, match="--mode min` or `--mode max"):
        resolve(sweep_of(a=curve(1)), metric="loss")


def test_an_unknown_metric_gets_the_nearest() -> None:
    """A typing error is corrected."""
    with pytest.raises(ConfigError, match="Did you mean `loss`"):
        resolve(sweep_of(a=curve(1)), metric="los", mode="min")


def test_what_is_asked_for_goes_before_what_is_recorded() -> None:
    """The report can be ranked by any metric."""
    sweep = Sweep(
        source="x",
        engine="ray",
        trials=[Trial(id="a")],
        curves=Curves({"a": {"loss": curve(1), "acc": curve(2)}}),
        metric="loss",
        modes={"loss": "min"},
    )
    assert resolve(sweep).mode == "min"
    asked = resolve(sweep, "acc", "max")
    assert (asked.metric, asked.mode) == ("acc", "max")


def test_an_objective_that_never_came_is_a_gap_with_the_nearest() -> None:
    """A policy with a misspelt metric judged nothing, and its report says so."""
    sweep = Sweep(
        source="x",
        engine="ray",
        trials=[Trial(id="a")],
        curves=Curves({"a": {"val_loss": curve(1)}}),
        records={"a": said("val_los")},
        metric="val_los",
        modes={"val_los": "min"},
    )
    (gap,) = resolve(sweep).problems
    assert "no trial reported the objective `val_los`" in gap.what
    assert "Did you mean `val_loss`?" in gap.what
    assert not resolve(sweep, "val_loss", "min").problems


def test_a_wrong_mode_is_refused() -> None:
    """There are two directions."""
    with pytest.raises(
        ConfigError, match="`mode` must be 'min' or 'max', but got 'up'"
    ):
        sweep_of(a=curve(1)).with_objective("loss", "up")
