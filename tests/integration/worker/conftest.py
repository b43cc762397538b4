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
    """Start Ray without dashboard.

    Its slots are no real cores: those of a training that Tune ended are given
    back late, because Ray's cleaner asks the dashboard.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import ray

        ray.init(
            num_cpus=12,
            include_dashboard=False,
            logging_level="ERROR",
            log_to_driver=False,
        )
        yield
        ray.shutdown()
