"""A guarded Optuna study of a digit classifier: ``python -m examples.optuna_study``.

The guard judges first and the wrapped MedianPruner second; each pruned trial
carries its reason. About twenty seconds on two cores.
"""

from __future__ import annotations

from pathlib import Path

import optuna

from examples.digits import train
from tune_guard import Policy
from tune_guard.optuna import GuardPruner, HardwareFault

EPOCHS = 15
FOLDER = Path("results")
STORAGE = f"sqlite:///{FOLDER}/optuna_study.db"

policy = Policy.default("val_loss", "min", warmup_steps=3, patience=5)
guard = GuardPruner(optuna.pruners.MedianPruner(n_warmup_steps=5), policy)


def objective(trial: optuna.Trial) -> float:
    """Train under suggested parameters; any of them may be beyond what works."""
    config = {
        "lr": trial.suggest_float("lr", 1e-4, 30.0, log=True),
        "weight_decay": trial.suggest_float("weight_decay", 1e-6, 1.0, log=True),
        "optimizer": trial.suggest_categorical("optimizer", ["sgd", "adam"]),
        "momentum": trial.suggest_float("momentum", 0.0, 0.99),
        "batch_size": 64,
        "hidden": 64,
        "warmup_epochs": 0,
        "schedule": "constant",
    }
    report = {"val_loss": float("inf")}
    for report in train(config, EPOCHS):
        signals = {key: report[key] for key in ("loss", "grad_norm", "lr")}
        guard.report(trial, report["val_loss"], report["epoch"], **signals)
        if trial.should_prune():
            raise guard.pruned(trial)
    return report["val_loss"]


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    study = optuna.create_study(
        storage=STORAGE,
        study_name="digits",
        load_if_exists=True,
        sampler=optuna.samplers.TPESampler(seed=4),
        pruner=guard,  # each worker names it: else Optuna takes a MedianPruner
    )
    # A fault of the machine fails the trial, which is then queued again.
    study.optimize(objective, n_trials=20, catch=(HardwareFault,))
    trials = study.trials_dataframe()
    print(trials.value_counts(["state", "user_attrs_tune_guard/reason"], dropna=False))
    print(f"Compare the reasons: tune-guard report {STORAGE}")
