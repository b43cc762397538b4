"""Records that a storage refused, and that were kept in a local file instead."""

from __future__ import annotations

import pathlib
import posixpath
from typing import TYPE_CHECKING, Any

from tune_guard.record import FALLBACK_FOLDER, FALLBACK_SUFFIX
from tune_guard.strict_json import from_json
from tune_guard.sweeps.readers.ray_state import last_part

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_OPTUNA = "optuna.jsonl"


def optuna_kept_aside(source: str, study: str) -> dict[int, Mapping[str, Any]]:
    """Return the attributes that were kept aside for a study, by trial number.

    They lie beside the storage's own file, or in the working or home directory of
    the worker that could not store them, and there they name the storage.

    Args:
        source: Path or URL of the storage, without its password.

        study: Name of the study.
    """
    found: dict[int, Mapping[str, Any]] = {}
    for folder in (pathlib.Path.home(), pathlib.Path()):
        for entry in _entries(folder / FALLBACK_FOLDER / _OPTUNA, study):
            if _plain(entry.get("storage")) == _plain(source):
                found[entry["trial"]] = entry
    local = _plain(source)
    if "://" not in local:
        # Whatever it was called when it was written: the two were moved together.
        for entry in _entries(pathlib.Path(f"{local}{FALLBACK_SUFFIX}"), study):
            found[entry["trial"]] = entry
    return found


def _plain(storage: object) -> str:
    """Return a storage's address; a SQLite file is called by its path, too."""
    return str(storage).removeprefix("sqlite:///")


class RayKeptAside:
    """The records that the storage of a Ray experiment refused.

    They lie below the working or the home directory of the driver.

    Args:
        name: Name of the experiment's directory.
    """

    def __init__(self, name: str) -> None:
        file = pathlib.Path(FALLBACK_FOLDER) / f"{name}{FALLBACK_SUFFIX}"
        lines = [*_lines(pathlib.Path.home() / file), *_lines(file)]
        entries = map(from_json, lines)
        self._entries = [entry for entry in entries if isinstance(entry, dict)]
        self._matched: set[str] = set()

    def of(self, *names: str) -> Mapping[str, Any] | None:
        """Return the newest record of a trial; a full disk may have left no id."""
        for entry in reversed(self._entries):
            trial_id = str(entry.get("trial_id"))
            own = {trial_id, last_part(str(entry.get("path") or ""))}
            if own & set(names) - {""}:
                self._matched.add(trial_id)
                found: Mapping[str, Any] = entry
                return found
        return None

    def unmatched(self, experiment: str) -> Iterator[Mapping[str, Any]]:
        """Yield the newest record of each trial of this place that nobody asked for."""
        newest = {str(e.get("trial_id")): e for e in self._entries}
        for trial_id, entry in newest.items():
            place = posixpath.dirname(str(entry.get("path") or ""))
            if trial_id not in self._matched and place == experiment:
                yield entry


def _entries(path: pathlib.Path, study: str) -> Iterator[dict[str, Any]]:
    for line in _lines(path):
        entry = from_json(line)
        if not isinstance(entry, dict) or entry.get("study") != study:
            continue
        if isinstance(entry.get("trial"), int):
            yield entry


def _lines(path: pathlib.Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
