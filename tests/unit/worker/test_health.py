from __future__ import annotations

import math
from typing import Any

from tests.unit.worker.support import INF, NAN
from tune_guard.worker.health import StepHealth


def summed(*steps: dict[str, Any]) -> dict[str, Any]:
    """Return the sum of some steps."""
    health = StepHealth()
    for signals in steps:
        health.add(signals, None, None)
    return health.take()


def test_the_worst_norm_is_reported() -> None:
    """The largest; one that is not finite is worse than any."""
    assert summed({"grad_norm": 1.0}, {"grad_norm": 9.0})["grad_norm"] == 9.0
    worst = summed({"grad_norm": NAN}, {"grad_norm": 9.0})["grad_norm"]
    assert math.isnan(worst)


def test_skipped_steps_do_not_hide_the_norm() -> None:
    """An overflow's norm is reported only where no step counted."""
    skipped = {"grad_norm": INF, "step_skipped": True}
    fine = {"grad_norm": 2.0, "step_skipped": False}
    found = summed(skipped, fine, skipped)
    assert (found["grad_norm"], found["step_skipped"]) == (2.0, False)
    found = summed(skipped, skipped)
    assert (found["grad_norm"], found["step_skipped"]) == (INF, True)


def test_the_newest_rate_and_scale_are_reported() -> None:
    """They describe the trial as it is now."""
    found = summed({"lr": 0.1, "amp_scale": 8.0}, {"lr": 0.2, "amp_scale": 4.0})
    assert (found["lr"], found["amp_scale"]) == (0.2, 4.0)


def test_times_are_medians() -> None:
    """One slow step among many is none."""
    health = StepHealth()
    for seconds in (0.5, 0.5, 30.0, 0.5, None):
        health.add({}, seconds, None)
    assert health.take() == {"step_time_s": 0.5}


def test_taking_begins_anew() -> None:
    """Nothing of the report before is left."""
    health = StepHealth()
    health.add({"grad_norm": 1.0}, 0.5, 0.25)
    assert len(health.take()) == 3
    assert health.take() == {}


def test_what_was_not_seen_is_not_reported() -> None:
    """No zeros for the unknown."""
    assert summed({"loss": 1.0}) == {}
