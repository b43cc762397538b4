"""What workers hand to the guard: reports, signals, and every odd thing."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Any

import numpy as np
import optuna
import pytest
import torch

from tests.unit.optuna.support import (
    NAN,
    CountingStorage,
    ScriptedPruner,
    notices,
    policy,
    study_of,
)
from tune_guard.optuna import GuardPruner, signals
from tune_guard.policy import Policy
from tune_guard.record import DETAIL, REASON, STEP
from tune_guard.rules import NonFinite, Plateau

if TYPE_CHECKING:
    from optuna.trial import BaseTrial

NORMS = policy(NonFinite(norm_alone=0))
"""Cuts a NaN gradient norm at once, whatever the loss says."""


@pytest.fixture
def guard() -> GuardPruner:
    """Return a guard that looks at gradient norms."""
    return GuardPruner(policy=NORMS)


def test_a_signal_cuts_the_trial_that_reported_it(guard: GuardPruner) -> None:
    """The record names the signal, not the objective that was fine."""
    trial = study_of(guard).ask()
    guard.report(trial, 1.0, 0, grad_norm=0.3)
    assert trial.should_prune() is False
    guard.report(trial, 0.9, 1, grad_norm=NAN)
    assert trial.should_prune() is True
    assert (trial.user_attrs[STEP], trial.user_attrs[DETAIL]["metric"]) == (
        1,
        "grad_norm",
    )


def test_signals_cost_no_storage_access(guard: GuardPruner) -> None:
    """They stay in the process: nothing is written but the reported value."""
    storage = CountingStorage()
    trial = study_of(guard, storage=storage).ask()
    for step in range(5):
        guard.observe(trial, step, lr=0.1)
        guard.report(trial, 1.0, step, grad_norm=0.3)
        assert trial.should_prune() is False
    assert storage.written == []
    assert trial.user_attrs == {}


def test_reporting_and_asking_step_by_step_has_nothing_to_say(
    guard: GuardPruner, caplog: pytest.LogCaptureFixture
) -> None:
    """A value that the guard took before Optuna did is not judged a second time."""
    trial = study_of(guard).ask()
    for step in range(5):
        guard.report(trial, 1.0, step, grad_norm=0.3)
        assert trial.should_prune() is False
    assert notices(caplog) == []


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        ("1.5", 1.5),
        (np.float32(1.5), 1.5),
        (torch.tensor([1.5]), 1.5),
        ([1.5], 1.5),
        (10**400, float("inf")),
        ("nan", NAN),
        ("text", None),
        (None, None),
        (torch.tensor([1.0, 2.0]), None),
        ({"loss": 1.0}, None),
        (True, None),
    ],
)
def test_any_value_can_be_reported(value: Any, stored: float | None) -> None:
    """A number in any dress is stored; what is none is left out. Nothing raises."""
    guard = GuardPruner(policy=policy(Plateau()))
    study = study_of(guard)
    trial = study.ask()
    guard.report(trial, value, 0)
    assert trial.should_prune() is False
    expected = {} if stored is None else {0: pytest.approx(stored, nan_ok=True)}
    assert study.trials[0].intermediate_values == expected


@pytest.mark.parametrize("step", [None, -1, "last", NAN, float("inf"), [1, 2]])
def test_a_step_that_is_none_is_named_and_not_reported(
    guard: GuardPruner, step: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Optuna would raise TypeError or ValueError into the training."""
    study = study_of(guard)
    trial = study.ask()
    guard.report(trial, 1.0, step)
    guard.report(trial, 1.0, step)
    assert study.trials[0].intermediate_values == {}
    assert len(notices(caplog)) == 1
    assert "`step` must be a number >= 0" in caplog.text


def test_signals_of_a_coming_step_are_judged_with_its_report() -> None:
    """An observation before the report of the same step is part of it."""
    guard = GuardPruner(policy=NORMS)
    trial = study_of(guard).ask()
    trial.report(1.0, 0)
    trial.should_prune()
    guard.observe(trial, 1, grad_norm=NAN)
    trial.report(0.9, 1)
    assert trial.should_prune() is True
    assert trial.user_attrs[STEP] == 1


def test_a_step_of_another_unit_does_not_age_the_reports() -> None:
    """Signals of batch 812 do not make the report of epoch 1 an old one."""
    guard = GuardPruner(policy=policy(NonFinite(), Plateau(patience=2, holds=())))
    trial = study_of(guard).ask()
    cuts = []
    for epoch in range(3):
        for batch in range(400):
            guard.observe(trial, epoch * 400 + batch, grad_norm=1.0)
        trial.report(1.0, epoch)
        cuts.append(trial.should_prune())
    assert cuts == [False, False, True]
    assert trial.user_attrs[REASON] == "plateau"


def test_signals_alone_are_judged_when_the_guard_is_asked(guard: GuardPruner) -> None:
    """A question between two reports sees what was observed; the step is the last."""
    trial = study_of(guard).ask()
    trial.report(1.0, 7)
    assert trial.should_prune() is False
    guard.observe(trial, grad_norm=NAN)
    assert trial.should_prune() is True
    assert trial.user_attrs[STEP] == 7


