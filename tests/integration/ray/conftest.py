"""One local Ray cluster for every test of this folder, and sweeps run on it."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

os.environ.setdefault("RAY_AIR_NEW_OUTPUT", "0")
os.environ.setdefault("TUNE_DISABLE_AUTO_CALLBACK_SYNCER", "1")
os.environ.setdefault("RAY_DEDUP_LOGS", "0")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark these tests, and let Ray's own warnings pass."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.ray)
            item.add_marker(pytest.mark.filterwarnings("ignore"))


@pytest.fixture(scope="session")
def cluster() -> Iterator[None]:
    """Start Ray on two cores, without dashboard."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import ray

        ray.init(
            num_cpus=2,
            include_dashboard=False,
            logging_level="ERROR",
            log_to_driver=False,
            configure_logging=False,
        )
        yield
        ray.shutdown()


@pytest.fixture(scope="module")
def storage(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory for the sweeps of one module."""
    return tmp_path_factory.mktemp("results")


def rows_of(trial_dir: str | Path) -> list[dict[str, Any]]:
    """Return the rows of a trial's result.json."""
    lines = (Path(trial_dir) / "result.json").read_text().splitlines()
    return [json.loads(line) for line in lines]


Sweep = Callable[..., Any]
