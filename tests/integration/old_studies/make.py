"""Make a study with an old Optuna and print its database as SQL.

The dumps beside this file were made by it, each in an environment of its own::

    pip install "sqlalchemy<1.4" optuna==0.9.0;  python make.py > optuna_0_9_0.sql
    pip install "sqlalchemy<2" optuna==2.10.1;   python make.py > optuna_2_10_1.sql

SQLAlchemy before 1.4 wrote a check for every enumeration, and that is what makes
Optuna's own upgrade of such a database fail.
"""

import sqlite3
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

for name, kind in (("float", float), ("int", int), ("bool", bool)):
    setattr(np, name, kind)  # Optuna 0.9 uses what NumPy has taken out

import optuna  # noqa: E402 - not before NumPy is mended

OLD = optuna.__version__.startswith("0.")
PRUNED = optuna.structs.TrialPruned if OLD else optuna.TrialPruned


def objective(trial: Any) -> float:
    """Fall to the trial's number; the widest network fails."""
    trial.suggest_loguniform("lr", 1e-5, 1e-1)
    layers = trial.suggest_int("layers", 1, 4)
    optimizer = trial.suggest_categorical("optimizer", ["adam", "sgd"])
    number = trial.trial_id - 1 if OLD else trial.number
    value = 0.0
    for step in range(5):
        value = number + 1.0 / (step + 1)
        trial.report(value, step)
        if trial.should_prune(*([step] if OLD else [])):
            raise PRUNED
    if (layers, optimizer) == (4, "sgd"):
        raise ValueError(layers)
    return value


with tempfile.TemporaryDirectory() as folder:
    path = Path(folder, "study.db")
    study = optuna.create_study(
        storage=f"sqlite:///{path}",
        study_name="old",
        sampler=optuna.samplers.RandomSampler(seed=3),
        pruner=optuna.pruners.MedianPruner(n_startup_trials=2, n_warmup_steps=2),
    )
    study.optimize(objective, n_trials=12, catch=(ValueError,))
    sys.stdout.write("\n".join(sqlite3.connect(path).iterdump()) + "\n")
