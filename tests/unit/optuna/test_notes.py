"""The note that optuna-dashboard shows of a cut trial."""

from __future__ import annotations

from typing import Any

import optuna
import pytest
from optuna.exceptions import StorageInternalError
from optuna.storages import InMemoryStorage

from tests.unit.optuna.support import NAN, notices, steps_until_pruned, study_of
from tune_guard.optuna import GuardPruner, _engine, recorder
from tune_guard.optuna.notes import as_note, write_note
from tune_guard.record import REASON, StopRecord


class NoteStorage(InMemoryStorage):
    """Notes what is written of the study, and refuses as often as it is told."""

    def __init__(self, *, refuse_version: int = 0) -> None:
        super().__init__()
        self.written: list[str] = []
        self._left = refuse_version

    def set_study_system_attr(self, study_id: int, key: str, value: Any) -> None:
        """Write, or refuse to."""
        if key.endswith("note_ver") and self._left > 0:
            self._left -= 1
            raise StorageInternalError
        self.written.append(key)
        super().set_study_system_attr(study_id, key, value)


def cut(storage: NoteStorage, guard: GuardPruner) -> optuna.Trial:
    """Cut a trial at step 1."""
    trial = study_of(guard, storage=storage).ask()
    assert steps_until_pruned(trial, [1.0, NAN]) == 1
    return trial


def pieces(trial: optuna.Trial) -> dict[str, Any]:
    """Return the study's attributes of the trial's note, by their last word."""
    found = _engine.study_attributes(trial.study)
    return {key.partition("note_")[2]: value for key, value in found.items()}


@pytest.fixture(autouse=True)
def no_naps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take no pause between tries."""
    monkeypatch.setattr(recorder.time, "sleep", lambda _: None)


def test_without_the_wish_there_is_no_note() -> None:
    """Not one write of the study's attributes."""
    storage = NoteStorage()
    cut(storage, GuardPruner())
    assert storage.written == []


def test_a_note_costs_two_writes_the_version_last() -> None:
    """A dashboard that looks in between shows none."""
    storage = NoteStorage()
    trial = cut(storage, GuardPruner(note=True))
    assert storage.written == [
        "dashboard:0:note_str:0",
        "dashboard:0:note_ver",
    ]
    assert pieces(trial)["ver"] == 1


def test_a_write_that_failed_half_way_is_finished_once() -> None:
    """The text does not come twice."""
    trial = cut(NoteStorage(refuse_version=2), GuardPruner(note=True))
    assert pieces(trial)["ver"] == 1
    assert pieces(trial)["str:0"].count("**non") == 1


def test_a_storage_that_refuses_notes_changes_no_verdict(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The reason is stored, and one warning is given."""
    trial = cut(NoteStorage(refuse_version=1000), GuardPruner(note=True))
    assert trial.user_attrs[REASON] == "non_finite"
    (said,) = notices(caplog)
    assert said.startswith("The note of trial 0 could not be written")


def test_a_long_text_is_kept_in_pieces() -> None:
    """2,045 characters each: what a column of a database holds."""
    study = study_of(GuardPruner(), storage=NoteStorage())
    trial = study.ask()
    frozen = _engine.frozen(trial)
    write_note(study, frozen, StopRecord(reason="a", message="x" * 5000))
    kept = pieces(trial)
    assert [len(kept[f"str:{n}"]) for n in range(3)] == [2045, 2045, 928]


def test_markup_in_a_record_is_shown_as_it_is() -> None:
    """A metric's name may hold anything."""
    note = as_note(StopRecord(reason="a", metric="<script>*x*", value=NAN))
    assert r"- \<script\>\*x\*: NaN" in note
