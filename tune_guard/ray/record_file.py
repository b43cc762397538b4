"""A trial's ``tune_guard.json``: written straight to storage, whole or not at all.

Ray copies what lies in a trial's local directory to storage every ten seconds
at most; a driver that is killed in between would lose the reason.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tune_guard import fallback_file
from tune_guard.record import FALLBACK_FOLDER, FALLBACK_SUFFIX, RECORD_FILE
from tune_guard.strict_json import to_json

if TYPE_CHECKING:
    from ray.tune.experiment import Trial

    from tune_guard.notices import Notices

_PAUSES_S = (0.05, 0.2)
_RENAMING = ("local", "file", "subtree")
"""Parts of the type names of file systems in which renaming is one step."""


class RecordFiles:
    """Writes the records of one sweep's trials.

    A storage that refuses is asked again, for a quarter of a second in all, and
    by later trials only once each. What it refused goes as a line into a file
    below the working directory, or else the home directory, where ``load_sweep``
    finds it; and into the trial's local directory, which Ray copies to storage as
    soon as it can. Not so where access was denied: Ray's copying would stop at that
    file, and leave out the trials' own.

    Args:
        notices: Where a storage that refuses is named once.
    """

    def __init__(self, notices: Notices) -> None:
        self._notices = notices
        self._pauses_s: tuple[float, ...] = _PAUSES_S

    def write(self, trial: Trial, content: dict[str, Any]) -> None:
        """Write a trial's record. Never raises."""
        text = to_json(content) + "\n"
        for pause_s in (*self._pauses_s, None):
            try:
                _write_to_storage(trial, text)
            except Exception as error:  # noqa: BLE001 - a storage may raise anything
                refusal = error
                if pause_s is not None:
                    time.sleep(pause_s)
            else:
                return
        self._pauses_s = ()
        self._write_elsewhere(trial, text, refusal)

    def withdraw(self, trial: Trial) -> None:
        """Delete the record of a trial that goes on after all. Never raises."""
        try:
            filesystem, path = _place(trial)
            if filesystem.get_file_info(path).type.name == "File":
                filesystem.delete_file(path)
        except Exception as error:  # noqa: BLE001 - a storage may raise anything
            self._notices.once(
                "withdraw",
                f"The record of trial {trial.trial_id}, which runs again, could not"
                f" be deleted ({error!r}): it is replaced when the trial ends.",
            )

    def _write_elsewhere(self, trial: Trial, text: str, refusal: Exception) -> None:
        ways = [_append_nearby]
        if not is_denied(repr(refusal)):
            ways.append(_write_beside_logs)
        kept = [path for write in ways if (path := write(trial, text))]
        where = f"it lies in {' and '.join(map(str, kept))}" if kept else "it is lost"
        self._notices.once(
            "storage",
            f"The storage refused a trial's record ({refusal!r}); {where}. The trials"
            " themselves are cut as they should.",
        )


def is_denied(refusal: str) -> bool:
    """Whether a storage refused for good, and not only now, by what it said."""
    said = refusal.lower()
    return any(word in said for word in ("denied", "forbidden", "permission", "403"))


def _place(trial: Trial) -> tuple[Any, str]:
    storage: Any = trial.storage
    return storage.storage_filesystem, f"{trial.path}/{RECORD_FILE}"


def _write_to_storage(trial: Trial, text: str) -> None:
    """Write whole or not at all: a local file is renamed into place.

    An object store publishes an object when its stream is closed.
    """
    filesystem, path = _place(trial)
    is_local = any(kind in filesystem.type_name for kind in _RENAMING)
    target = f"{trial.path}/.{RECORD_FILE}.tmp" if is_local else path
    if is_local:
        filesystem.create_dir(str(trial.path), recursive=True)
    with filesystem.open_output_stream(target) as stream:
        stream.write(text.encode())
    if is_local:
        filesystem.move(target, path)


def _write_beside_logs(trial: Trial, text: str) -> Path | None:
    path = Path(str(trial.local_path)) / RECORD_FILE
    draft = path.with_name(f".{RECORD_FILE}.tmp")
    try:
        draft.write_text(text, encoding="utf-8")
        return draft.replace(path)
    except OSError:
        return None


def _append_nearby(trial: Trial, text: str) -> Path | None:
    """Append a line below the working directory, or else the home directory."""
    storage: Any = trial.storage
    name = f"{storage.experiment_dir_name}{FALLBACK_SUFFIX}"
    for find in (Path.cwd, Path.home):
        try:
            path = find() / FALLBACK_FOLDER / name
            fallback_file.append(path, text)
        except (OSError, RuntimeError):
            continue
        return path
    return None
