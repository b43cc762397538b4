"""Trials that Ray's controller is not there to move."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tune_guard import Policy

POLICY = Policy.default("loss", "min")


class Metadata:
    """A trial's run metadata."""

    def __init__(self) -> None:
        self.last_result: dict[str, Any] = {}
        self.snapshots_outdated = 0

    def invalidate_cache(self) -> None:
        """Count."""
        self.snapshots_outdated += 1


class FakeTrial(SimpleNamespace):
    """What the callback uses of a trial."""

    @property
    def last_result(self) -> dict[str, Any]:
        """Hang, as Ray does for a trial whose actor never answered."""
        pytest.fail("Trial.last_result may wait for an actor for ever")


def file_of(trial: FakeTrial) -> Path:
    """Return the path of a trial's record."""
    return Path(trial.path) / "tune_guard.json"


def hooks(trials: list[Any], trial: Any = None) -> dict[str, Any]:
    """Return the arguments that Ray passes to a hook."""
    more = {"trial": trial} if trial is not None else {}
    return {"iteration": 1, "trials": trials, **more}
