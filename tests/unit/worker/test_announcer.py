"""A training without an engine tells of itself."""

from __future__ import annotations

import math

import pytest

from tune_guard import Outcome, Policy, TrialGuard
from tune_guard.events import (
    Event,
    HealthSample,
    SweepStarted,
    TrialEnded,
    TrialStarted,
)
from tune_guard.worker import announcer

POLICY = Policy.default("loss", "min")


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> list[Event]:
    """What is announced, with somebody listening."""
    events: list[Event] = []
    monkeypatch.setattr(announcer, "announce", events.append)
    monkeypatch.setattr(announcer, "is_on", lambda: True)
    monkeypatch.setattr(announcer, "wants_samples", lambda: True)
    monkeypatch.delenv("RANK", raising=False)
    monkeypatch.setenv("TUNE_GUARD_SWEEP", "mine")
    return events


def kinds(events: list[Event]) -> list[type]:
    """Return the kinds of events."""
    return [type(event) for event in events]


def end(events: list[Event]) -> TrialEnded:
    """Return the one end."""
    (found,) = [event for event in events if isinstance(event, TrialEnded)]
    return found


def test_a_training_that_is_cut_is_told_once(heard: list[Event]) -> None:
    """When it happens, not when it is closed."""
    with TrialGuard(POLICY, gpu="off") as guard:
        guard.check_epoch(1.0)
        guard.check_epoch(math.nan)
        assert kinds(heard) == [
            SweepStarted,
            TrialStarted,
            HealthSample,
            HealthSample,
            TrialEnded,
        ]
        guard.check_epoch(math.nan)
    assert end(heard).record.reason == "non_finite"
    assert end(heard).sweep == "mine"
    assert end(heard).record.trial == end(heard).trial != ""


def test_a_training_that_ends_well_is_told_when_it_is_closed(
    heard: list[Event],
) -> None:
    """And only once, however often that is."""
    guard = TrialGuard(POLICY, gpu="off")
    guard.check_epoch(1.0)
    guard.close()
    guard.close()
    assert end(heard).record.outcome is Outcome.COMPLETED


@pytest.mark.parametrize(
    ("error", "outcome", "reason"),
    [
        (ValueError, Outcome.ERROR, "error:ValueError"),
        (KeyboardInterrupt, Outcome.INTERRUPTED, "interrupted"),
    ],
)
def test_an_error_of_the_training_is_told(
    heard: list[Event],
    error: type[BaseException],
    outcome: Outcome,
    reason: str,
) -> None:
    """As the guard's own end is."""

    def train() -> None:
        with TrialGuard(POLICY, gpu="off") as guard:
            guard.check_epoch(1.0)
            raise error

    with pytest.raises(error):
        train()
    assert (end(heard).record.outcome, end(heard).record.reason) == (outcome, reason)


def test_another_rank_does_not_tell_of_the_end(
    heard: list[Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of a training is enough."""
    monkeypatch.setenv("RANK", "1")
    with TrialGuard(POLICY, gpu="off") as guard:
        guard.check_epoch(1.0)
    assert TrialEnded not in kinds(heard)


def test_two_trainings_of_a_process_have_two_names(heard: list[Event]) -> None:
    """A loop over seeds."""
    for _ in range(2):
        with TrialGuard(POLICY, gpu="off") as guard:
            guard.check_epoch(1.0)
    names = {event.trial for event in heard if isinstance(event, TrialEnded)}
    assert len(names) == 2


def test_nothing_is_made_when_nobody_listens(
    heard: list[Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cost is one question."""
    monkeypatch.setattr(announcer, "is_on", lambda: False)
    with TrialGuard(POLICY, gpu="off") as guard:
        guard.check_epoch(math.nan)
    assert heard == []


def test_a_trial_cut_beside_a_foreign_pruner_is_told(heard: list[Event]) -> None:
    """Under its number, with its hyperparameters, once its reason is stored."""
    import optuna

    study = optuna.create_study(study_name="digits", pruner=optuna.pruners.NopPruner())
    trial = study.ask({"lr": optuna.distributions.FloatDistribution(0.1, 0.2)})
    guard = TrialGuard(POLICY, trial=trial, gpu="off")
    with pytest.raises(optuna.TrialPruned):
        guard.report({"loss": math.nan}, 3)
    (event,) = heard
    assert isinstance(event, TrialEnded)
    assert (event.sweep, event.trial) == ("digits", "0")
    assert event.record.reason == "non_finite"
    assert event.params == trial.params
