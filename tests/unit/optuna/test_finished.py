"""Finished trials as Optuna's storages show them."""

from __future__ import annotations

import optuna
import pytest
from optuna.trial import TrialState, create_trial

from tests.unit.optuna.support import (
    LEARNS,
    SLOW,
    cut_of,
    notices,
    pickled,
    steps_until_pruned,
    study_of,
    study_with,
    thrifty,
)
from tune_guard.optuna import GuardPruner
from tune_guard.policy import Policy
from tune_guard.record import REASON


def test_a_trial_behind_the_finished_ones_is_cut() -> None:
    """At step 2 of 20 the leaders' 0.05 of step 1 is asked."""
    study = study_with(GuardPruner(policy=thrifty()))
    trial = study.ask()
    assert steps_until_pruned(trial, SLOW) == 2
    assert trial.user_attrs[REASON] == "behind"
    assert cut_of(study, LEARNS) is None


def test_too_few_finished_trials_cut_nothing() -> None:
    """Two say too little."""
    study = study_with(GuardPruner(policy=thrifty()), finished=2)
    assert cut_of(study, SLOW) is None


@pytest.mark.parametrize("state", [TrialState.PRUNED, TrialState.FAIL])
def test_trials_that_were_cut_or_failed_do_not_lead(state: TrialState) -> None:
    """Nobody knows how they would have gone on."""
    study = study_with(GuardPruner(policy=thrifty()), state=state)
    assert cut_of(study, SLOW) is None


def test_the_default_policy_compares_nothing() -> None:
    """It judges each trial by itself."""
    guard = GuardPruner(policy=Policy.default("value", "max", budget_steps=20))
    assert cut_of(study_with(guard), SLOW) is None


def test_an_unknown_budget_is_that_of_the_longest_finished_trial() -> None:
    """20 steps here; while there is none, nothing is compared."""
    guard = GuardPruner(policy=thrifty(budget_steps=None))
    assert cut_of(study_with(guard), SLOW) == 2
    assert cut_of(study_with(guard, finished=0), SLOW) is None


def test_trials_of_different_length_are_measured_by_their_own_budget() -> None:
    """Finished ones ran 20 epochs; a third of 60 is no slow start of 20."""
    study = study_with(GuardPruner(policy=thrifty(budget_key="epochs")))
    third = [value / 3 for value in LEARNS]
    for epochs, cut in ((20, True), (60, False)):
        trial = study.ask()
        trial.suggest_int("epochs", epochs, epochs)
        assert (steps_until_pruned(trial, third) is not None) == cut


def test_trials_that_finish_meanwhile_lead_from_the_next_trial_on() -> None:
    """They are read when a trial starts."""
    study = study_with(GuardPruner(policy=thrifty()), finished=2)
    before = study.ask()
    assert steps_until_pruned(before, LEARNS) is None
    study.tell(before, LEARNS[-1])
    assert cut_of(study, SLOW) == 2


def test_studies_do_not_share_what_their_trials_reached() -> None:
    """One guard, two studies of one storage."""
    guard = GuardPruner(policy=thrifty())
    storage = optuna.storages.InMemoryStorage()
    first, second = (
        study_of(guard, direction="maximize", storage=storage) for _ in range(2)
    )
    for _ in range(3):
        values = dict(enumerate(LEARNS))
        first.add_trial(create_trial(value=1.0, intermediate_values=values))
    assert cut_of(second, SLOW) is None
    assert cut_of(first, SLOW) == 2


def test_a_pickled_guard_reads_anew() -> None:
    """A study that goes to another process takes its guard along."""
    study = study_with(GuardPruner(policy=thrifty()))
    assert cut_of(study, SLOW) == 2
    assert cut_of(pickled(study), SLOW) == 2


def test_a_storage_that_refuses_switches_comparing_off(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is said once."""
    study = study_with(GuardPruner(policy=thrifty()))

    def refuse(*_: object, **__: object) -> None:
        raise OSError

    monkeypatch.setattr(study, "get_trials", refuse)
    assert cut_of(study, SLOW) is None
    assert cut_of(study, SLOW) is None
    assert len([n for n in notices(caplog) if "finished trials" in n]) == 1
