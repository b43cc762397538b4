"""TrialGuard in real Optuna objectives: the reason is in the storage."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna.trial import TrialState

from tune_guard import Policy, TrialGuard
from tune_guard.optuna import GuardPruner, HardwareFault
from tune_guard.rules import GpuFault, GradientExplosion, NonFinite, Plateau

POLICY = Policy(
    metric="val_loss",
    mode="min",
    rules=(
        NonFinite(),
        GradientExplosion(min_history=5, k=2, holds=()),
        Plateau(patience=3, holds=()),
        GpuFault(),
    ),
)
STEPS = 20
GUARD = GuardPruner(policy=POLICY)


@pytest.fixture(autouse=True)
def _quiet() -> None:
    optuna.logging.set_verbosity(optuna.logging.ERROR)


@pytest.fixture(params=["memory", "sqlite", "journal"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """Return a storage of each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'study.db'}"
    if request.param == "journal":
        backend = optuna.storages.journal.JournalFileBackend(str(tmp_path / "log"))
        return optuna.storages.JournalStorage(backend)
    return optuna.storages.InMemoryStorage()


def objective(fate: str, taken: list[int]) -> Callable[[optuna.Trial], float]:
    """Return an objective of six epochs that falls sick as the fate says."""

    def train(trial: optuna.Trial) -> float:
        trial.suggest_float("lr", 1e-4, 1e-1)
        guard = TrialGuard(POLICY, trial=trial)
        value = 1.0
        for epoch in range(6):
            for step in range(STEPS):
                number = epoch * STEPS + step
                late = number >= 50
                if fate == "lost" and late:
                    guard._trial.streams.pulse(number, {"gpu_lost": True})
                loss = float("nan") if fate == "nan" and late else 1.0
                norm = 500.0 if fate == "explode" and late else 1.0
                guard.step(loss, grad_norm=norm)
                taken.append(number)
            value = 1.0 if fate == "flat" else 1.0 / (epoch + 1)
            guard.report({"val_loss": value}, step=epoch)
        return value

    return train


def run(storage: Any, pruner: Any, fate: str) -> tuple[Any, int]:
    """Run one trial; return it as the storage has it, and its last step."""
    taken: list[int] = []
    study = optuna.create_study(storage=storage, pruner=pruner, study_name=fate)
    study.optimize(objective(fate, taken), n_trials=1, catch=(HardwareFault,))
    return optuna.load_study(study_name=fate, storage=storage).trials[0], taken[-1]


@pytest.mark.parametrize(
    "pruner", [GUARD, optuna.pruners.NopPruner()], ids=["guard", "foreign"]
)
@pytest.mark.parametrize(
    ("fate", "reason", "step"),
    [("nan", "non_finite", 50), ("explode", "gradient_explosion", 51)],
)
def test_a_stop_between_reports_prunes_at_once(
    storage: Any, pruner: Any, fate: str, reason: str, step: int
) -> None:
    """No step follows; the stored reason says for which step it holds."""
    trial, last = run(storage, pruner, fate)
    assert trial.state is TrialState.PRUNED
    assert last == step - 1
    assert trial.user_attrs["tune_guard/reason"] == reason
    assert trial.user_attrs["tune_guard/step"] == step
    detail = trial.user_attrs["tune_guard/detail"]
    assert (detail["outcome"], detail["blame"]) == ("guard", "config")
    assert list(trial.intermediate_values) == [0, 1]


@pytest.mark.parametrize(
    "pruner", [GUARD, optuna.pruners.NopPruner()], ids=["guard", "foreign"]
)
def test_a_report_is_judged_before_it_is_pruned(storage: Any, pruner: Any) -> None:
    """The value that stopped the trial is stored with it."""
    trial, _ = run(storage, pruner, "flat")
    assert trial.state is TrialState.PRUNED
    assert trial.user_attrs["tune_guard/reason"] == "plateau"
    assert list(trial.intermediate_values) == [0, 1, 2, 3]


def test_a_fault_of_the_machine_fails_and_is_queued_again(storage: Any) -> None:
    """The sampler learns nothing; the parameters wait for another run."""
    trial, _ = run(storage, GUARD, "lost")
    assert trial.state is TrialState.FAIL
    assert trial.user_attrs["tune_guard/reason"] == "gpu_fault"
    study = optuna.load_study(study_name="lost", storage=storage)
    waiting = study.get_trials(states=(TrialState.WAITING,))
    assert [t.user_attrs["tune_guard/retry_of"] for t in waiting] == [0]


