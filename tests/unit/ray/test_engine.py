"""Ray's private attributes are where the adapter looks for them.

A failure here names what a new release of Ray has moved.
"""

from __future__ import annotations

import inspect
from types import SimpleNamespace
from typing import Any

import pytest
from ray.exceptions import OutOfMemoryError, RayActorError
from ray.tune import PlacementGroupFactory
from ray.tune.execution.tune_controller import TuneController
from ray.tune.experiment import Trial
from ray.tune.schedulers import (
    ASHAScheduler,
    FIFOScheduler,
    HyperBandForBOHB,
    HyperBandScheduler,
    MedianStoppingRule,
)
from ray.tune.search import ConcurrencyLimiter
from ray.tune.search.optuna import OptunaSearch
from ray.tune.stopper import (
    CombinedStopper,
    MaximumIterationStopper,
    NoopStopper,
    TimeoutStopper,
)

from tune_guard import Policy
from tune_guard.ray import GuardScheduler, GuardStopper, _engine


@pytest.mark.parametrize(
    "name",
    ["_scheduler_alg", "_stopper", "_fail_fast", "_has_errored"],
)
def test_the_controller_has(name: str) -> None:
    """What tells who ended a trial or the experiment."""
    assert f"self.{name} = " in inspect.getsource(TuneController)


def test_the_controller_can_be_told_of_a_change() -> None:
    """So that the next snapshot has the record."""
    assert callable(TuneController._mark_trial_to_checkpoint)


def test_a_trial_has_the_row_of_one_that_never_reported() -> None:
    """Read without waiting for its actor."""
    assert "self._default_result_or_future = " in inspect.getsource(Trial)


def test_optuna_search_has_its_trials() -> None:
    """By the id of Ray's trial."""
    searcher = OptunaSearch()
    searcher._ot_trials["t"] = "trial"
    assert _engine.optuna_trial(searcher, "t") == "trial"
    assert _engine.optuna_trial(searcher, "other") is None
    assert _engine.optuna_trial(object(), "t") is None


@pytest.mark.parametrize(
    ("scheduler", "reached"),
    [
        (ASHAScheduler(max_t=8), True),
        (ASHAScheduler(max_t=9), False),
        (HyperBandScheduler(max_t=8), True),
        (HyperBandScheduler(time_attr="epoch", max_t=8), False),
        (HyperBandForBOHB(max_t=9), False),
        (MedianStoppingRule(), False),
        (None, False),
    ],
)
def test_a_schedulers_budget_is_known(scheduler: Any, reached: bool) -> None:
    """Eight iterations were run."""
    assert _engine.reached_budget(scheduler, {"training_iteration": 8}) is reached


class Owner:
    """A controller as far as it is looked at."""

    def __init__(self, stopper: Any, scheduler: Any = None) -> None:
        self._stopper = stopper
        self._scheduler_alg = scheduler


def test_stoppers_that_say_nothing_are_found() -> None:
    """Within Ray's combinations, and those aside that are ours or Ray's own."""
    guard = GuardStopper(Policy.default("loss", "min"))
    most = MaximumIterationStopper(3)
    nested = CombinedStopper(CombinedStopper(guard, most), TimeoutStopper(9))
    owner: Any = Owner(nested)
    names = _engine.foreign_stoppers(owner, (GuardStopper,))
    assert names == ["MaximumIterationStopper"]
    none: Any = Owner(NoopStopper())
    assert _engine.foreign_stoppers(none, (GuardStopper,)) == []
    assert _engine.foreign_stoppers(None, (GuardStopper,)) == []


def test_a_scheduler_that_never_cuts_is_none() -> None:
    """FIFO is Ray's word for no scheduler."""
    fifo: Any = Owner(None, FIFOScheduler())
    asha: Any = Owner(None, ASHAScheduler())
    assert _engine.scheduler_of(fifo) is None
    assert type(_engine.scheduler_of(asha)).__name__ == "AsyncHyperBandScheduler"
    assert _engine.scheduler_of(None) is None


class Searched:
    """A controller with a searcher and a scheduler."""

    def __init__(self, searcher: Any = None, scheduler: Any = None) -> None:
        self.search_alg = searcher
        self._scheduler_alg = scheduler


@pytest.mark.parametrize(
    ("searcher", "scheduler", "modes"),
    [
        (OptunaSearch(metric="acc", mode="max"), None, {"max"}),
        (OptunaSearch(metric=["loss", "acc"], mode=["min", "max"]), None, {"max"}),
        (OptunaSearch(metric="loss", mode="min"), None, set()),
        (OptunaSearch(), FIFOScheduler(), set()),
        (None, ASHAScheduler(metric="acc", mode="max"), {"max"}),
        (
            ConcurrencyLimiter(OptunaSearch(metric="acc", mode="max"), 2),
            GuardScheduler(ASHAScheduler(metric="acc", mode="min")),
            {"min", "max"},
        ),
    ],
    ids=["searcher", "several", "another_metric", "none", "scheduler", "two"],
)
def test_the_mode_that_ray_has_for_a_metric(
    searcher: Any, scheduler: Any, modes: set[str]
) -> None:
    """From whoever has one for this very metric, below what wraps it."""
    owner: Any = Searched(searcher, scheduler)
    assert _engine.modes_of(owner, "acc") == modes
    assert _engine.modes_of(None, "acc") == set()


def test_without_a_controller_on_the_stack_there_is_none() -> None:
    """As in a test, or a release of Ray that calls from elsewhere."""
    assert _engine.controller() is None


def test_a_memory_kill_is_told_as_the_death_of_its_actor() -> None:
    """Ray raises out of the sweep for any error that it does not know."""
    from ray.air.execution._internal import RayActorManager

    told: list[Exception] = []

    def handle(tracked_actor_task: Any, exception: Exception) -> None:
        told.append(exception)

    parameters = inspect.signature(RayActorManager._actor_task_failed).parameters
    assert list(parameters)[1:] == ["tracked_actor_task", "exception"]
    manager = SimpleNamespace(_actor_task_failed=handle)
    _engine.survive_memory_kills(SimpleNamespace(_actor_manager=manager))  # type: ignore[arg-type]
    others = ValueError("x")
    manager._actor_task_failed(tracked_actor_task=1, exception=OutOfMemoryError("low"))
    manager._actor_task_failed(tracked_actor_task=1, exception=others)
    assert isinstance(told[0], RayActorError)
    assert str(told[0]) == "low"
    assert told[1] is others


def test_the_controller_has_the_manager_of_its_actors() -> None:
    """Where there is none any more, nothing is changed."""
    assert "self._actor_manager = " in inspect.getsource(TuneController)
    _engine.survive_memory_kills(None)


def test_resources_keep_all_but_the_nodes() -> None:
    """Bundles, an empty head and the strategy stay as they are."""
    request = PlacementGroupFactory([{}, {"CPU": 1}, {"CPU": 2}], strategy="SPREAD")
    assert _engine.label_selectors(request) == []
    selectors = [{"a": "b"}, {"a": "b"}]
    placed = _engine.with_label_selectors(request, selectors)
    assert placed.bundles == request.bundles
    assert (placed.strategy, placed.head_bundle_is_empty) == ("SPREAD", True)
    assert _engine.label_selectors(placed) == selectors
