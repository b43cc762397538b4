"""Files that may hold private things are their user's alone, whatever the umask."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import optuna
import pytest

from tests.unit.evidence.support import only, store, watched
from tests.unit.optuna.support import NAN, CountingStorage
from tests.unit.ray.test_record_file import CONTENT, Refusing, trial_on
from tune_guard import Policy
from tune_guard.notices import Notices
from tune_guard.optuna import GuardPruner
from tune_guard.ray.record_file import RecordFiles


@pytest.fixture(autouse=True)
def _open_house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let every new file be open to all, unless its maker says otherwise."""
    monkeypatch.chdir(tmp_path)
    before = os.umask(0)
    yield
    os.umask(before)


def modes(folder: Path) -> dict[str, str]:
    """Return the permissions of everything below a folder, and of itself."""
    found = [folder, *sorted(folder.rglob("*"))]
    return {path.name: stat.filemode(path.stat().st_mode) for path in found}


def test_evidence_is_its_users_alone(tmp_path: Path) -> None:
    """It holds stacks, hosts and weights."""
    monitor = watched(only("non_finite"), [{"score": 1.0}, {"score": NAN}])
    store(monitor, tmp_path / "bundle")
    found = modes(tmp_path / "bundle")
    assert found.pop("bundle") == "drwx------"
    assert set(found.values()) == {"-rw-------"}


def test_a_record_that_rays_storage_refused_is_its_users_alone(tmp_path: Path) -> None:
    """Below the working directory."""
    RecordFiles(Notices()).write(trial_on(Refusing(), tmp_path), CONTENT)
    found = modes(tmp_path / ".tune_guard")
    assert found == {
        ".tune_guard": "drwx------",
        "sweep.tune_guard.jsonl": "-rw-------",
    }


def test_a_record_that_optunas_storage_refused_is_its_users_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same, for a storage that is no local file."""
    monkeypatch.setattr("tune_guard.optuna.recorder.time.sleep", lambda _: None)
    storage = CountingStorage()
    study = optuna.create_study(
        storage=storage, pruner=GuardPruner(policy=Policy.default("value"))
    )
    trial = study.ask()
    trial.report(NAN, 0)
    monkeypatch.setattr(storage, "set_trial_user_attr", _refuse)
    assert trial.should_prune()
    found = modes(tmp_path / ".tune_guard")
    assert found == {".tune_guard": "drwx------", "optuna.jsonl": "-rw-------"}


def _refuse(*_: object) -> None:
    msg = "the disk is full"
    raise OSError(msg)
