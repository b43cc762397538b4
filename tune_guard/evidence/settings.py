"""What is kept of a trial that is cut: which parts, in which order, how much."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tune_guard.exceptions import ConfigError, did_you_mean

PARTS = (
    "record",
    "observations",
    "rules",
    "stacks",
    "batches",
    "environment",
    "gpu",
    "modules",
    "rng",
    "training",
    "checkpoint",
)
"""All parts in the order in which they are written: the cheapest first."""

FOLDER = "tune_guard_evidence"
"""In a trial's directory: its bundles."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What is kept of a trial before it is cut, and where.

    A bundle is a folder of small files: the record (``record``), the last 512 or
    more observations (``observations``), the rules' numbers and state (``rules``),
    every thread's stack of a hung trial (``stacks``), ids or hashes of the current
    and the previous batch (``batches``), versions and machine (``environment``,
    ``gpu``), gradient and parameter norms by module (``modules``), the state of
    the random number generators (``rng``), that of optimizer, scheduler and
    scaler (``training``), and a checkpoint from before the bad step
    (``checkpoint``). What only the training process knows comes from a
    :class:`~tune_guard.TrialGuard`.

    Writing it never fails a trial and is bounded in bytes and seconds. What does
    not fit is left out, and the manifest says so. Secrets are not in it: of the
    environment's variables only a fixed list is kept.

    Args:
        parts: The parts to keep, in the order in which they are written: when
            disk or time run out, the last ones are lost.

        most_bytes: Size of a bundle, in bytes; 32 MiB hold optimizer and
            scheduler of a small model.

        most_s: Seconds that the cut may wait for it.

        folder: Folder for the bundles. None for the engine's own place: the
            trial's directory in Ray. With Optuna or without an engine nothing is
            kept unless ``folder`` or ``artifact_store`` is given.

        artifact_store: Optuna's artifact store, from which its dashboard offers
            each bundle as a zip file.

        checkpoint_every_steps: Takes a copy of model, optimizer and generators
            into the host's memory at every so many optimizer steps and keeps the
            last two, so that one from before the bad step is there. None for no
            copies. It costs twice their size in host memory and, at those steps,
            the time of copying them: about 1 s per 2 to 10 GB.

    Raises:
        ConfigError: If a value cannot be meant.

    Example:
        >>> Evidence(parts=("record", "observations", "rules")).most_s
        10.0
    """

    parts: tuple[str, ...] = PARTS
    most_bytes: int = 32 * 2**20
    most_s: float = 10.0
    folder: str | Path | None = None
    artifact_store: Any = None
    checkpoint_every_steps: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", _checked_parts(self.parts))
        _check_count("most_bytes", self.most_bytes)
        if self.checkpoint_every_steps is not None:
            _check_count("checkpoint_every_steps", self.checkpoint_every_steps)
        seconds = self.most_s
        real = isinstance(seconds, (int, float)) and not isinstance(seconds, bool)
        if not real or not math.isfinite(seconds) or seconds <= 0:
            _refuse("most_s", "a number of seconds > 0", seconds)
        if not isinstance(self.folder, (str, Path, type(None))):
            _refuse("folder", "a path", self.folder)
        store = self.artifact_store
        if store is not None and not callable(getattr(store, "write", None)):
            _refuse("artifact_store", "an artifact store of Optuna", store)

    @property
    def has_place(self) -> bool:
        """Whether it says itself where bundles go."""
        return self.folder is not None or self.artifact_store is not None


def checked(evidence: object) -> Evidence | None:
    """Return what an engine's part was given, if it can be used.

    Raises:
        ConfigError: If it is neither ``Evidence`` nor None.
    """
    if evidence is None or isinstance(evidence, Evidence):
        return evidence
    _refuse("evidence", "an Evidence, or None for none", evidence)
    return None


def _checked_parts(parts: object) -> tuple[str, ...]:
    if isinstance(parts, str) or not isinstance(parts, Iterable):
        _refuse("parts", "a list of parts", parts)
    found: tuple[str, ...] = tuple(parts)  # type: ignore[arg-type]
    for name in found:
        if name not in PARTS:
            msg = f"`parts`: {name!r} is no part. {did_you_mean(name, PARTS)}"
            raise ConfigError(msg)
    if not found or len(set(found)) != len(found):
        _refuse("parts", "at least one part, and each once", found)
    return found


def _check_count(name: str, value: object) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        _refuse(name, "a whole number >= 1", value)


def _refuse(name: str, must: str, value: object) -> None:
    msg = f"`{name}` must be {must}, but got {value!r}. Leave it out for the default."
    raise ConfigError(msg)
