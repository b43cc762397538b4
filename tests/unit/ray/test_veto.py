"""Finished trials as the stopper sees them, and a scheduler that needs consent."""

from __future__ import annotations

import pickle
from types import SimpleNamespace
from typing import Any

import pytest
from ray.tune.schedulers import ASHAScheduler, MedianStoppingRule, TrialScheduler

from tune_guard import ConfigError, Policy
from tune_guard.ray import GuardScheduler, GuardStopper, combine
from tune_guard.ray import _engine as engine

BUDGET = 20
LEARNS = [0.05 * step for step in range(1, BUDGET + 1)]
SLOW = [0.01 + 0.001 * step for step in range(1, BUDGET + 1)]
CONTINUE, STOP = TrialScheduler.CONTINUE, TrialScheduler.STOP


def row(step: int, value: float, **more: Any) -> dict[str, Any]:
    """Return a result as Ray hands it to a stopper."""
    return {
        "acc": value,
        "training_iteration": step,
        "iterations_since_restore": step,
        "done": False,
        **more,
    }


def thrifty(**fields: Any) -> GuardStopper:
    """Return a stopper that compares trials."""
    return GuardStopper(Policy.thrifty("acc", "max", budget_steps=BUDGET, **fields))


def run(stopper: GuardStopper, name: str, values: list[float]) -> int | None:
    """Run a trial to the last value, which it says is its last; return a cut."""
    for step, value in enumerate(values, start=1):
        result = row(step, value, done=step == len(values))
        if stopper(name, result):
            return step
    return None


def reread(value: Any) -> Any:
    """Return what another process reads of a pickled value."""
    return pickle.loads(pickle.dumps(value))  # noqa: S301 - our own


# --------------------------------------------------------------- finished trials


def test_a_trial_behind_the_finished_ones_is_cut() -> None:
    """Three ended by themselves; the fourth is cut at step 2."""
    stopper = thrifty()
    assert [run(stopper, str(n), LEARNS) for n in range(3)] == [None] * 3
    assert run(stopper, "slow", SLOW) == 2


def test_a_trial_that_was_stopped_by_others_does_not_lead() -> None:
    """It never said that it was done, nor ran its budget."""
    stopper = thrifty()
    for number in range(3):
        for step, value in enumerate(LEARNS[:10], start=1):
            stopper(str(number), row(step, value))
    assert run(stopper, "slow", SLOW) is None


def test_a_trial_at_its_budget_leads_without_being_done() -> None:
    """A criterion ends it there, of which the stopper is not told."""
    stopper = thrifty()
    for number in range(3):
        for step, value in enumerate(LEARNS, start=1):
            stopper(str(number), row(step, value))
    assert run(stopper, "slow", SLOW) == 2


def test_a_restored_stopper_knows_what_finished() -> None:
    """The state goes to another process between any two trials."""
    stopper = thrifty()
    for number in range(3):
        run(stopper, str(number), LEARNS)
        stopper = reread(stopper)
    assert run(stopper, "slow", SLOW) == 2


def test_a_trial_counts_once_across_restores() -> None:
    """Its last row may be shown again after a crash."""
    stopper = thrifty()
    for _ in range(3):
        run(stopper, "same", LEARNS)
        stopper = reread(stopper)
    assert run(stopper, "slow", SLOW) is None


def test_trials_of_different_length_are_measured_by_their_own_budget() -> None:
    """The third of a budget of 60 is no slow start of one of 20."""
    policy = Policy.thrifty("acc", "max", budget_steps=BUDGET, budget_key="epochs")
    stopper = GuardStopper(policy)
    for number in range(3):
        run(stopper, str(number), LEARNS)

    def cut(name: str, **config: int) -> bool:
        rows = [row(s, 0.05 * s / 3, config=config) for s in range(1, 20)]
        return any(stopper(name, result) for result in rows)

    assert cut("short")
    assert not cut("long", epochs=60)


@pytest.mark.parametrize("wrong", [None, {}, {"leaders": 5}, "x"])
def test_a_damaged_state_of_the_finished_ends_nothing(wrong: Any) -> None:
    """The sweep goes on, comparing anew."""
    stopper = thrifty()
    for number in range(3):
        run(stopper, str(number), LEARNS)
    state = stopper.__getstate__()
    back = GuardStopper.__new__(GuardStopper)
    back.__setstate__({**state, "peers": wrong})
    assert run(back, "slow", SLOW) is None


def test_a_state_without_finished_trials_is_read() -> None:
    """An older version wrote none."""
    state = thrifty().__getstate__()
    del state["peers"]
    back = GuardStopper.__new__(GuardStopper)
    back.__setstate__(state)
    assert run(back, "learns", LEARNS) is None


# -------------------------------------------------------------------------- veto


class Scripted(TrialScheduler):
    """Wants to cut at these iterations, and remembers when it was asked."""

    def __init__(self, *at: int) -> None:
        super().__init__()
        self.at, self.asked, self.told = at, list[int](), list[str]()

    def on_trial_result(self, tune_controller: Any, trial: Any, result: Any) -> str:
        """Stop as told."""
        step = result["training_iteration"]
        self.asked.append(step)
        return STOP if step in self.at else CONTINUE

    def on_trial_add(self, tune_controller: Any, trial: Any) -> None:
        """Remember."""
        self.told.append("add")

    def on_trial_error(self, tune_controller: Any, trial: Any) -> None:
        """Remember."""
        self.told.append("error")

    def on_trial_complete(self, tune_controller: Any, trial: Any, result: Any) -> None:
        """Remember."""
        self.told.append("complete")

    def on_trial_remove(self, tune_controller: Any, trial: Any) -> None:
        """Remember."""
        self.told.append("remove")


