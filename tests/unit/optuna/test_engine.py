"""Optuna's private attributes are where the adapter looks for them."""

from __future__ import annotations

import inspect
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import optuna
import pytest
import sqlalchemy
from optuna.pruners import HyperbandPruner
from optuna.storages import JournalStorage, get_storage
from optuna.storages.journal import JournalFileBackend

from tests.unit.optuna.support import NAN, CountingStorage, study_of
from tune_guard.optuna import GuardPruner, _engine

if TYPE_CHECKING:
    from pathlib import Path


def test_a_workers_view_of_a_trial_grows_with_its_reports() -> None:
    """The newest value is the last of the mapping, and no copy is made of it."""
    trial = optuna.create_study().ask()
    for step in (0, 5, 3):
        trial.report(1.0, step)
    values = _engine.current(trial).intermediate_values
    assert list(values) == [0, 5, 3]
    assert _engine.frozen(trial).intermediate_values is values


def test_the_workers_view_holds_the_attributes_that_are_mirrored() -> None:
    """What a pruner puts into its copy of the trial shows in the trial."""
    trial = optuna.create_study().ask()
    _engine.frozen(trial).user_attrs["key"] = 1
    assert trial.user_attrs == {"key": 1}


def test_an_attribute_reaches_the_storage() -> None:
    """It is there for whoever loads the study."""
    storage = CountingStorage()
    study = optuna.create_study(storage=storage)
    _engine.write_attribute(study, _engine.frozen(study.ask()), "key", 1)
    assert study.trials[0].user_attrs == {"key": 1}
    assert storage.written == ["key"]


@pytest.mark.skipif(
    not hasattr(optuna.Trial, "set_constraint"), reason="Optuna 4 has no named ones"
)
def test_the_constraint_is_the_one_that_optuna_reads() -> None:
    """It is written as ``Trial.set_constraint`` writes it."""
    study = optuna.create_study()
    ours, theirs = study.ask(), study.ask()
    _engine.write_constraint(study, _engine.frozen(ours))
    theirs.set_constraint("tune_guard", 1.0)
    first, second = study.trials
    assert first.system_attrs == second.system_attrs


def test_a_thread_knows_that_it_runs_trials_one_by_one() -> None:
    """It is so within ``optimize`` and not where trials are asked for."""
    inside = []

    def objective(trial: optuna.Trial) -> float:
        inside.append(_engine.in_optimize(trial.study))
        return 0.0

    study = optuna.create_study()
    study.optimize(objective, n_trials=1)
    assert inside == [True]
    assert _engine.in_optimize(study) is False


def test_local_files_are_found(tmp_path: Path) -> None:
    """SQLite and journal files are; memory is none."""
    database, journal = tmp_path / "a.db", tmp_path / "a.log"
    cases: list[tuple[Any, Path | None]] = [
        (get_storage(f"sqlite:///{database}"), database),
        (optuna.storages.RDBStorage("sqlite:///:memory:"), None),
        (JournalStorage(JournalFileBackend(str(journal))), journal),
        (None, None),
    ]
    for storage, expected in cases:
        assert _engine.local_file(optuna.create_study(storage=storage)) == expected


def test_a_storage_is_named_without_its_password(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name goes into a file, where no secret may lie."""
    storage = optuna.storages.RDBStorage(f"sqlite:///{tmp_path / 'a.db'}")
    study = optuna.create_study(storage=storage)
    url = sqlalchemy.make_url("postgresql://me:secret@host/db")
    monkeypatch.setattr(storage, "engine", SimpleNamespace(url=url))
    assert _engine.address(study) == "postgresql://me:***@host/db"


@pytest.mark.parametrize("name", ["_get_bracket_id", "_create_bracket_study"])
def test_hyperband_is_asked_for_its_brackets_in_the_same_way(name: str) -> None:
    """The disguise answers the calls that Optuna makes."""
    theirs = inspect.signature(getattr(HyperbandPruner, name))
    ours = inspect.signature(getattr(_engine.HyperbandFace, name))
    assert list(ours.parameters) == list(theirs.parameters)


def test_a_distributed_trial_is_seen_through() -> None:
    """Rank 0 holds the trial; the report itself stays a call on all ranks."""

    class Distributed:
        def __init__(self, delegate: optuna.Trial | None) -> None:
            self._delegate = delegate
            self.reported: list[tuple[float, int]] = []

        def report(self, value: float, step: int) -> None:
            self.reported.append((value, step))
            if self._delegate is not None:
                self._delegate.report(value, step)

        def should_prune(self) -> bool:
            return self._delegate is not None and self._delegate.should_prune()

    guard = GuardPruner()
    ranks: list[Any] = [Distributed(study_of(guard).ask()), Distributed(None)]
    for rank in ranks:
        guard.report(rank, 1.0, 0, loss=NAN)
        assert rank.reported == [(1.0, 0)]
    assert [guard.should_prune(rank) for rank in ranks] == [True, False]
    assert "non_finite" in str(guard.pruned(ranks[0]))
