"""A SQLite file that another worker holds locked at the very moment of the cut."""

from __future__ import annotations

import json
import sqlite3
from typing import TYPE_CHECKING

import optuna
import pytest
from optuna.storages import RDBStorage

from tune_guard.optuna import GuardPruner, recorder
from tune_guard.record import FALLBACK_SUFFIX, REASON, STEP

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return the path of a SQLite storage."""
    return tmp_path / "study.db"


@pytest.fixture
def study(file: Path) -> optuna.Study:
    """Return a study whose database gives up waiting for a lock at once."""
    storage = RDBStorage(
        f"sqlite:///{file}", engine_kwargs={"connect_args": {"timeout": 0}}
    )
    return optuna.create_study(storage=storage, pruner=GuardPruner())


@pytest.fixture
def other(study: optuna.Study, file: Path) -> Iterator[sqlite3.Connection]:
    """Return another worker's connection."""
    connection = sqlite3.connect(file, isolation_level=None)
    yield connection
    connection.close()


def cut_under_lock(study: optuna.Study, other: sqlite3.Connection) -> None:
    """Run a trial that goes NaN while the other worker writes."""

    def objective(trial: optuna.Trial) -> float:
        trial.report(float("nan"), 0)
        other.execute("BEGIN IMMEDIATE")
        cut = trial.should_prune()
        if other.in_transaction:
            other.execute("ROLLBACK")
        if cut:
            raise optuna.TrialPruned
        return 1.0

    study.optimize(objective, n_trials=1)


def release_at(
    nap: int, other: sqlite3.Connection, naps: list[float]
) -> Callable[[float], None]:
    """Return a sleep during whose ``nap``-th call the lock is given up."""

    def sleep(seconds: float) -> None:
        naps.append(seconds)
        if len(naps) == nap:
            other.execute("ROLLBACK")

    return sleep


def test_a_lock_that_is_given_up_in_time_loses_nothing(
    study: optuna.Study,
    other: sqlite3.Connection,
    file: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The reason is in the database at the third try."""
    naps: list[float] = []
    monkeypatch.setattr(recorder.time, "sleep", release_at(2, other, naps))
    cut_under_lock(study, other)
    trial = study.trials[0]
    assert (trial.state.name, trial.user_attrs[REASON]) == ("PRUNED", "non_finite")
    assert len(naps) == 2
    assert not file.with_name(f"study.db{FALLBACK_SUFFIX}").exists()


def test_a_lock_that_stays_puts_the_record_beside_the_database(
    study: optuna.Study,
    other: sqlite3.Connection,
    file: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The trial is PRUNED all the same; one warning says where its record is."""
    monkeypatch.setattr(recorder.time, "sleep", lambda _: None)
    cut_under_lock(study, other)
    assert study.trials[0].state.name == "PRUNED"
    beside = file.with_name(f"study.db{FALLBACK_SUFFIX}")
    kept = json.loads(beside.read_text())
    assert (kept["study"], kept["trial"]) == (study.study_name, 0)
    assert (kept[REASON], kept[STEP]) == ("non_finite", 0)
    said = [r.getMessage() for r in caplog.records if r.name == "tune_guard"]
    assert len(said) == 1
    assert str(beside) in said[0]
