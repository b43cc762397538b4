"""A trial's file on storages that take it, refuse it, or stand on their head."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyarrow import fs

from tune_guard.notices import Notices
from tune_guard.ray.record_file import RecordFiles
from tune_guard.record import RECORD_FILE

CONTENT = {"tune_guard/reason": "non_finite", "value": float("nan")}


class Refusing:
    """A storage that refuses to be written to, and counts the attempts."""

    type_name = "s3"

    def __init__(self, refusal: OSError | None = None, refusals: int = 10**9) -> None:
        self.refusal = refusal or PermissionError("access denied")
        self.refusals = refusals
        self.asked = 0
        self.real = fs.LocalFileSystem()

    def open_output_stream(self, path: str) -> Any:
        """Refuse, so many times."""
        self.asked += 1
        if self.asked <= self.refusals:
            raise self.refusal
        return self.real.open_output_stream(path)

    def get_file_info(self, path: str) -> Any:
        """Refuse."""
        raise ConnectionError(path)


def trial_on(filesystem: Any, folder: Path, name: str = "t1") -> Any:
    """Return what a callback sees of a trial: its storage and its directories."""
    local = folder / "staging" / name
    local.mkdir(parents=True)
    storage = SimpleNamespace(
        storage_filesystem=filesystem, experiment_dir_name="sweep"
    )
    path = str(folder / "results" / name)
    return SimpleNamespace(
        storage=storage, path=path, local_path=str(local), trial_id=name
    )


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in, and live in, folders of the test's own."""
    for name in ("work", "home"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


@pytest.fixture
def notices() -> Notices:
    """Return fresh notices."""
    return Notices()


def test_a_file_is_written_in_a_directory_that_is_not_there(
    tmp_path: Path, notices: Notices
) -> None:
    """Whole, as strict JSON, and without a draft left beside it."""
    trial = trial_on(fs.LocalFileSystem(), tmp_path)
    RecordFiles(notices).write(trial, CONTENT)
    text = (Path(trial.path) / RECORD_FILE).read_text()
    assert json.loads(text) == {**CONTENT, "value": "NaN"}
    assert [path.name for path in Path(trial.path).iterdir()] == [RECORD_FILE]
    assert not notices.messages


def test_a_file_is_replaced(tmp_path: Path, notices: Notices) -> None:
    """The newest record holds."""
    trial = trial_on(fs.LocalFileSystem(), tmp_path)
    files = RecordFiles(notices)
    files.write(trial, {"tune_guard/reason": "old"})
    files.write(trial, {"tune_guard/reason": "new"})
    text = (Path(trial.path) / RECORD_FILE).read_text()
    assert json.loads(text) == {"tune_guard/reason": "new"}


def test_an_object_store_is_written_to_at_once(
    tmp_path: Path, notices: Notices
) -> None:
    """Such a storage renames nothing: an object appears when it is whole."""
    store = fs._MockFileSystem()
    trial = trial_on(store, tmp_path)
    store.create_dir(trial.path)
    RecordFiles(notices).write(trial, CONTENT)
    (info,) = store.get_file_info(fs.FileSelector(trial.path))
    assert (info.base_name, info.type) == (RECORD_FILE, fs.FileType.File)


def test_a_storage_behind_fsspec_is_written_to(
    tmp_path: Path, notices: Notices
) -> None:
    """Ray takes fsspec's file systems through pyarrow."""
    fsspec = pytest.importorskip("fsspec")
    wrapped = fs.PyFileSystem(fs.FSSpecHandler(fsspec.filesystem("file")))
    trial = trial_on(wrapped, tmp_path)
    RecordFiles(notices).write(trial, CONTENT)
    assert [path.name for path in Path(trial.path).iterdir()] == [RECORD_FILE]


def test_a_refusal_is_asked_again(tmp_path: Path, notices: Notices) -> None:
    """Twice refused, the third time is accepted, and nothing is said."""
    store = Refusing(refusals=2)
    trial = trial_on(store, tmp_path)
    Path(trial.path).mkdir(parents=True)
    RecordFiles(notices).write(trial, CONTENT)
    assert (Path(trial.path) / RECORD_FILE).exists()
    assert not notices.messages


def test_a_refused_record_goes_beside_the_logs(
    tmp_path: Path, notices: Notices
) -> None:
    """Ray copies it from there when it can; one warning says so."""
    store = Refusing(OSError("the connection was lost"))
    files = RecordFiles(notices)
    trials = [trial_on(store, tmp_path, name) for name in ("t1", "t2", "t3")]
    for trial in trials:
        files.write(trial, CONTENT)
    assert all((Path(trial.local_path) / RECORD_FILE).exists() for trial in trials)
    assert list(notices.messages) == ["storage"]
    assert "connection was lost" in notices.messages["storage"]


def test_what_is_denied_does_not_stand_in_the_way_of_rays_copying(
    tmp_path: Path, notices: Notices
) -> None:
    """It would be denied there, too, and Ray would leave out what comes after it."""
    trial = trial_on(Refusing(), tmp_path)
    RecordFiles(notices).write(trial, CONTENT)
    assert not (Path(trial.local_path) / RECORD_FILE).exists()
    assert Path(".tune_guard/sweep.tune_guard.jsonl").exists()


def test_later_trials_do_not_wait_for_a_storage_that_refuses(
    tmp_path: Path, notices: Notices
) -> None:
    """Three attempts for the first trial, one for each later one."""
    store = Refusing()
    files = RecordFiles(notices)
    for name in ("t1", "t2", "t3"):
        files.write(trial_on(store, tmp_path, name), CONTENT)
    assert store.asked == 3 + 1 + 1


def test_a_refused_record_is_also_below_the_working_directory(
    tmp_path: Path, notices: Notices
) -> None:
    """One line a record, where load_sweep looks for it."""
    trial = trial_on(Refusing(), tmp_path)
    trial.local_path = str(tmp_path / "nowhere")
    files = RecordFiles(notices)
    files.write(trial, CONTENT)
    files.write(trial, CONTENT)
    lines = Path(".tune_guard/sweep.tune_guard.jsonl").read_text().splitlines()
    assert [json.loads(line)["value"] for line in lines] == ["NaN", "NaN"]


def test_what_the_working_directory_refuses_goes_home(
    tmp_path: Path, notices: Notices
) -> None:
    """A driver may run where it must not write."""
    Path(".tune_guard").write_text("a file where the folder should be")
    RecordFiles(notices).write(trial_on(Refusing(), tmp_path), CONTENT)
    kept = Path.home() / ".tune_guard" / "sweep.tune_guard.jsonl"
    assert str(kept) in notices.messages["storage"]
    assert json.loads(kept.read_text())["value"] == "NaN"


def test_nothing_is_raised_when_nothing_can_be_written(
    tmp_path: Path, notices: Notices
) -> None:
    """One warning, and the sweep goes on."""
    for folder in (Path(), Path.home()):
        (folder / ".tune_guard").write_text("a file where the folder should be")
    trial = trial_on(Refusing(), tmp_path)
    trial.local_path = str(tmp_path / "nowhere")
    RecordFiles(notices).write(trial, CONTENT)
    assert "it is lost" in notices.messages["storage"]


def test_a_withdrawn_record_is_gone(tmp_path: Path, notices: Notices) -> None:
    """And withdrawing what is not there is no error."""
    trial = trial_on(fs.LocalFileSystem(), tmp_path)
    files = RecordFiles(notices)
    files.withdraw(trial)
    files.write(trial, CONTENT)
    files.withdraw(trial)
    assert not (Path(trial.path) / RECORD_FILE).exists()
    assert not notices.messages


def test_a_record_that_cannot_be_withdrawn_is_named(
    tmp_path: Path, notices: Notices
) -> None:
    """It is replaced when the trial ends."""
    RecordFiles(notices).withdraw(trial_on(Refusing(), tmp_path))
    assert list(notices.messages) == ["withdraw"]
