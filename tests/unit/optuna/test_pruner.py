"""GuardPruner: the guard judges first, the wrapped pruner second."""

from __future__ import annotations

import warnings
from typing import Any

import optuna
import pytest
from optuna.pruners import (
    HyperbandPruner,
    MedianPruner,
    PatientPruner,
)

from tests.unit.optuna.support import (
    NAN,
    ScriptedPruner,
    notices,
    pickled,
    policy,
    steps_until_pruned,
    study_of,
)
from tune_guard.exceptions import ConfigError
from tune_guard.optuna import GuardPruner
from tune_guard.record import DETAIL, REASON, STEP
from tune_guard.rules import Plateau


def test_a_nan_is_cut_at_its_step_with_its_reason() -> None:
    """The trial is cut at the very step, and carries reason, step and detail."""
    trial = study_of(GuardPruner()).ask()
    assert steps_until_pruned(trial, [1.0, 0.9, NAN]) == 2
    attributes = trial.user_attrs
    assert (attributes[REASON], attributes[STEP]) == ("non_finite", 2)
    assert attributes[DETAIL]["best_value"] == 0.9
    assert attributes[DETAIL]["trial"] == "0"


def test_the_guard_judges_before_the_wrapped_pruner() -> None:
    """A non-finite value never reaches the wrapped pruner's statistics."""
    wrapped = ScriptedPruner()
    trial = study_of(GuardPruner(wrapped)).ask()
    assert steps_until_pruned(trial, [1.0, NAN]) == 1
    assert wrapped.asked == [0]


def test_the_guards_verdict_sticks() -> None:
    """A trial that was cut stays cut, whatever it reports later."""
    trial = study_of(GuardPruner()).ask()
    assert steps_until_pruned(trial, [1.0, NAN]) == 1
    trial.report(0.5, 2)
    assert trial.should_prune() is True
    assert trial.user_attrs[STEP] == 1


def test_repeated_questions_of_one_step_are_one_observation() -> None:
    """A trainer that reports several times in one epoch does not use up patience."""
    rule = Plateau(patience=3, min_delta=0.05, holds=())
    trial = study_of(GuardPruner(policy=policy(rule))).ask()
    cuts = []
    reports = [(0, 1.0), (0, 0.98), (0, 0.97), (1, 0.99), (2, 0.99), (3, 0.99)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        for step, value in reports:
            trial.report(value, step)
            cuts.append(trial.should_prune())
    assert cuts == [False, False, False, False, False, True]
    assert trial.user_attrs[STEP] == 3


def test_a_repeated_step_is_named_once(caplog: pytest.LogCaptureFixture) -> None:
    """``guard.report`` says it once, and Optuna's own warnings do not come on top."""
    guard = GuardPruner()
    trial = study_of(guard).ask()
    for value in (1.0, 0.9, 0.8):
        guard.report(trial, value, 0)
    assert len(notices(caplog)) == 1
    assert "Step 0" in caplog.text


def test_every_value_between_two_questions_is_judged() -> None:
    """A trial that is asked about rarely is cut for the step at which it broke."""
    trial = study_of(GuardPruner()).ask()
    for step, value in enumerate([1.0, 0.9, NAN, 0.8, 0.7]):
        trial.report(value, step)
    assert trial.should_prune() is True
    assert trial.user_attrs[STEP] == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"wrapped_pruner": "median"}, "`wrapped_pruner` must be an Optuna pruner"),
        ({"policy": "policy.yaml"}, "`policy` must be a Policy"),
        ({"mark_infeasible": "yes"}, "`mark_infeasible` must be True, False"),
        ({"most_attempts": 0}, "`most_attempts` must be a whole number >= 1"),
        ({"most_attempts": True}, "`most_attempts` must be a whole number >= 1"),
    ],
)
def test_a_wrong_argument_is_named(arguments: dict[str, Any], said: str) -> None:
    """Wrong configuration raises where it is written, and says what to do."""
    with pytest.raises(ConfigError, match=said):
        GuardPruner(**arguments)


