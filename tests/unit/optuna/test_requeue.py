"""Whose fault it is decides what the sampler learns."""

from __future__ import annotations

from typing import Any

import optuna
import pytest
from optuna.samplers import CmaEsSampler, RandomSampler, TPESampler

from tests.unit.optuna.support import (
    NAN,
    CountingStorage,
    TooHot,
    pickled,
    policy,
    steps_until_pruned,
    study_of,
)
from tune_guard.optuna import ATTEMPT, RETRY_OF, GuardPruner, HardwareFault
from tune_guard.record import DETAIL, REASON, StopRecord

CONSTRAINT = "constraints:tune_guard"


def hot(most_attempts: int = 3) -> GuardPruner:
    """Return a guard that blames the machine above 90 degrees."""
    return GuardPruner(policy=policy(TooHot()), most_attempts=most_attempts)


def run_hot(guard: GuardPruner, n_trials: int, **more: Any) -> optuna.Study:
    """Run trials on a GPU that is always too hot."""

    def objective(trial: optuna.Trial) -> float:
        trial.suggest_float("x", 0, 1)
        guard.report(trial, 1.0, 0, gpu_temperature_celsius=95, gpu_uuid="GPU-1")
        if trial.should_prune():
            raise guard.pruned(trial)
        return 1.0

    study = study_of(guard, **more)
    study.optimize(objective, n_trials=n_trials, catch=(HardwareFault,))
    return study


def test_a_fault_of_the_machine_fails_the_trial_with_its_reason() -> None:
    """FAIL teaches no sampler anything; the record says who is to blame."""
    study = run_hot(hot(), 1, sampler=TPESampler(seed=0))
    trial = study.trials[0]
    assert (trial.state.name, trial.user_attrs[REASON]) == ("FAIL", "too_hot")
    assert trial.user_attrs[DETAIL]["blame"] == "infrastructure"
    assert trial.user_attrs[DETAIL]["gpu_uuid"] == "GPU-1"
    assert CONSTRAINT not in trial.system_attrs


def test_its_parameters_are_queued_again_and_marked() -> None:
    """The next trial repeats them, and says which trial it repeats."""
    study = run_hot(hot(), 2)
    first, second = study.trials[:2]
    assert second.params == first.params
    assert second.user_attrs[RETRY_OF] == 0
    assert second.user_attrs[ATTEMPT] == 2
    assert second.user_attrs[DETAIL]["attempt"] == 2


def test_parameters_are_queued_a_bounded_number_of_times() -> None:
    """After the last attempt the study goes on with new parameters."""
    study = run_hot(hot(most_attempts=2), 4)
    xs = [trial.params["x"] for trial in study.trials if trial.params]
    assert xs[0] == xs[1] != xs[2] == xs[3]
    assert not [t for t in study.trials if t.state.name == "WAITING"]


def test_one_attempt_never_queues() -> None:
    """Who wants no retries gets none."""
    study = run_hot(hot(most_attempts=1), 1)
    assert len(study.trials) == 1


def test_asking_again_raises_again_and_queues_once() -> None:
    """The fault is final for the trial, and its retry is one."""
    guard = hot()
    study = study_of(guard)
    trial = study.ask()
    guard.report(trial, 1.0, 0, gpu_temperature_celsius=95)
    for _ in range(2):
        with pytest.raises(HardwareFault, match="too_hot at step 0: The GPU is at 95"):
            trial.should_prune()
    assert len(study.get_trials(states=[optuna.trial.TrialState.WAITING])) == 1


def test_nothing_is_queued_while_the_same_parameters_wait() -> None:
    """Two workers on one faulty machine do not double the queue."""
    guard = hot()
    study = study_of(guard)
    space = {"x": optuna.distributions.FloatDistribution(0, 1)}
    for _ in range(2):
        study.enqueue_trial({"x": 0.5})
    trials = [study.ask(space) for _ in range(2)]
    for trial in trials:
        guard.report(trial, 1.0, 0, gpu_temperature_celsius=95)
        with pytest.raises(HardwareFault):
            trial.should_prune()
    assert len(study.get_trials(states=[optuna.trial.TrialState.WAITING])) == 1


def test_a_queue_that_fails_does_not_hide_the_fault(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The trial must fail all the same, or the sampler would learn from it."""

    def refuse(*_: Any, **__: Any) -> None:
        msg = "database is gone"
        raise RuntimeError(msg)

    guard = hot()
    study = study_of(guard)
    trial = study.ask()
    monkeypatch.setattr(study, "enqueue_trial", refuse)
    guard.report(trial, 1.0, 0, gpu_temperature_celsius=95)
    with pytest.raises(HardwareFault):
        trial.should_prune()
    assert "database is gone" in caplog.text


def test_the_fault_can_be_pickled() -> None:
    """Pools hand a worker's exception to the parent as a pickle."""
    fault = HardwareFault("too hot", StopRecord(reason="too_hot"))
    copy = pickled(fault)
    assert (str(copy), copy.record) == (str(fault), fault.record)


def test_the_fault_is_logged_as_one_sentence() -> None:
    """Optuna logs a failed trial by the representation of its error."""
    fault = HardwareFault("too hot [host1]", StopRecord(reason="too_hot"))
    assert repr(fault) == "HardwareFault('too hot [host1]')"


@pytest.mark.parametrize(
    ("sampler", "mark", "marked"),
    [
        (TPESampler, "auto", True),
        (RandomSampler, "auto", False),
        (RandomSampler, True, True),
        (TPESampler, False, False),
    ],
)
def test_a_bad_configuration_is_infeasible_for_tpe(
    sampler: Any, mark: Any, marked: bool
) -> None:
    """TPE would take a trial that broke late for a good one."""
    guard = GuardPruner(mark_infeasible=mark)
    study = study_of(guard, sampler=sampler(seed=0))
    trial = study.ask()
    assert steps_until_pruned(trial, [1.0, NAN]) == 1
    attributes = study.trials[0].system_attrs
    assert attributes.get(CONSTRAINT) == (1.0 if marked else None)


def test_cma_es_is_never_given_a_constraint() -> None:
    """It would warn about each one (and warnings are errors here)."""
    guard = GuardPruner()

    def objective(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", 0, 1) + trial.suggest_float("y", 0, 1)
        if steps_until_pruned(trial, [x, NAN if x > 1 else x]) is not None:
            raise guard.pruned(trial)
        return x

    study = study_of(guard, sampler=CmaEsSampler(seed=0))
    study.optimize(objective, n_trials=15)
    assert {t.state.name for t in study.trials} == {"COMPLETE", "PRUNED"}


def test_the_constraint_comes_after_the_record() -> None:
    """One system attribute more, once the reason is safe."""
    storage = CountingStorage()
    study = study_of(GuardPruner(), storage=storage, sampler=TPESampler(seed=0))
    steps_until_pruned(study.ask(), [NAN])
    assert storage.written[3:] == [CONSTRAINT]
