"""Condemned trials that ran on tell a sweep's own rate of false kills."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tune_guard.record import Outcome, StopRecord
from tune_guard.sweeps import Sweep, Trial
from tune_guard.sweeps.compare import compare
from tune_guard.sweeps.report.as_json import as_json
from tune_guard.sweeps.report.terminal_more import spared_lines
from tune_guard.sweeps.spared import condemned, spared
from tune_guard.verdict import Blame


def sweep(records: dict[str, StopRecord], **trials: tuple[float, int]) -> Sweep:
    """Return a sweep of completed trials of 20 steps: (best value, its step)."""
    return Sweep(
        source="here",
        engine="ray",
        metric="acc",
        modes={"acc": "max"},
        records=records,
        trials=tuple(
            Trial(
                id=name,
                outcome=Outcome.COMPLETED,
                steps_run=20,
                best_value=value,
                best_step=step,
            )
            for name, (value, step) in trials.items()
        ),
    )


def test_a_condemned_trial_that_became_the_best_is_a_false_kill() -> None:
    """It was condemned at step 5 and set the sweep's best at step 9."""
    kept = StopRecord(spared="relapse@5:holdout")
    found = spared(sweep({"a": kept}, a=(0.9, 9), b=(0.8, 3)))

    assert found is not None
    assert (found.trials, found.false_kills, found.steps) == (1, 1, 15)
    assert found.rules == {"relapse": (1, 1)}
    assert found.by == {"holdout": 1}


@pytest.mark.parametrize(("best", "at"), [(0.9, 5), (0.7, 9)])
def test_a_trial_that_lost_nothing_is_no_false_kill(best: float, at: int) -> None:
    """Its best was reached by then, or others are better."""
    kept = StopRecord(spared="relapse@5:holdout")
    found = spared(sweep({"a": kept}, a=(best, at), b=(0.8, 3)))

    assert found is not None
    assert (found.trials, found.false_kills) == (1, 0)
    assert found.false_kill_ci == pytest.approx((0.0, 0.793), abs=0.001)


def test_a_trial_that_a_pruner_ended_says_nothing() -> None:
    """Whether it would have become one of the best is not known."""
    recorded = sweep({"a": StopRecord(spared="relapse@5:action")}, a=(0.9, 4))
    pruned = replace(recorded.trials[0], outcome=Outcome.PRUNER)
    found = spared(replace(recorded, trials=(pruned,)))

    assert found is not None
    assert (found.trials, found.unknown, found.rules) == (0, 1, {})


def test_a_trial_that_went_on_to_nan_is_known_to_be_sick() -> None:
    """The holdout spares no trial from a fatal rule."""
    recorded = sweep({"a": StopRecord(spared="relapse@5:holdout")}, a=(0.9, 4))
    dead = replace(recorded.trials[0], outcome=Outcome.GUARD, blame=Blame.CONFIG)
    found = spared(replace(recorded, trials=(dead,)))

    assert found is not None
    assert (found.trials, found.unknown, found.false_kills) == (1, 0, 0)


@pytest.mark.parametrize("text", ["", "relapse", "relapse@x:holdout", "@:"])
def test_a_damaged_text_is_no_condemnation(text: str) -> None:
    """Records may have been edited by hand."""
    assert condemned(StopRecord(spared=text)) is None


def test_a_sweep_without_spared_trials_says_nothing() -> None:
    """No holdout, no shadow: no rate."""
    found = compare(sweep({"a": StopRecord(warnings=("plateau@3",))}, a=(0.9, 9)))

    assert found.spared is None
    assert as_json(found)["spared"] is None


def test_the_rate_stands_in_both_reports() -> None:
    """With its interval."""
    found = compare(
        sweep({"a": StopRecord(spared="relapse@5:holdout")}, a=(0.9, 9), b=(0.8, 3))
    )
    assert found.spared is not None
    (condemned_line, saved, rate, rules) = spared_lines(found.spared)

    assert condemned_line == "Condemned, and let run on: 1 (1 by the holdout)."
    assert "15 steps" in saved
    assert "1 of 1, 100% (95% interval 21-100%)" in rate
    assert rules == "  By rule: relapse 1 of 1."
    assert as_json(found)["spared"]["false_kill_ratio"] == 1.0
