"""Pytest plugin: every pruner that Optuna's tests make is wrapped in GuardPruner.

``GUARDED_RULES`` names the rules, ``none`` or ``nan``. A study that is given no
pruner takes a MedianPruner, by the same name: so every study has the guard. How many
guards were made and how often they were asked goes to the file ``GUARDED_ASKED``.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import optuna
import optuna.testing.pruners
import pytest

from tune_guard import Policy
from tune_guard.optuna import GuardPruner
from tune_guard.rules import NonFinite

RULES = {"none": (), "nan": (NonFinite(),)}
POLICY = Policy("value", rules=RULES[os.environ.get("GUARDED_RULES", "none")])


COUNTS = Counter({"guards made": 0, "times asked": 0})


class Guarded(type):
    """A class that stands for a pruner's: it makes guards around such pruners.

    Whatever else is done with it is done to the pruner's own class: tests ask
    ``isinstance`` and patch methods.
    """

    pruner: type[optuna.pruners.BasePruner]

    def __call__(cls, *args: Any, **kwargs: Any) -> GuardPruner:
        """Make a pruner, and a guard around it."""
        COUNTS["guards made"] += 1
        return GuardPruner(cls.pruner(*args, **kwargs), POLICY)

    def __instancecheck__(cls, instance: object) -> bool:
        """Whether a guard, or a pruner without one, is of the pruner's class."""
        inside = isinstance(instance, GuardPruner)
        return isinstance(instance._wrapped_pruner if inside else instance, cls.pruner)

    def __getattr__(cls, name: str) -> Any:
        """Read what the pruner's class has."""
        return getattr(cls.pruner, name)

    def __setattr__(cls, name: str, value: object) -> None:
        """Patch the pruner's class."""
        setattr(cls.pruner, name, value)

    def __delattr__(cls, name: str) -> None:
        """Take a patch back."""
        delattr(cls.pruner, name)


def guarded(pruner: type[optuna.pruners.BasePruner]) -> Guarded:
    """Return what stands for a pruner's class."""
    return Guarded(pruner.__name__, (), {"pruner": pruner})


@pytest.hookimpl
def pytest_configure() -> None:
    """Put them in the places from which tests and studies take pruners."""
    for module in (optuna.pruners, optuna.testing.pruners):
        for name, value in list(vars(module).items()):
            is_pruner = isinstance(value, type) and name.endswith("Pruner")
            if is_pruner and value is not optuna.pruners.BasePruner:
                setattr(module, name, guarded(value))
    _let_tests_look_inside()


def _let_tests_look_inside() -> None:
    """Show the wrapped pruner's own attributes: tests assert some private ones."""

    def look_inside(guard: GuardPruner, name: str) -> Any:
        if name == "_wrapped_pruner" or name.startswith("__"):
            raise AttributeError(name)
        return getattr(guard._wrapped_pruner, name)

    prune = GuardPruner.prune

    def count(guard: GuardPruner, *args: Any, **kwargs: Any) -> bool:
        COUNTS["times asked"] += 1
        return prune(guard, *args, **kwargs)

    GuardPruner.__getattr__ = look_inside
    GuardPruner.prune = count


@pytest.hookimpl
def pytest_sessionfinish() -> None:
    """Write the counts down."""
    Path(os.environ["GUARDED_ASKED"]).write_text(json.dumps(COUNTS), encoding="utf-8")
