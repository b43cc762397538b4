"""Run in an environment that holds the package with Optuna: one study, cut."""

from __future__ import annotations

import math

import optuna

from tune_guard import Policy
from tune_guard.optuna import GuardPruner

guard = GuardPruner(policy=Policy.default("value"))


def objective(trial: optuna.Trial) -> float:
    """Go non-finite at the third report, in the first trial alone."""
    trial.suggest_float("lr", 0.0, 1.0)
    for step, value in enumerate((1.0, 0.5, 0.2 if trial.number else math.nan)):
        trial.report(value, step)
        if trial.should_prune():
            raise guard.pruned(trial)
    return 0.2


optuna.logging.set_verbosity(optuna.logging.WARNING)
study = optuna.create_study(
    storage="sqlite:///study.db", study_name="smoke", pruner=guard
)
study.optimize(objective, n_trials=2)
for trial in study.trials:
    reason = trial.user_attrs.get("tune_guard/reason")
    print(trial.state.name, reason, trial.user_attrs.get("tune_guard/step"))
