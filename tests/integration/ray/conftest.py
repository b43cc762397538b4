"""One local Ray cluster for every test of this folder, and sweeps run on it."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.clusters import local_cluster
from tests.integration.ray.support import POLICY

os.environ.setdefault("RAY_AIR_NEW_OUTPUT", "0")
os.environ.setdefault("TUNE_WARN_INSUFFICENT_RESOURCE_THRESHOLD_S", "600")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark these tests, and let the warnings of Ray itself pass."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.ray)
            item.add_marker(pytest.mark.filterwarnings("ignore"))


@pytest.fixture(scope="session")
def cluster() -> Iterator[None]:
    """Start Ray on two cores."""
    with local_cluster(num_cpus=2):
        yield


@pytest.fixture(scope="module")
def sweep(
    cluster: None, tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., Any]:
    """Return what runs a sweep to its end and returns its result grid.

    Takes a trainable, a list of fates (one trial each, in ``config["fate"]``), and
    arguments of ``tune.RunConfig``; ``tune_config`` holds those of TuneConfig.
    """
    from ray import tune

    from tune_guard.ray import GuardCallback, GuardStopper

    def run(
        trainable: Any,
        fates: list[Any],
        *,
        tune_config: dict[str, Any] | None = None,
        space: dict[str, Any] | None = None,
        **run_config: Any,
    ) -> Any:
        run_config.setdefault("stop", GuardStopper(POLICY))
        run_config.setdefault("callbacks", [GuardCallback(POLICY)])
        run_config.setdefault("storage_path", str(tmp_path_factory.mktemp("results")))
        given = {"reuse_actors": True, **(tune_config or {})}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return tune.Tuner(
                trainable,
                param_space=space or {"fate": tune.grid_search(fates)},
                tune_config=tune.TuneConfig(**given),
                run_config=tune.RunConfig(name="sweep", verbose=0, **run_config),
            ).fit()

    return run
