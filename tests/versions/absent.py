"""A pytest plugin: a test that imports a package which the row leaves out is skipped.

``TUNE_GUARD_ABSENT`` names the packages. A test under ``tests/`` that imports one,
itself or through a module of tune_guard that needs it, is skipped and counted so;
code of tune_guard that can do without gets the ordinary ImportError.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import FrameType, ModuleType

import pytest

ABSENT = frozenset(filter(None, os.environ.get("TUNE_GUARD_ABSENT", "").split(",")))
_MACHINERY = ("importlib", "_pytest", "pytest")


class Absent:
    """Answers every import of what is absent."""

    def find_spec(
        self,
        name: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        """Skip where a test asks, and know nothing of it where others do."""
        if name in ABSENT and _asked_by_a_test():
            pytest.skip(f"{name} is not installed", allow_module_level=True)
        return None


def _asked_by_a_test() -> bool:
    """Whether the import stands in a test, or at the top of what the test imports."""
    frame: FrameType | None = sys._getframe(2)  # who imports
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        if name.startswith("tests."):
            return True
        at_the_top = frame.f_code.co_name == "<module>"
        if not at_the_top and not name.startswith(_MACHINERY):
            return False
        frame = frame.f_back
    return False


def pytest_configure() -> None:
    """Ask here first."""
    sys.meta_path.insert(0, Absent())
