"""What the tests of the worker in real engines share."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator

import pytest

os.environ.setdefault("RAY_AIR_NEW_OUTPUT", "0")
os.environ.setdefault("TUNE_WARN_INSUFFICENT_RESOURCE_THRESHOLD_S", "600")


@pytest.fixture(scope="session")
def cluster() -> Iterator[None]:
    """Start Ray on four slots, without dashboard."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import ray

        ray.init(
            num_cpus=4,
            include_dashboard=False,
            logging_level="ERROR",
            log_to_driver=False,
        )
        yield
        ray.shutdown()
