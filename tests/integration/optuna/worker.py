"""A worker of a study, run as a process: ``python -m tests.integration.optuna.worker``.

Arguments: what to do, the storage's address, the study's name, and a number.
"""

from __future__ import annotations

import os
import sys
import warnings

import optuna
from optuna.exceptions import ExperimentalWarning
from optuna.storages import (
    BaseStorage,
    GrpcStorageProxy,
    JournalStorage,
    RDBStorage,
    RetryHeartbeatStaleTrialCallback,
    get_storage,
    run_grpc_proxy_server,
)
from optuna.storages.journal import JournalFileBackend, JournalRedisBackend

from tune_guard.optuna import GuardPruner
from tune_guard.policy import Policy
from tune_guard.rules import NonFinite, Plateau

NAN = float("nan")
POLICY = Policy(metric="value", rules=(NonFinite(), Plateau(patience=3, holds=())))


def open_storage(address: str) -> BaseStorage:
    """Open a storage by its address; ``rdb+`` is without Optuna's cache."""
    kind, _, rest = address.partition(":")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExperimentalWarning)
        if kind == "journal":
            return JournalStorage(JournalFileBackend(rest))
        if kind == "redis":
            return JournalStorage(JournalRedisBackend(address))
        if kind == "grpc":
            return GrpcStorageProxy(host="127.0.0.1", port=int(rest))
        if kind == "heartbeat+sqlite":
            return RDBStorage(
                f"sqlite:{rest}",
                heartbeat_interval=1,
                grace_period=2,
                heartbeat_stale_trial_callback=RetryHeartbeatStaleTrialCallback(),
            )
        if kind.startswith("rdb+"):
            return RDBStorage(address.removeprefix("rdb+"))
        return get_storage(address)


def open_study(address: str, name: str) -> optuna.Study:
    """Load a study the way a worker must: with the guard."""
    median = optuna.pruners.MedianPruner(n_startup_trials=2)
    return optuna.load_study(
        study_name=name,
        storage=open_storage(address),
        pruner=GuardPruner(median, POLICY),
    )


def is_sick(number: int) -> bool:
    """Whether the trial of this number goes NaN, at step ``sick_step``."""
    return number % 3 == 0


def sick_step(number: int) -> int:
    """Return the step at which a sick trial goes NaN."""
    return 2 + number % 2


def objective(trial: optuna.Trial) -> float:
    """Train: every third trial goes NaN, every third is far from the best."""
    trial.suggest_float("x", 0, 1)
    number = trial.number
    level = 10.0 if number % 3 == 1 else 0.0
    for step in range(5):
        broken = is_sick(number) and step == sick_step(number)
        trial.report(NAN if broken else level - step, step)
        if trial.should_prune():
            raise optuna.TrialPruned
    return level


def run(address: str, name: str, count: int) -> None:
    """Run trials as one of several workers."""
    open_study(address, name).optimize(objective, n_trials=count)


def leave_open(address: str, name: str, count: int) -> None:
    """Report the same value a few times, and die without telling anyone."""
    trial = open_study(address, name).ask()
    for step in range(count):
        trial.report(0.5, step)
        assert not trial.should_prune()
    print(trial._trial_id, flush=True)
    os._exit(0)


def hang_when_cut(address: str, name: str, _: int) -> None:
    """Be cut for a NaN, say so, and then wait to be killed."""

    def hang(trial: optuna.Trial) -> float:
        trial.report(NAN, 0)
        assert trial.should_prune()
        print("cut", flush=True)
        sys.stdin.read()
        return 0.0

    open_study(address, name).optimize(hang, n_trials=1)


def serve(address: str, _: str, port: int) -> None:
    """Be the gRPC proxy of a storage, until it is ended."""
    run_grpc_proxy_server(open_storage(address), host="127.0.0.1", port=port)


if __name__ == "__main__":
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    warnings.simplefilter("ignore", ExperimentalWarning)
    tasks = (run, leave_open, hang_when_cut, serve)
    task = {function.__name__: function for function in tasks}[sys.argv[1]]
    task(sys.argv[2], sys.argv[3], int(sys.argv[4]))