def test_a_fault_beside_a_foreign_pruner_fails_too(storage: Any) -> None:
    """Its reason is stored by the guard itself."""
    trial, _ = run(storage, optuna.pruners.NopPruner(), "lost")
    assert trial.state is TrialState.FAIL
    assert trial.user_attrs["tune_guard/reason"] == "gpu_fault"


def test_a_healthy_trial_completes(storage: Any) -> None:
    """With all of its reports, and no reason."""
    trial, last = run(storage, GUARD, "healthy")
    assert trial.state is TrialState.COMPLETE
    assert last == 6 * STEPS - 1
    assert len(trial.intermediate_values) == 6
    assert "tune_guard/reason" not in trial.user_attrs


def test_what_the_wrapped_pruner_says_ends_the_trial() -> None:
    """``report`` raises for it, as for the guard's own verdict."""
    threshold = optuna.pruners.ThresholdPruner(upper=0.6)
    pruner = GuardPruner(threshold, policy=POLICY)
    trial, _ = run(optuna.storages.InMemoryStorage(), pruner, "healthy")
    assert trial.state is TrialState.PRUNED
    assert trial.user_attrs["tune_guard/reason"] == "pruner:ThresholdPruner"


def test_a_bad_configuration_is_marked_for_tpe() -> None:
    """A trial that broke late must not be taken for a good one."""
    trial, _ = run(optuna.storages.InMemoryStorage(), GUARD, "explode")
    assert trial.system_attrs["constraints:tune_guard"] == 1.0


def test_the_studys_direction_stands_for_the_mode() -> None:
    """A policy without a mode is complete with a trial."""
    study = optuna.create_study(direction="maximize")
    guard = TrialGuard(
        Policy(metric="acc", rules=(Plateau(patience=1, holds=()),)),
        trial=study.ask(),
    )
    guard.check_epoch(0.5)
    assert not guard.check_epoch(0.6).stop
    assert guard.check_epoch(0.5).stop


def test_a_report_without_the_objective_does_not_reach_optuna() -> None:
    """Optuna takes the objective only; the rest is judged all the same."""
    study = optuna.create_study()
    trial = study.ask()
    guard = TrialGuard(POLICY, trial=trial)
    assert not guard.report({"train_loss": 1.0}).stop
    with pytest.raises(optuna.TrialPruned, match="non_finite at step 1"):
        guard.report({"train_loss": float("nan")})
    assert study.trials[0].intermediate_values == {}


def test_a_storage_that_refuses_does_not_keep_the_trial_alive(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Beside a foreign pruner: pruned all the same, with one notice."""
    study = optuna.create_study(pruner=optuna.pruners.NopPruner())
    trial = study.ask()
    monkeypatch.setattr(trial, "set_user_attr", lambda *_: 1 / 0)
    with pytest.raises(optuna.TrialPruned):
        TrialGuard(POLICY, trial=trial).step(float("nan"))


def test_a_fixed_trial_is_guarded_too() -> None:
    """It has no study: the guard alone ends it."""
    fixed: Any = optuna.trial.FixedTrial({"lr": 0.1})
    guard = TrialGuard(POLICY, trial=fixed)
    guard.report({"val_loss": 1.0})
    with pytest.raises(optuna.TrialPruned):
        guard.step(float("nan"))


@pytest.mark.parametrize(
    "pruner", [GUARD, optuna.pruners.NopPruner()], ids=["guard", "foreign"]
)
def test_several_objectives_are_guarded_without_reports(
    storage: Any, pruner: Any
) -> None:
    """Optuna takes no reports of such a trial; it is cut all the same."""
    taken: list[int] = []
    study = optuna.create_study(
        storage=storage, pruner=pruner, directions=["minimize", "minimize"]
    )
    train = objective("nan", taken)
    study.optimize(lambda trial: (train(trial), 1.0), n_trials=1)
    (trial,) = study.trials
    assert trial.state == TrialState.PRUNED
    assert trial.user_attrs["tune_guard/reason"] == "non_finite"
    assert taken[-1] == 49
