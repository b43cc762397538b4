"""What the callback says of a sweep that was set up against itself."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tests.integration.ray.support import stored
from tune_guard import Policy

MIN = Policy.default("acc", "min")


def train(config: dict[str, Any]) -> None:
    """Report three rows; the second is NaN, if the fate is."""
    from ray import tune

    for step in range(1, 4):
        sick = config["fate"] == "nan" and step == 2
        tune.report({"acc": math.nan if sick else step / 10, "other": 1.0})


def report_stamped(config: dict[str, Any]) -> None:
    """Report through a guard of the worker's own."""
    from tune_guard import TrialGuard

    with TrialGuard(Policy.default("acc", "max")) as guard:
        for step in range(1, 4):
            guard.report({"acc": step / 10})


def said(caplog: pytest.LogCaptureFixture, what: str) -> list[str]:
    """Return the guard's own messages about something."""
    own = [r.getMessage() for r in caplog.records if r.name == "tune_guard"]
    return [message for message in own if what in message]


def asha(**given: Any) -> Any:
    """Return a scheduler with a metric and a mode of its own."""
    from ray.tune.schedulers import ASHAScheduler

    return ASHAScheduler(**given)


@pytest.mark.parametrize("by", ["tune_config", "scheduler"])
def test_another_mode_than_rays_is_said_once(sweep: Any, caplog: Any, by: str) -> None:
    """Also where nothing but TuneConfig has it: no searcher, and no scheduler."""
    from tune_guard.ray import GuardCallback, GuardStopper

    given: dict[str, Any] = {"metric": "acc", "mode": "max"}
    if by == "scheduler":
        given = {"scheduler": asha(**given)}
    callback = GuardCallback(MIN)
    sweep(
        train,
        ["well"] * 2,
        tune_config=given,
        stop=GuardStopper(MIN),
        callbacks=[callback],
    )
    (message,) = said(caplog, "mode")
    assert message == (
        "The policy's mode is 'min', but Ray Tune has 'max' for `acc`: the guard uses"
        " 'min', Ray Tune uses 'max'. Correct one of them."
    )


@pytest.mark.parametrize(
    "given",
    [{}, {"metric": "acc", "mode": "min"}, {"metric": "other", "mode": "max"}],
    ids=["none", "same", "another_metric"],
)
def test_a_mode_that_agrees_or_is_anothers_is_passed_over(
    sweep: Any, caplog: Any, given: dict[str, str]
) -> None:
    """Only the same metric can contradict."""
    from tune_guard.ray import GuardCallback, GuardStopper

    sweep(
        train,
        ["well"],
        tune_config=given,
        stop=GuardStopper(MIN),
        callbacks=[GuardCallback(MIN)],
    )
    assert said(caplog, "mode") == []


def test_a_callback_without_a_stopper_says_so_once(sweep: Any, caplog: Any) -> None:
    """NaN ends as completed then."""
    (_, sick) = sweep(train, ["well", "nan"], stop=None)
    (message,) = said(caplog, "GuardStopper")
    assert "stop=GuardStopper(policy)" in message
    assert stored(sick)["tune_guard/reason"] == ""


@pytest.mark.parametrize("how", ["list", "combine", "alone"])
def test_a_stopper_is_found_however_it_is_given(
    sweep: Any, caplog: Any, how: str
) -> None:
    """Ray's list asks ours second, so that the only row has no stamp."""
    from ray.tune.stopper import MaximumIterationStopper

    from tune_guard.ray import GuardStopper, combine

    guard, most = GuardStopper(MIN), MaximumIterationStopper(1)
    stop: Any = {"list": [most, guard], "combine": combine(most, guard)}
    sweep(train, ["well"], stop=stop.get(how, guard))
    assert said(caplog, "GuardStopper") == []


def test_a_guard_in_the_worker_is_enough(sweep: Any, caplog: Any) -> None:
    """Its rows are stamped when they come."""
    sweep(report_stamped, ["well"], stop=None)
    assert said(caplog, "GuardStopper") == []


@pytest.mark.parametrize("wrapped", [False, True])
def test_an_optuna_search_without_the_guards_searcher_is_said(
    sweep: Any, caplog: Any, wrapped: bool
) -> None:
    """Behind a limiter too: what ends in NaN would stay RUNNING in its study."""
    from ray import tune
    from ray.tune.search import ConcurrencyLimiter
    from ray.tune.search.optuna import OptunaSearch

    from tune_guard.ray import GuardCallback, GuardSearcher, GuardStopper

    search: Any = OptunaSearch()
    limited = ConcurrencyLimiter(GuardSearcher(search) if wrapped else search, 1)
    sweep(
        train,
        [],
        space={"fate": tune.choice(["well"])},
        tune_config={"metric": "acc", "mode": "min", "search_alg": limited},
        stop=GuardStopper(MIN),
        callbacks=[GuardCallback(MIN)],
    )
    assert len(said(caplog, "GuardSearcher(OptunaSearch(...))")) == (not wrapped)
