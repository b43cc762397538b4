"""Every controller has the guard, beside the stopper that it was given."""

from __future__ import annotations

import math
from typing import Any

import pytest
from ray.tune.execution.tune_controller import TuneController
from ray.tune.stopper import MaximumIterationStopper

from tests.peers.plugins import guarded_stoppers
from tune_guard.ray import GuardStopper


def begin(self: TuneController, search_alg: Any = None, stopper: Any = None) -> None:
    """Stand for the start of a controller, which needs a running Ray."""
    self._stopper = stopper


@pytest.fixture(autouse=True)
def _plugin(monkeypatch: pytest.MonkeyPatch) -> None:
    """Load the plugin; what it changes is put back."""
    monkeypatch.setattr(TuneController, "__init__", begin)
    monkeypatch.setattr(GuardStopper, "__call__", GuardStopper.__call__)
    monkeypatch.setattr(guarded_stoppers, "COUNTS", guarded_stoppers.COUNTS.copy())
    guarded_stoppers.pytest_configure()


def row(step: int, reward: float) -> dict[str, Any]:
    """Return what a trial reports."""
    return {"episode_reward_mean": reward, "training_iteration": step}


def test_a_controller_without_stopper_has_the_guard() -> None:
    """It cuts at a NaN, and is counted."""
    stopper = TuneController()._stopper
    assert isinstance(stopper, GuardStopper)
    assert not stopper("a", row(1, 0.5))
    assert stopper("a", {**row(2, 0.6), "loss": math.nan})
    counts = {"guards made": 1, "times asked": 2, "trials cut": 1}
    assert counts == guarded_stoppers.COUNTS


def test_the_tests_own_stopper_stays() -> None:
    """Both are asked; the guard does not cut what the other does."""
    stopper = TuneController(stopper=MaximumIterationStopper(2))._stopper
    assert not stopper("a", row(1, 0.5))
    assert stopper("a", row(2, 0.6))
    counts = {"guards made": 1, "times asked": 2, "trials cut": 0}
    assert counts == guarded_stoppers.COUNTS
