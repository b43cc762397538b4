"""Which tests may run beside each other, under ``pytest -n 2 tests/integration``.

The tests of a folder share a cluster or a server, so one process runs them all. So it
does for all that write to the databases: some of them need an empty one.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from xdist.scheduler import LoadScopeScheduling

HERE = "tests/integration/"
DATABASES = ("optuna", "test_load_sweep_optuna.py")


class ByFolder(LoadScopeScheduling):
    """Hand out tests by the folder, and those elsewhere by the file.

    The groups of xdist itself (``--dist loadgroup``) do nothing under pytest 9.2.
    """

    def _split_scope(self, nodeid: str) -> str:
        file, _, _ = nodeid.partition("::")
        if not file.startswith(HERE):
            return file
        part = file.removeprefix(HERE).partition("/")[0]
        return "databases" if part in DATABASES else part


def pytest_xdist_make_scheduler(
    config: pytest.Config, log: Callable[..., None]
) -> ByFolder:
    """Take the scheduler above."""
    return ByFolder(config, log)
