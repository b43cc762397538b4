"""Records that a storage refused, and that were kept in a local file instead."""

from __future__ import annotations

import pathlib
from typing import TYPE_CHECKING, Any

from tune_guard.record import FALLBACK_FOLDER, FALLBACK_SUFFIX, from_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_OPTUNA = "optuna.jsonl"


def kept_aside(source: str, study: str) -> dict[int, Mapping[str, Any]]:
    """Return the attributes that were kept aside for a study, by trial number.

    They lie beside the storage's own file, or in the working directory of the
    worker that could not store them, which is looked for here and in the home
    directory.

    Args:
        source: Path or URL of the storage.

        study: Name of the study.
    """
    found: dict[int, Mapping[str, Any]] = {}
    for path in _places(source):
        for line in _lines(path):
            entry = from_json(line)
            if not isinstance(entry, dict) or entry.get("study") != study:
                continue
            number = entry.get("trial")
            if isinstance(number, int):
                found[number] = entry
    return found


def _places(source: str) -> Iterator[pathlib.Path]:
    yield pathlib.Path.home() / FALLBACK_FOLDER / _OPTUNA
    yield pathlib.Path(FALLBACK_FOLDER, _OPTUNA)
    local = source.removeprefix("sqlite:///")
    if "://" not in local:
        yield pathlib.Path(f"{local}{FALLBACK_SUFFIX}")


def _lines(path: pathlib.Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
