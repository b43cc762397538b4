"""Faults of workers and databases under Optuna studies, each with real processes."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import optuna
from optuna.storages import RDBStorage, fail_stale_trials

from tests.faults.ledger import Count, Verdict, compare
from tests.faults.processes import free_port, line_of, module, started, wait_for
from tests.integration.optuna.worker import is_sick, sick_step
from tune_guard import Policy, load_sweep
from tune_guard.optuna import RETRY_OF, GuardPruner, HardwareFault

NAME = "study"
NAN = float("nan")


def recorded(source: str) -> list[tuple[Any, Verdict]]:
    """Return number and verdict of every trial that others than a pruner ended."""
    trials = load_sweep(source).trials
    found = [(int(trial.id), (trial.reason, trial.step)) for trial in trials]
    return [entry for entry in found if not entry[1][0].startswith("pruner:")]


def two_workers(folder: Path) -> Count:
    """Two processes share a study; every third trial goes NaN."""
    url = f"sqlite:///{folder}/study.db"
    optuna.create_study(study_name=NAME, storage=url)
    command = module("integration.optuna.worker", "run", url, NAME, "9")
    with started(*command) as one, started(*command) as other:
        one.wait()
        other.wait()
    expected: dict[int, Verdict | None] = {
        number: ("non_finite", sick_step(number)) if is_sick(number) else None
        for number in range(18)
    }
    return compare(expected, recorded(url))


def _killed(folder: Path, task: str) -> optuna.Study:
    """Let a worker do its task until it says so, kill it, and find its trial stale."""
    url = f"sqlite:///{folder}/study.db"
    with started(*module("faults.study_worker", task, url, NAME)) as worker:
        line_of(worker)
        worker.kill()
        worker.wait()
    from tests.faults.study_worker import study_at

    study = study_at(url, NAME, retries=task == "cut_then_hang")
    while study.trials[0].state.name != "FAIL":
        fail_stale_trials(study)
    return study


def _healthy(trial: optuna.Trial) -> float:
    trial.suggest_float("x", 0, 1)
    trial.report(1.0, 0)
    if trial.should_prune():
        raise optuna.TrialPruned
    return 1.0


def stale(folder: Path) -> Count:
    """The worker of a healthy trial is killed: a reason, and a clean retry."""
    study = _killed(folder, "report_then_hang")
    study.optimize(_healthy, n_trials=1)
    url = f"sqlite:///{folder}/study.db"
    return compare({0: ("stalled", 1), 1: None}, recorded(url))


def inherited(folder: Path) -> Count:
    """The worker is killed after the cut: Optuna's own retry carries its record."""
    study = _killed(folder, "cut_then_hang")
    study.optimize(_healthy, n_trials=1)
    url = f"sqlite:///{folder}/study.db"
    return compare({0: ("non_finite", 0), 1: None}, recorded(url))


def half_written(folder: Path) -> Count:
    """The worker is killed between two attributes of a record."""
    study = _killed(folder, "die_recording")
    study.optimize(_broken, n_trials=1)
    url = f"sqlite:///{folder}/study.db"
    return compare({0: ("stalled", 0), 1: ("non_finite", 0)}, recorded(url))


def _broken(trial: optuna.Trial) -> float:
    trial.suggest_float("x", 0, 1)
    trial.report(NAN, 0)
    if trial.should_prune():
        raise optuna.TrialPruned
    return 1.0


def gpu_lost(folder: Path) -> Count:
    """A machine breaks the same parameters three times; then they are given up."""
    url = f"sqlite:///{folder}/study.db"
    guard = GuardPruner(policy=Policy.default("value", "min"))
    study = optuna.create_study(study_name=NAME, storage=url, pruner=guard)

    def objective(trial: optuna.Trial) -> float:
        trial.suggest_float("x", 0, 1)
        lost = trial.number == 0 or RETRY_OF in trial.user_attrs
        for step in range(3):
            guard.report(trial, 1.0, step, gpu_xid=79 if lost and step == 1 else 0)
            if trial.should_prune():
                raise guard.pruned(trial)
        return 1.0

    study.optimize(objective, n_trials=4, catch=(HardwareFault,))
    fault = ("gpu_fault", 1)
    return compare({0: fault, 1: fault, 2: fault, 3: None}, recorded(url))


def locked(folder: Path) -> Count:
    """Another process holds the SQLite file locked from the cut on, for long."""
    url = f"sqlite:///{folder}/study.db"
    storage = RDBStorage(url, engine_kwargs={"connect_args": {"timeout": 0}})
    study = optuna.create_study(study_name=NAME, storage=storage, pruner=GuardPruner())
    other = sqlite3.connect(folder / "study.db", isolation_level=None)

    def objective(trial: optuna.Trial) -> float:
        trial.report(NAN, 0)
        other.execute("BEGIN IMMEDIATE")
        cut = trial.should_prune()
        other.execute("ROLLBACK")
        if cut:
            raise optuna.TrialPruned
        return 1.0

    study.optimize(objective, n_trials=1)
    other.close()
    return compare({0: ("non_finite", 0)}, recorded(url))


def server_gone(folder: Path) -> Count:
    """The database's server is killed between the report and the cut."""
    if shutil.which("redis-server") is None:
        return Count(remarks=["database gone: there is no redis-server here"])
    port = free_port()
    url = f"redis://127.0.0.1:{port}/0"
    with _redis(folder, port) as server:
        worker = started(*module("faults.study_worker", "cut_on_word", url, NAME))
        with worker as process:
            line_of(process)
            server.kill()
            server.wait()
            (folder / "work" / "go").touch()
            process.wait()
    with _redis(folder, port):
        return compare({0: ("non_finite", 0)}, recorded(url))


@contextmanager
def _redis(folder: Path, port: int) -> Iterator[Any]:
    """Start a Redis server that writes everything down at once."""
    import redis

    command = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", ""]
    command += ["--appendonly", "yes", "--appendfsync", "always", "--dir", str(folder)]
    client = redis.Redis(port=port)

    def answers() -> bool:
        try:
            return bool(client.ping())
        except redis.RedisError:
            return False

    with started(*command) as server:
        wait_for(answers, server)
        yield server
