from __future__ import annotations

from pathlib import Path

import optuna
from optuna.pruners import MedianPruner
from optuna.trial import TrialState
import optunahub
import pytest


ROOT = Path(__file__).resolve().parents[3]
module = optunahub.load_local_module("pruners/tune_guard", registry_root=str(ROOT))


def study_with(values: list[float]) -> optuna.Study:
    guard = module.GuardPruner(MedianPruner())

    def objective(trial: optuna.Trial) -> float:
        for step, value in enumerate(values):
            trial.report(value, step)
            if trial.should_prune():
                raise guard.pruned(trial)
        return values[-1]

    study = optuna.create_study(pruner=guard)
    study.optimize(objective, n_trials=1)
    return study


def test_a_sick_trial_is_cut_with_its_reason() -> None:
    trial = study_with([1.0, 0.5, float("nan"), 0.4]).trials[0]
    assert trial.state is TrialState.PRUNED
    assert trial.user_attrs["tune_guard/reason"] == "non_finite"
    assert trial.user_attrs["tune_guard/step"] == 2


def test_a_healthy_trial_is_left_alone() -> None:
    trial = study_with([1.0, 0.5, 0.4]).trials[0]
    assert trial.state is TrialState.COMPLETE
    assert trial.user_attrs == {}


@pytest.mark.parametrize("name", module.__all__)
def test_what_is_promised_is_there(name: str) -> None:
    assert getattr(module, name).__module__.startswith("tune_guard")
