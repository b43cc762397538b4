"""Pytest plugin: the installed Ray finds the tests of a checkout as parts of itself.

Ray is installed without its tests, and these import each other as ``ray.tune.tests``
and ``ray.train.tests``. Their clusters start without dashboard: it takes seconds.
"""

from __future__ import annotations

import functools
import os
from pathlib import Path
from typing import Any

import pytest
import ray
import ray.train
import ray.tune


@pytest.hookimpl
def pytest_configure() -> None:
    """Let the packages reach into the folder, and start clusters without dashboard."""
    folder = Path(os.environ["PEERS_FOLDER"])
    for package, name in ((ray.tune, "tune"), (ray.train, "train")):
        package.__path__.append(str(folder / name))
    begin = ray.init

    @functools.wraps(begin)
    def init(*args: Any, **kwargs: Any) -> Any:
        kwargs.setdefault("include_dashboard", False)
        return begin(*args, **kwargs)

    ray.init = init
