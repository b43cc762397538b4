"""Trials that others cut: schedulers, criteria, and stoppers that say nothing."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.integration.ray.support import (
    POLICY,
    CountTo,
    by_fate,
    reason,
    rows_of,
    stored,
    takes_over_at_4,
)
from tune_guard import Policy
from tune_guard.policy import DEFAULT


@pytest.fixture(scope="module")
def train() -> Callable[[dict[str, Any]], None]:
    """Return a function whose loss is its fate, with a checkpoint at each step."""
    from ray import tune

    def train(config: dict[str, Any]) -> None:
        import tempfile

        first, fate = 1, config["fate"]
        checkpoint = tune.get_checkpoint()
        if checkpoint is not None:
            with checkpoint.as_directory() as folder:
                first = int((Path(folder) / "step").read_text()) + 1
        for step in range(first, 13):
            loss = math.nan if fate == "nan" and step == 3 else float(len(fate))
            with tempfile.TemporaryDirectory() as folder:
                (Path(folder) / "step").write_text(str(step))
                kept = tune.Checkpoint.from_directory(folder)
                tune.report({"loss": loss + 1 / step}, checkpoint=kept)

    return train


@pytest.fixture(scope="module")
def halved(sweep: Any, train: Any) -> dict[str, Any]:
    """Return the results of a sweep under ASHA, one trial after another."""
    from ray.tune.schedulers import ASHAScheduler

    scheduler = ASHAScheduler(max_t=8, grace_period=4, reduction_factor=2)
    grid = sweep(
        train,
        ["a", "bbbbbb", "nan"],
        tune_config={
            "scheduler": scheduler,
            "metric": "loss",
            "mode": "min",
            "max_concurrent_trials": 1,
        },
    )
    return by_fate(grid)


def test_the_scheduler_that_cut_is_named(halved: dict[str, Any]) -> None:
    """A trial that others outran has the scheduler's class for a reason."""
    assert reason(halved["bbbbbb"]) == (
        "scheduler",
        "scheduler:AsyncHyperBandScheduler",
    )
    assert stored(halved["bbbbbb"])["tune_guard/step"] == 4


def test_the_schedulers_cut_is_in_the_last_row(halved: dict[str, Any]) -> None:
    """result.json has it too: the callback completes the row before it is written."""
    last = rows_of(halved["bbbbbb"])[-1]
    assert last["tune_guard/reason"] == "scheduler:AsyncHyperBandScheduler"


def test_reaching_the_schedulers_budget_is_no_cut(halved: dict[str, Any]) -> None:
    """ASHA stops the best trial too, at max_t: it ran to its end."""
    assert reason(halved["a"]) == ("completed", "")
    assert halved["a"].metrics["training_iteration"] == 8


def test_the_guard_goes_before_the_scheduler(halved: dict[str, Any]) -> None:
    """NaN is cut at once: ASHA alone would let it run to the end."""
    assert reason(halved["nan"]) == ("guard", "non_finite")
    assert halved["nan"].metrics["training_iteration"] == 3


def test_a_trial_cut_while_paused_has_its_reason(sweep: Any, train: Any) -> None:
    """HyperBand ends paused trials without another result."""
    from ray.tune.schedulers import HyperBandScheduler

    scheduler = HyperBandScheduler(max_t=4, reduction_factor=2)
    grid = sweep(
        train,
        ["a", "bb", "ccc", "a", "bb", "ccc"],  # the first three run to the end
        tune_config={"scheduler": scheduler, "metric": "loss", "mode": "min"},
    )
    reasons = [reason(result)[1] for result in grid]
    assert "scheduler:HyperBandScheduler" in reasons
    assert set(reasons) <= {"scheduler:HyperBandScheduler", ""}
    paused = [r for r in grid if not r.metrics["done"]]
    assert paused, "no trial was cut while paused"
    for result in grid:
        ran_through = result.metrics["training_iteration"] >= 4
        assert reason(result)[0] == ("completed" if ran_through else "scheduler")


def exploited(sweep: Any, train: Any) -> dict[str, Any]:
    """Return the results of two trials of which one takes over the other's weights."""
    from ray import tune

    from tune_guard.ray import GuardCallback, GuardStopper

    policy = Policy.default("loss", "min", rules=(*DEFAULT, CountTo(n=7)))
    scheduler = takes_over_at_4()
    grid = sweep(
        train,
        [],
        space={"fate": tune.grid_search(["a", "bbbbbb"]), "lr": 0.4},
        stop=GuardStopper(policy),
        callbacks=[GuardCallback(policy)],
        tune_config={"scheduler": scheduler, "metric": "loss", "mode": "min"},
    )
    return by_fate(grid)


def test_another_configuration_starts_a_trial_anew(sweep: Any, train: Any) -> None:
    """Under PBT a trial that takes over another's weights is not held to its past."""
    results = exploited(sweep, train)
    # About once in fifty such sweeps Ray itself ends a function at its first row, when
    # the actor was another trial's before: there is nothing to judge then.
    while reason(results["bbbbbb"])[0] != "guard":
        results = exploited(sweep, train)
    ends = {fate: r.metrics["tune_guard/step"] for fate, r in results.items()}
    # It counted 1 to 4, took over at 4 and counted 5 to 11 as 1 to 7.
    assert ends == {"a": 7, "bbbbbb": 11}


def test_a_dictionary_criterion_is_named(sweep: Any, train: Any) -> None:
    """Without a GuardStopper, the callback still names Ray's own criterion."""
    (result,) = sweep(train, ["a"], stop={"training_iteration": 3})
    assert reason(result) == ("criterion", "criterion:training_iteration")
    assert stored(result)["tune_guard/step"] == 3


def test_a_stopper_in_a_list_is_named(sweep: Any, train: Any) -> None:
    """Ray's own combination does not say who fired; with one suspect it is clear."""
    from ray.tune.stopper import MaximumIterationStopper

    from tune_guard.ray import GuardStopper

    stoppers = [GuardStopper(POLICY), MaximumIterationStopper(3)]
    (result,) = sweep(train, ["a"], stop=stoppers)
    assert reason(result) == ("criterion", "criterion:MaximumIterationStopper")
    assert json.loads(result.metrics["tune_guard/detail"])["best_step"] == 3
