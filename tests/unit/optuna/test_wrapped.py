"""The wrapped pruner: asked once per report, and cut only where a rule agrees."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from optuna.pruners import (
    BasePruner,
    HyperbandPruner,
    MedianPruner,
    SuccessiveHalvingPruner,
)

from tests.unit.optuna.support import (
    LEARNS,
    NAN,
    SLOW,
    ScriptedPruner,
    cut_of,
    notices,
    steps_until_pruned,
    study_of,
    study_with,
    thrifty,
)
from tune_guard import ConfigError
from tune_guard.optuna import GuardPruner
from tune_guard.policy import Policy
from tune_guard.record import DETAIL, REASON, STEP


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
