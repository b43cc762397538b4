"""Half of the learning rates diverge: they are cut within a few steps, with the reason."""

from __future__ import annotations

import optuna
import optunahub


module = optunahub.load_module("pruners/tune_guard")
policy = module.Policy.default("value", patience=20)
guard = module.GuardPruner(optuna.pruners.MedianPruner(), policy)


def objective(trial: optuna.Trial) -> float:
    lr = trial.suggest_float("lr", 0.01, 10, log=True)
    x = 1.0
    for step in range(50):
        x -= lr * 2 * x  # gradient descent on x**2
        guard.report(trial, x * x, step, lr=lr)
        if trial.should_prune():
            raise guard.pruned(trial)
    return x * x


if __name__ == "__main__":
    study = optuna.create_study(pruner=guard, sampler=optuna.samplers.TPESampler(seed=0))
    study.optimize(objective, n_trials=20, catch=(module.HardwareFault,))
    for trial in study.trials:
        reason = trial.user_attrs.get("tune_guard/reason", "healthy")
        print(f"lr={trial.params['lr']:.3f} {trial.state.name} {reason}")