def test_a_policy_in_the_pruners_place_is_told_where_it_belongs() -> None:
    """First of all, and not after every field of the policy."""
    with pytest.raises(ConfigError) as caught:
        GuardPruner(policy())  # type: ignore[arg-type]
    assert str(caught.value).startswith("Write GuardPruner(policy=...)")
    assert len(str(caught.value)) < 400


def test_a_pickled_guard_goes_on_judging() -> None:
    """A study pickles its pruner, also one that has watched trials by then."""
    guard = GuardPruner(MedianPruner())
    study = study_of(guard)
    steps_until_pruned(study.ask(), [1.0, NAN])
    copy = pickled(study)
    assert steps_until_pruned(copy.ask(), [1.0, 0.9, NAN]) == 2


def test_signals_reach_the_guard_of_a_pickled_study() -> None:
    """A worker's own guard object hands signals to the one that Optuna asks."""
    guard = GuardPruner()
    trial = pickled(study_of(guard)).ask()
    guard.report(trial, 1.0, 0, loss=NAN)
    assert trial.should_prune() is True


def test_samplers_still_see_hyperband() -> None:
    """Optuna shows samplers one bracket where the pruner is a Hyperband one."""
    inner = HyperbandPruner(max_resource=9)
    guard = GuardPruner(inner)
    study = study_of(guard)
    trial = study.ask()
    trial.report(1.0, 1)
    trial.should_prune()
    frozen = study.trials[0]
    assert isinstance(guard, HyperbandPruner)
    expected = inner._get_bracket_id(study, frozen)
    assert guard._get_bracket_id(study, frozen) == expected
    bracket = optuna.pruners._filter_study(study, frozen)
    assert type(bracket).__name__ == "_BracketStudy"
    assert isinstance(pickled(guard), HyperbandPruner)


def test_other_guards_are_no_hyperband() -> None:
    """The disguise is for the one case that needs it."""
    assert not isinstance(GuardPruner(MedianPruner()), HyperbandPruner)


def test_a_forgotten_pruner_is_named_once(caplog: pytest.LogCaptureFixture) -> None:
    """``load_study`` takes a MedianPruner when a worker names none."""
    guard = GuardPruner()
    study = study_of(MedianPruner())
    for _ in range(2):
        trial = study.ask()
        guard.report(trial, 1.0, 0)
    assert len(notices(caplog)) == 1
    assert "is MedianPruner, not the guard" in caplog.text


def test_a_study_with_another_pruner_can_still_be_asked() -> None:
    """``guard.should_prune`` judges and records without being the study's pruner."""
    guard = GuardPruner()
    trial = study_of(MedianPruner()).ask()
    guard.report(trial, NAN, 0)
    assert trial.should_prune() is False
    assert guard.should_prune(trial) is True
    assert trial.user_attrs[REASON] == "non_finite"


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
def test_a_guard_inside_another_pruner_is_not_told_off(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A pruner that wraps the guard asks it, so nothing was forgotten."""
    guard = GuardPruner()
    trial = study_of(PatientPruner(guard, patience=1)).ask()
    guard.report(trial, 1.0, 0)
    assert notices(caplog) == []


def test_the_exception_says_why() -> None:
    """``raise guard.pruned(trial)`` puts the sentence into Optuna's log."""
    guard = GuardPruner()
    trial = study_of(guard).ask()
    assert str(guard.pruned(trial)) == "The trial was pruned."
    steps_until_pruned(trial, [1.0, NAN])
    said = guard.pruned(trial)
    assert isinstance(said, optuna.TrialPruned)
    assert str(said).startswith("non_finite at step 1: value = nan")


def test_a_trial_that_is_in_no_storage_is_judged_and_not_stored() -> None:
    """Hand-made trials share one id; each is judged by its own values."""
    guard = GuardPruner()
    study = study_of(guard)
    sick, healthy = (
        optuna.trial.create_trial(value=1.0, intermediate_values={0: value})
        for value in (NAN, 1.0)
    )
    assert guard.prune(study, sick) is True
    assert guard.prune(study, healthy) is False