@pytest.fixture
def stopper(monkeypatch: pytest.MonkeyPatch) -> GuardStopper:
    """Return the stopper that a controller would hold, with three trials finished."""
    policy = Policy.default("acc", "max", budget_steps=BUDGET).watching("behind")
    made = GuardStopper(policy)
    owner = SimpleNamespace(_stopper=combine(made, {"training_iteration": 99}))
    monkeypatch.setattr(engine, "controller", lambda: owner)
    for number in range(3):
        run(made, str(number), LEARNS)
    return made


def decisions(
    scheduler: TrialScheduler, stopper: GuardStopper, values: list[float]
) -> list[str]:
    """Return a scheduler's decisions on a trial, the stopper asked first, as in Ray."""
    trial = SimpleNamespace(trial_id="t")
    found = []
    for step, value in enumerate(values, start=1):
        result = row(step, value)
        assert stopper("t", dict(result)) is False
        found.append(scheduler.on_trial_result(None, trial, result))
        if found[-1] == STOP:
            break
    return found


def test_a_cut_that_the_rule_agrees_with_is_executed(stopper: GuardStopper) -> None:
    """At the very row."""
    scheduler = GuardScheduler(Scripted(6))
    assert decisions(scheduler, stopper, SLOW) == [CONTINUE] * 5 + [STOP]


def test_a_cut_that_the_rule_does_not_agree_with_is_not(stopper: GuardStopper) -> None:
    """The scheduler is not asked about the trial again."""
    wrapped = Scripted(6)
    assert decisions(GuardScheduler(wrapped), stopper, LEARNS) == [CONTINUE] * BUDGET
    assert wrapped.asked == [1, 2, 3, 4, 5, 6]


def test_a_wish_stands_until_the_rule_agrees(stopper: GuardStopper) -> None:
    """The scheduler wanted it at 2, the trial falls behind later, also pickled."""
    scheduler = GuardScheduler(Scripted(2))
    stalls = LEARNS[:8] + [LEARNS[7]] * 12
    trial = SimpleNamespace(trial_id="t")
    found = []
    for step, value in enumerate(stalls, start=1):
        stopper("t", row(step, value))
        scheduler = reread(scheduler)
        found.append(scheduler.on_trial_result(None, trial, row(step, value)))
    assert found.index(STOP) == 11


def test_the_rule_alone_cuts_nothing(stopper: GuardStopper) -> None:
    """It only says whether a cut may be executed."""
    scheduler = GuardScheduler(Scripted())
    assert decisions(scheduler, stopper, SLOW) == [CONTINUE] * BUDGET


def test_the_schedulers_own_end_is_no_cut(stopper: GuardStopper) -> None:
    """ASHA stops at max_t whoever is ahead."""
    asha = ASHAScheduler("training_iteration", "acc", "max", max_t=5, grace_period=5)
    trial = SimpleNamespace(trial_id="t")
    scheduler = GuardScheduler(asha)
    scheduler.on_trial_add(None, trial)
    for step in range(1, 5):
        stopper("t", row(step, LEARNS[step]))
        assert scheduler.on_trial_result(None, trial, row(step, LEARNS[step])) != STOP
    assert scheduler.on_trial_result(None, trial, row(5, 0.3)) == STOP


def test_pauses_pass(stopper: GuardStopper) -> None:
    """HyperBand lets trials wait for one another."""
    wrapped = Scripted()
    wrapped.on_trial_result = lambda *_: TrialScheduler.PAUSE  # type: ignore[method-assign]
    assert decisions(GuardScheduler(wrapped), stopper, SLOW[:1]) == ["PAUSE"]


def test_without_the_rule_the_scheduler_decides_alone(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Which is said once, with what to write."""
    plain = GuardStopper(Policy.default("acc", "max", budget_steps=BUDGET))
    owner = SimpleNamespace(_stopper=plain)
    monkeypatch.setattr(engine, "controller", lambda: owner)
    scheduler = GuardScheduler(Scripted(2))
    assert decisions(scheduler, plain, LEARNS) == [CONTINUE, STOP]
    assert caplog.text.count('policy.watching("behind")') == 1


def test_everything_else_goes_to_the_scheduler() -> None:
    """So that it keeps its books."""
    wrapped = Scripted()
    scheduler, trial = GuardScheduler(wrapped), SimpleNamespace(trial_id="t")
    scheduler.on_trial_add(None, trial)
    scheduler.on_trial_complete(None, trial, {})
    scheduler.on_trial_error(None, trial)
    scheduler.on_trial_remove(None, trial)
    assert wrapped.told == ["add", "complete", "error", "remove"]
    median = MedianStoppingRule()
    asked = GuardScheduler(median)
    assert asked.set_search_properties("acc", "max")
    assert asked.metric == median.metric == "acc"
    assert asked.supports_buffered_results == median.supports_buffered_results


def test_the_record_names_the_wrapped_scheduler() -> None:
    """Not the one around it."""
    wrapped = Scripted()
    owner = SimpleNamespace(_scheduler_alg=GuardScheduler(wrapped))
    assert engine.scheduler_of(owner) is wrapped


def test_wrong_arguments_are_errors_at_construction() -> None:
    """A class instead of an instance; a rule that is none."""
    with pytest.raises(ConfigError, match="Pass an instance"):
        GuardScheduler(ASHAScheduler)
    with pytest.raises(ConfigError, match="behind"):
        GuardScheduler(Scripted(), veto="behnid")
