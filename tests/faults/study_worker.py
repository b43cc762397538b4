"""A worker of a study that something happens to.

``python -m tests.faults.study_worker TASK ADDRESS STUDY`` prints a line when it is
where it is to be killed.
"""

from __future__ import annotations

import os
import signal
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import optuna
from optuna.storages import RDBStorage, RetryHeartbeatStaleTrialCallback

from tune_guard.optuna import GuardPruner, StaleTrialCallback, _engine

NAN = float("nan")
FOREVER_S = 10_000


def storage_at(address: str, *, retries: bool) -> Any:
    """Open a storage; a SQLite file with a heartbeat of one second."""
    if address.startswith("redis"):
        from optuna.storages import JournalStorage
        from optuna.storages.journal import JournalRedisBackend

        return JournalStorage(JournalRedisBackend(address))
    callback: Any = RetryHeartbeatStaleTrialCallback if retries else StaleTrialCallback
    return RDBStorage(
        address,
        heartbeat_interval=1,
        grace_period=2,
        heartbeat_stale_trial_callback=callback(),
    )


def study_at(address: str, name: str, *, retries: bool = False) -> optuna.Study:
    """Return a study with the guard; Optuna's own callback retries if asked for."""
    return optuna.create_study(
        study_name=name,
        storage=storage_at(address, retries=retries),
        pruner=GuardPruner(),
        load_if_exists=True,
    )


def ready() -> None:
    """Say that the worker is where it is to be killed."""
    print("ready", flush=True)


def report_then_hang(trial: optuna.Trial) -> float:
    """Report twice, and wait to be killed."""
    trial.suggest_float("x", 0, 1)
    for step in range(2):
        trial.report(1.0, step)
        assert not trial.should_prune()
    ready()
    time.sleep(FOREVER_S)
    return 0.0


def cut_then_hang(trial: optuna.Trial) -> float:
    """Be cut for a NaN, and be killed before Optuna hears of it."""
    trial.suggest_float("x", 0, 1)
    trial.report(NAN, 0)
    assert trial.should_prune()
    ready()
    time.sleep(FOREVER_S)
    return 0.0


def die_recording(trial: optuna.Trial) -> float:
    """Be killed when the first attribute of the record has been written."""
    trial.suggest_float("x", 0, 1)
    trial.report(NAN, 0)
    write = _engine.write_attribute

    def write_and_die(*arguments: Any) -> None:
        write(*arguments)
        ready()
        os.kill(os.getpid(), signal.SIGKILL)

    _engine.write_attribute = write_and_die
    trial.should_prune()
    return 0.0


def cut_on_word(trial: optuna.Trial) -> float:
    """Report a NaN, and ask for the verdict when a file says so."""
    trial.suggest_float("x", 0, 1)
    trial.report(NAN, 0)
    ready()
    while not Path("go").exists():
        time.sleep(0.05)
    if trial.should_prune():
        raise optuna.TrialPruned
    return 0.0


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    optuna.logging.set_verbosity(optuna.logging.CRITICAL)
    objective = globals()[sys.argv[1]]
    study_at(sys.argv[2], sys.argv[3]).optimize(objective, n_trials=1)
