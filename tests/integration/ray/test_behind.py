"""Trials measured against finished ones, and a real scheduler under the veto."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.integration.ray.support import by_fate, reason, stored
from tune_guard import Policy

BUDGET = 20


@pytest.fixture(scope="module")
def train() -> Callable[[dict[str, Any]], None]:
    """Return a function that gains ``rate`` a step, by its fate."""
    from ray import tune

    def train(config: dict[str, Any]) -> None:
        rate = 0.002 if config["fate"] == "slow" else 0.05
        share = 0.92 if config["fate"] == "fair" else 1.0
        for step in range(1, 21):
            tune.report({"acc": 0.01 + rate * step * share})

    return train


def in_turn(**more: Any) -> dict[str, Any]:
    """Return what makes Ray run one trial after another, in the order of the fates."""
    return {"max_concurrent_trials": 1, "metric": "acc", "mode": "max", **more}


def test_a_trial_behind_the_finished_ones_is_cut(sweep: Any, train: Any) -> None:
    """Three finish, the slow one is cut early, the next of the good ones is not."""
    from tune_guard.ray import GuardCallback, GuardStopper

    policy = Policy.thrifty("acc", "max", budget_steps=BUDGET)
    grid = by_fate(
        sweep(
            train,
            ["a", "b", "c", "slow", "d"],
            tune_config=in_turn(),
            stop=GuardStopper(policy),
            callbacks=[GuardCallback(policy)],
        )
    )
    assert reason(grid["slow"]) == ("guard", "behind")
    assert stored(grid["slow"])["tune_guard/step"] == 2
    for fate in "abcd":
        assert reason(grid[fate]) == ("completed", "")


def test_asha_cuts_only_whom_the_rule_condemns(sweep: Any, train: Any) -> None:
    """A fair trial that ASHA wants to cut runs on; the slow one does not."""
    from ray.tune.schedulers import ASHAScheduler

    from tune_guard.ray import GuardCallback, GuardScheduler, GuardStopper

    policy = Policy.default("acc", "max", budget_steps=BUDGET).watching("behind")

    def asha() -> ASHAScheduler:
        return ASHAScheduler(max_t=BUDGET, grace_period=4, reduction_factor=2)

    fates = ["a", "b", "c", "fair", "slow"]
    grids = [
        by_fate(
            sweep(
                train,
                fates,
                tune_config=in_turn(scheduler=scheduler),
                stop=GuardStopper(policy),
                callbacks=[GuardCallback(policy)],
            )
        )
        for scheduler in (asha(), GuardScheduler(asha()))
    ]
    assert reason(grids[0]["fair"])[0] == "scheduler"
    assert reason(grids[1]["fair"])[0] == "completed"
    named = ("scheduler", "scheduler:AsyncHyperBandScheduler")
    assert [reason(grid["slow"]) for grid in grids] == [named, named]
    assert stored(grids[1]["slow"])["tune_guard/step"] == 4