def test_signals_without_a_trial_belong_to_the_threads_last_one(
    guard: GuardPruner,
) -> None:
    """A framework that hides the trial reports through the thread."""
    trial = study_of(guard).ask()
    guard.observe(grad_norm=NAN)
    trial.report(1.0, 0)
    assert trial.should_prune() is False
    guard.observe(grad_norm=NAN)
    assert trial.should_prune() is True


def test_late_signals_of_an_ended_trial_do_not_hit_the_next(guard: GuardPruner) -> None:
    """What came after a trial's last question is not held against another one."""

    def objective(trial: optuna.Trial) -> float:
        trial.report(1.0, 0)
        assert trial.should_prune() is False
        guard.observe(grad_norm=NAN)
        return 1.0

    study = study_of(guard)
    study.optimize(objective, n_trials=3)
    assert [t.state.name for t in study.trials] == ["COMPLETE"] * 3


@pytest.mark.parametrize(
    "trial",
    [optuna.trial.FixedTrial({}), optuna.trial.create_trial(value=1.0)],
    ids=["fixed", "frozen"],
)
def test_fixed_and_frozen_trials_are_left_alone(
    guard: GuardPruner, trial: BaseTrial
) -> None:
    """The same objective runs on the best trial without the guard in the way."""
    guard.report(trial, NAN, 0, grad_norm=NAN)
    guard.observe(trial, 0, grad_norm=NAN)
    assert guard.should_prune(trial) is False
    assert isinstance(guard.pruned(trial), optuna.TrialPruned)
    assert trial.user_attrs == {}


def test_several_objectives_are_guarded() -> None:
    """Optuna has no reports there; the guard takes them and stores the reason."""
    wrapped = ScriptedPruner()
    guard = GuardPruner(wrapped, Policy.default("loss", "min"))
    study = study_of(guard, directions=["minimize", "maximize"])

    def objective(trial: optuna.Trial) -> tuple[float, float]:
        for step, loss in enumerate([1.0, 0.9, NAN]):
            guard.report(trial, loss, step)
            if guard.should_prune(trial):
                raise guard.pruned(trial)
        return 0.0, 0.0

    study.optimize(objective, n_trials=2)
    for trial in study.trials:
        assert trial.state.name == "PRUNED"
        assert (trial.user_attrs[REASON], trial.user_attrs[STEP]) == ("non_finite", 2)
    assert wrapped.asked == []  # Optuna's pruners know one objective only


def test_observations_have_their_own_steps_with_several_objectives() -> None:
    """Without reports there is no other clock than the signals' own."""
    guard = GuardPruner(policy=Policy.default("loss", "min"))
    trial = study_of(guard, directions=["minimize", "minimize"]).ask()
    guard.observe(trial, 3, loss=1.0)
    guard.observe(trial, 4, loss=NAN)
    assert guard.should_prune(trial) is True
    assert trial.user_attrs[STEP] == 4


