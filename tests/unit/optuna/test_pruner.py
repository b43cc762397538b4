"""GuardPruner: the guard judges first, the wrapped pruner second."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import optuna
import pytest
from optuna.pruners import (
    BasePruner,
    HyperbandPruner,
    MedianPruner,
    PatientPruner,
    SuccessiveHalvingPruner,
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


def test_the_wrapped_pruners_verdict_is_recorded_with_its_class() -> None:
    """A healthy trial that the wrapped pruner cuts carries the pruner's name."""
    trial = study_of(GuardPruner(ScriptedPruner(1))).ask()
    assert steps_until_pruned(trial, [1.0, 0.5, 0.4]) == 1
    assert trial.user_attrs[REASON] == "pruner:ScriptedPruner"
    assert trial.user_attrs[STEP] == 1
    assert trial.user_attrs[DETAIL]["outcome"] == "pruner"


def test_the_verdict_is_a_plain_bool() -> None:
    """MedianPruner and others return numpy's bools, or nothing."""

    class Odd(BasePruner):
        def prune(self, study: Any, trial: Any) -> Any:
            return np.True_ if trial.intermediate_values else None

    trial = study_of(GuardPruner(Odd())).ask()
    assert trial.should_prune() is False
    trial.report(1.0, 0)
    assert trial.should_prune() is True


def test_the_wrapped_pruner_is_asked_once_per_report() -> None:
    """Asking again without a new report gives the same verdict from memory."""
    wrapped = ScriptedPruner(0)
    trial = study_of(GuardPruner(wrapped)).ask()
    trial.report(1.0, 0)
    assert [trial.should_prune() for _ in range(3)] == [True, True, True]
    assert wrapped.asked == [0]


def test_successive_halving_answers_the_same_when_asked_again() -> None:
    """Bare, it says True, then False, because it has stored the rung by then."""
    pruner = SuccessiveHalvingPruner(min_resource=1, reduction_factor=2)
    study = study_of(GuardPruner(pruner))
    for value in (1.0, 2.0):
        trial = study.ask()
        trial.report(value, 1)
        trial.should_prune()
    trial = study.ask()
    trial.report(3.0, 1)
    assert [trial.should_prune() for _ in range(3)] == [True, True, True]


def test_the_wrapped_pruners_verdict_does_not_stick() -> None:
    """A trial that runs on all the same is judged afresh, its reason taken back."""
    trial = study_of(GuardPruner(ScriptedPruner(1))).ask()
    assert steps_until_pruned(trial, [1.0, 1.0]) == 1
    trial.report(1.0, 2)
    assert trial.should_prune() is False
    assert trial.user_attrs[REASON] == ""


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


def test_the_studys_direction_is_the_mode() -> None:
    """A rising metric of a study that maximises is no plateau."""
    rule = Plateau(patience=2, holds=())
    rising = [0.5, 0.55, 0.6, 0.64, 0.67]
    guard = GuardPruner(policy=policy(rule, metric="val_recall"))
    up = study_of(guard, direction="maximize").ask()
    assert steps_until_pruned(up, rising) is None
    down = study_of(guard, direction="minimize").ask()
    assert steps_until_pruned(down, rising) == 2


def test_a_conflict_of_directions_is_named_once_and_the_policy_holds(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The policy's mode was written down; the study's may be Optuna's default."""
    rule = Plateau(patience=2, holds=())
    study = study_of(GuardPruner(policy=policy(rule, mode="max")))
    for _ in range(2):
        assert steps_until_pruned(study.ask(), [0.5, 0.6, 0.7, 0.8]) is None
    assert len(notices(caplog)) == 1
    assert "the guard uses 'max'" in caplog.text


def test_reported_values_have_the_name_of_the_policys_metric() -> None:
    """The record speaks of the metric as the user calls it."""
    trial = study_of(GuardPruner(policy=policy(metric="val/loss"))).ask()
    assert steps_until_pruned(trial, [NAN]) == 0
    assert trial.user_attrs[DETAIL]["metric"] == "val/loss"


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


def test_an_error_of_the_wrapped_pruner_leaves_the_trial_alone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A pruner's bug must not end a study; it is named once."""

    class Broken(BasePruner):
        def prune(self, study: Any, trial: Any) -> bool:
            msg = "no rungs"
            raise RuntimeError(msg)

    trial = study_of(GuardPruner(Broken())).ask()
    assert steps_until_pruned(trial, [1.0, 0.9, 0.8]) is None
    assert len(notices(caplog)) == 1
    assert "The wrapped Broken failed with RuntimeError('no rungs')" in caplog.text


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
