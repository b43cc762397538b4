"""Trials that end because the experiment does: Ray tells nobody about them."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from ray.tune.stopper import Stopper

from tests.integration.ray.support import POLICY, by_fate, reason, stored


class EnoughRows(Stopper):
    """End the experiment after so many rows of all trials together."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.rows = 0

    def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
        """Count a row."""
        self.rows += 1
        return False

    def stop_all(self) -> bool:
        """Say whether there are enough."""
        return self.rows >= self.most


@pytest.fixture(scope="module")
def train(
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[[dict[str, Any]], None]:
    """Return a function that runs until it is stopped.

    It raises at step 3 if that is its fate, once the other trial has a row.
    """
    from ray import tune

    reported = tmp_path_factory.mktemp("marks") / "runs"

    def train(config: dict[str, Any]) -> None:
        for step in range(1, 10_000):
            if config["fate"] == "raises" and step == 3:
                while not reported.exists():
                    time.sleep(0.05)
                msg = "the first failure"
                raise ValueError(msg)
            tune.report({"loss": 1 / step})
            if config["fate"] == "runs":
                reported.touch()
            time.sleep(0.05)

    return train


def test_a_criterion_that_ends_the_experiment_is_named(sweep: Any, train: Any) -> None:
    """combine() passes the name of whose stop_all() said so."""
    from tune_guard.ray import GuardStopper, combine

    grid = sweep(
        train, ["a", "b"], stop=combine(GuardStopper(POLICY), EnoughRows(most=40))
    )
    assert {reason(result) for result in grid} == {
        ("experiment_stop", "experiment_stop:EnoughRows")
    }
    assert all(stored(result)["final"] for result in grid)


def test_a_time_budget_is_named(sweep: Any, train: Any) -> None:
    """The trials that were open when the time was up say so."""
    grid = sweep(train, ["a", "b"], tune_config={"time_budget_s": 8})
    assert {reason(result) for result in grid} == {
        ("experiment_stop", "experiment_stop:time_budget")
    }


def test_fail_fast_is_named(sweep: Any, train: Any) -> None:
    """One trial failed; the other was stopped for it, and did not complete."""
    from ray import tune

    failing = tune.FailureConfig(fail_fast=True)
    results = by_fate(sweep(train, ["runs", "raises"], failure_config=failing))
    assert reason(results["raises"]) == ("error", "error:ValueError")
    assert reason(results["runs"]) == ("experiment_stop", "experiment_stop:fail_fast")


def test_the_reason_survives_a_restore(sweep: Any, train: Any) -> None:
    """It is in the experiment's state, which was written after the last step."""
    from ray import tune

    from tune_guard.ray import GuardStopper, combine

    grid = sweep(train, ["a"], stop=combine(GuardStopper(POLICY), EnoughRows(most=5)))
    again = tune.Tuner.restore(grid.experiment_path, trainable=train).get_results()
    assert [reason(result) for result in again] == [reason(r) for r in grid]