def test_an_unknown_direction_is_named_and_the_guard_is_off(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """With several objectives the direction of a metric is not guessed."""
    guard = GuardPruner(policy=Policy.default("loss"))
    trial = study_of(guard, directions=["minimize", "maximize"]).ask()
    guard.report(trial, NAN, 0)
    assert guard.should_prune(trial) is False
    assert len(notices(caplog)) == 1
    assert 'Policy.default("loss", "min")' in caplog.text


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
def test_metric_names_give_the_direction_of_several_objectives() -> None:
    """A study that names its metrics says which one is maximised."""
    rule = Plateau(patience=2, holds=())
    guard = GuardPruner(policy=policy(rule, metric="accuracy"))
    study = study_of(guard, directions=["minimize", "maximize"])
    study.set_metric_names(["loss", "accuracy"])
    trial = study.ask()
    for step, value in enumerate([0.1, 0.2, 0.3, 0.4]):
        guard.report(trial, value, step)
        assert guard.should_prune(trial) is False


def test_a_rule_that_only_warns_is_recorded_without_a_cut() -> None:
    """Its first warning of a trial is stored; the trial runs to its end."""
    rule = Plateau(patience=2, holds=())
    guard = GuardPruner(policy=policy(rule, actions={"plateau": "warn"}))
    storage = CountingStorage()
    study = study_of(guard, storage=storage)
    trial = study.ask()
    for step in range(6):
        trial.report(1.0, step)
        assert trial.should_prune() is False
    study.tell(trial, 1.0)
    stored = study.trials[0].user_attrs
    assert (stored[REASON], stored[DETAIL]["warnings"]) == ("", ["plateau@2"])
    assert len(storage.written) == 3


def test_another_worker_goes_on_where_the_first_one_ended() -> None:
    """Optuna carries nothing over: the state is rebuilt from the stored values."""
    rule = Plateau(patience=3, holds=())
    storage = optuna.storages.InMemoryStorage()
    study = study_of(GuardPruner(policy=policy(rule)), storage=storage)
    first = study.ask()
    for step in range(3):
        first.report(0.5, step)
        assert first.should_prune() is False
    later = optuna.load_study(
        study_name=study.study_name,
        storage=storage,
        pruner=GuardPruner(policy=policy(rule)),
    )
    second = optuna.Trial(later, first._trial_id)
    second.report(0.5, 3)
    assert second.should_prune() is True
    assert second.user_attrs[STEP] == 3


def resumed(guard: GuardPruner, values: dict[int, float]) -> optuna.Trial:
    """Return a running trial of another worker, with its values in this order."""
    study = study_of(guard)
    running = optuna.trial.create_trial(
        state=optuna.trial.TrialState.RUNNING, intermediate_values=values
    )
    study.add_trial(running)
    return optuna.Trial(study, study.trials[0]._trial_id)


def test_stored_values_are_judged_by_step_in_whatever_order_they_come() -> None:
    """A database returns another worker's reports in any order."""
    guard = GuardPruner(policy=policy(Plateau(patience=3, holds=())))
    trial = resumed(guard, {2: 0.5, 0: 0.5, 1: 0.5})
    trial.report(0.5, 3)
    assert trial.should_prune() is True
    assert trial.user_attrs[STEP] == 3


def test_the_wrapped_pruners_verdict_is_of_the_highest_step() -> None:
    """So is Optuna's own last step, whatever order the values come in."""
    trial = resumed(GuardPruner(ScriptedPruner(2)), {2: 0.5, 0: 0.7, 1: 0.6})
    assert trial.should_prune() is True
    assert (trial.user_attrs[STEP], trial.user_attrs[DETAIL]["value"]) == (2, 0.5)


def test_another_worker_honours_a_cut_that_is_stored(guard: GuardPruner) -> None:
    """A verdict on signals, which are not stored, holds in every process."""
    study = study_of(guard)
    trial = study.ask()
    guard.report(trial, 1.0, 0, grad_norm=NAN)
    assert trial.should_prune() is True
    study.pruner = GuardPruner(policy=NORMS)
    again = optuna.Trial(study, trial._trial_id)
    again.report(0.9, 1)
    assert again.should_prune() is True
    assert again.user_attrs[STEP] == 0


def test_watches_are_freed_trial_by_trial(guard: GuardPruner) -> None:
    """A thread that runs trials one by one keeps the last, while the storage lives."""

    def objective(trial: optuna.Trial) -> float:
        trial.report(1.0, 0)
        trial.should_prune()
        return 1.0

    study = study_of(guard)
    study.optimize(objective, n_trials=20)
    assert len(guard._judge._watches) == 1
    del study
    gc.collect()
    assert len(guard._judge._watches) == 0


def test_watches_are_bounded_and_open_trials_keep_theirs(
    guard: GuardPruner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trials that are asked for and never told cannot pile up."""
    monkeypatch.setattr(signals, "MOST_TRIALS", 3)
    study = study_of(guard)
    trials = [study.ask() for _ in range(10)]
    for trial in trials:
        trial.report(1.0, 0)
        trial.should_prune()
    assert len(guard._judge._watches) == 3
    guard.observe(trials[-2], grad_norm=NAN)
    assert trials[-2].should_prune() is True


def test_a_study_inside_a_study_frees_no_watch_of_the_outer_one(
    guard: GuardPruner,
) -> None:
    """Signals of a trial outlive another study that its objective runs."""
    storage = optuna.storages.InMemoryStorage()

    def inner(trial: optuna.Trial) -> float:
        trial.report(1.0, 0)
        trial.should_prune()
        return 1.0

    def outer(trial: optuna.Trial) -> float:
        trial.report(1.0, 0)
        trial.should_prune()
        guard.observe(trial, grad_norm=NAN)
        study_of(guard, storage=storage).optimize(inner, n_trials=2)
        assert trial.should_prune() is True
        raise optuna.TrialPruned

    study = study_of(guard, storage=storage)
    study.optimize(outer, n_trials=1)
    assert study.trials[0].user_attrs[REASON] == "non_finite"


def test_threads_judge_their_own_trials(guard: GuardPruner) -> None:
    """With ``n_jobs`` each trial is cut for what it reported itself."""

    def objective(trial: optuna.Trial) -> float:
        sick = trial.number % 3 == 0
        for step in range(5):
            norm = NAN if sick and step == 3 else 1.0
            guard.report(trial, 1.0, step, grad_norm=norm)
            if trial.should_prune():
                raise guard.pruned(trial)
        return 1.0

    study = study_of(guard)
    study.optimize(objective, n_trials=40, n_jobs=4)
    cut = {t.number for t in study.trials if t.state.name == "PRUNED"}
    assert cut == {number for number in range(40) if number % 3 == 0}
    assert {study.trials[n].user_attrs[STEP] for n in cut} == {3}
