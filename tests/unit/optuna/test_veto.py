"""Finished trials as Optuna's storages show them, and cuts that need consent."""

from __future__ import annotations

from typing import Any

import optuna
import pytest
from optuna.pruners import HyperbandPruner, MedianPruner
from optuna.trial import TrialState, create_trial

from tests.unit.optuna.support import (
    NAN,
    ScriptedPruner,
    notices,
    pickled,
    steps_until_pruned,
    study_of,
)
from tune_guard import ConfigError
from tune_guard.optuna import GuardPruner
from tune_guard.policy import Policy
from tune_guard.record import DETAIL, REASON, STEP

LEARNS = [0.05 * step for step in range(20)]
SLOW = [0.01 + 0.001 * step for step in range(20)]
"""Learns, but far behind the others."""


def thrifty(**fields: Any) -> Policy:
    """Return a policy that compares trials."""
    return Policy.thrifty("value", "max", **{"budget_steps": 20, **fields})


def study_with(
    pruner: GuardPruner, *, finished: int = 3, state: TrialState = TrialState.COMPLETE
) -> optuna.Study:
    """Return a study in which trials that learn have ended."""
    study = study_of(pruner, direction="maximize")
    values = dict(enumerate(LEARNS))
    value = LEARNS[-1] if state == TrialState.COMPLETE else None
    for _ in range(finished):
        study.add_trial(
            create_trial(state=state, value=value, intermediate_values=values)
        )
    return study


def cut_of(study: optuna.Study, values: list[float]) -> int | None:
    """Return the step at which a new trial with these reports is cut."""
    return steps_until_pruned(study.ask(), values)


# --------------------------------------------------------------- finished trials


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


# -------------------------------------------------------------------------- veto


def vetoed(*steps: int, **fields: Any) -> tuple[GuardPruner, ScriptedPruner]:
    """Return a guard over a pruner that wants to cut at these steps."""
    wrapped = ScriptedPruner(*steps)
    policy = Policy.default("value", "max", **{"budget_steps": 20, **fields})
    return GuardPruner(wrapped, policy, veto="behind"), wrapped


def test_a_cut_that_the_rule_agrees_with_is_executed() -> None:
    """At the very step; the pruner is named, and who agreed."""
    guard, _ = vetoed(5)
    trial = study_with(guard).ask()
    assert steps_until_pruned(trial, SLOW) == 5
    assert trial.user_attrs[REASON] == "pruner:ScriptedPruner"
    message = trial.user_attrs[DETAIL]["message"]
    assert "asked to prune the trial at step 5" in message
    assert "`behind` agrees" in message


def test_a_cut_that_the_rule_does_not_agree_with_is_not() -> None:
    """The trial does as well as those that finished."""
    guard, wrapped = vetoed(5)
    trial = study_with(guard).ask()
    assert steps_until_pruned(trial, LEARNS) is None
    assert REASON not in trial.user_attrs
    assert wrapped.asked == [0, 1, 2, 3, 4, 5]


def test_a_wish_stands_until_the_rule_agrees() -> None:
    """The pruner wanted it at step 3; the trial falls behind at step 11."""
    guard, _ = vetoed(3)
    stalls = LEARNS[:8] + [LEARNS[7]] * 12
    trial = study_with(guard).ask()
    assert steps_until_pruned(trial, stalls) == 11
    assert trial.user_attrs[STEP] == 11
    assert "at step 3" in trial.user_attrs[DETAIL]["message"]


def test_the_rule_alone_cuts_nothing_under_the_veto() -> None:
    """It says no more than whether a cut may be executed."""
    guard, _ = vetoed()
    assert cut_of(study_with(guard), SLOW) is None


def test_a_policy_that_has_the_rule_keeps_it() -> None:
    """Thrifty cuts with or without the pruner."""
    guard = GuardPruner(ScriptedPruner(), thrifty(), veto="behind")
    assert cut_of(study_with(guard), SLOW) == 2


def test_other_rules_cut_as_before() -> None:
    """A NaN needs nobody's consent."""
    guard = GuardPruner(ScriptedPruner(), veto="behind")
    study = study_of(guard, direction="minimize")
    assert cut_of(study, [1.0, NAN]) == 1


def test_signals_between_report_and_question_do_not_matter() -> None:
    """The rule goes by the newest value."""
    guard, _ = vetoed(5)
    trial = study_with(guard).ask()
    for step in range(6):
        trial.report(0.01, step)
        guard.observe(trial, grad_norm=1.0)
        pruned = trial.should_prune()
    assert pruned is True


@pytest.mark.parametrize("pruner", [HyperbandPruner(max_resource=20), MedianPruner()])
def test_real_pruners_cut_less(pruner: Any) -> None:
    """A trial that is worse than the median, though not behind, runs to its end."""
    study = study_with(GuardPruner(pruner, veto="behind"), finished=6)
    lower = [0.92 * value for value in LEARNS]
    trial = study.ask()
    assert steps_until_pruned(trial, lower) is None


@pytest.mark.parametrize("veto", ["behnid", "", 5, "lr_floor"])
def test_a_veto_that_is_no_rule_is_an_error_at_construction(veto: Any) -> None:
    """The nearest id is named; a rule that needs parameters must be in the policy."""
    with pytest.raises(ConfigError):
        GuardPruner(MedianPruner(), veto=veto)
