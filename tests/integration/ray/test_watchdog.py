"""Trials that hang in a real sweep: ended, recorded, retried, out of the way."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from tests.integration.ray.support import by_fate, stored
from tune_guard import Policy, load_sweep
from tune_guard.evidence.reader import find_bundles
from tune_guard.evidence.settings import FOLDER
from tune_guard.policy import DEFAULT
from tune_guard.rules import Stalled

pytestmark = pytest.mark.slow

RULES = (*DEFAULT, Stalled(timeout_s=6, first_report_s=60))
POLICY = Policy.default("loss", "min", rules=RULES)
FATES = ["sleeps", "holds_the_gil", "once", "healthy"]
FOREVER_S = 10_000


@pytest.fixture(scope="module")
def results(sweep: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Run trials that hang at step 3, two at a time, under ASHA, with one retry.

    The healthy one comes last: it can only run when the resources of those that
    hang are free again.
    """
    from ray import tune
    from ray.tune.schedulers import ASHAScheduler

    from tune_guard.ray import GuardCallback, GuardStopper, Watchdog

    def train(config: dict[str, Any]) -> None:
        import ctypes

        from tune_guard import TrialGuard

        fate, marker = config["fate"], Path(config["marks"]) / config["fate"]
        guard = TrialGuard(POLICY)
        for step in range(1, 6):
            hangs = step == 3 and fate != "healthy"
            if hangs and fate == "once":
                hangs = not marker.exists()
                marker.touch()
            if hangs and fate == "holds_the_gil":
                ctypes.PyDLL(None).sleep(FOREVER_S)
            elif hangs:
                time.sleep(FOREVER_S)
            guard.report({"loss": 1 / step})

    marks = str(tmp_path_factory.mktemp("marks"))
    grid = sweep(
        train,
        [],
        space={"fate": tune.grid_search(FATES), "marks": marks},
        stop=GuardStopper(POLICY),
        callbacks=[GuardCallback(POLICY)],
        failure_config=tune.FailureConfig(max_failures=1),
        tune_config={
            "scheduler": Watchdog(POLICY, ASHAScheduler(max_t=5, grace_period=5)),
            "metric": "loss",
            "mode": "min",
        },
    )
    return by_fate(grid)


@pytest.mark.parametrize("fate", ["sleeps", "holds_the_gil"])
def test_a_trial_that_hangs_is_ended_with_its_reason(
    results: dict[str, Any], fate: str
) -> None:
    """Also one that holds Python's lock, in which no thread of Python runs."""
    content = stored(results[fate])
    assert content["tune_guard/reason"] == "stalled"
    assert content["tune_guard/step"] == 2
    assert content["tune_guard/blame"] == "infrastructure"
    assert content["tune_guard/detail"]["outcome"] == "guard"
    assert content["tune_guard/detail"]["attempt"] == 2
    assert content["final"] is True


def test_to_ray_it_is_a_failure(results: dict[str, Any]) -> None:
    """So that a search algorithm learns nothing from it, and resume may run it."""
    assert results["sleeps"].error is not None


def test_a_trial_that_hung_once_completes(results: dict[str, Any]) -> None:
    """``max_failures`` runs it again."""
    assert stored(results["once"])["tune_guard/detail"]["outcome"] == "completed"
    assert stored(results["once"])["tune_guard/detail"]["attempt"] == 2


def test_the_others_run_on(results: dict[str, Any]) -> None:
    """On the resources that became free."""
    assert stored(results["healthy"])["tune_guard/detail"]["outcome"] == "completed"


def test_the_stacks_were_written_before(results: dict[str, Any]) -> None:
    """By the guard in the training, for each attempt; the record names the newest."""
    bundles = find_bundles(results["sleeps"].path)
    assert len(bundles) == 2
    named = stored(results["sleeps"])["tune_guard/detail"]["evidence"]
    assert bundles[-1].name.endswith(named)
    assert bundles[-1].problems() == []
    assert b"time.sleep(FOREVER_S)" in (bundles[-1].bytes_of("stacks.txt") or b"")


def test_no_stacks_of_a_process_that_holds_the_lock(results: dict[str, Any]) -> None:
    """No thread of Python runs there; the record stands without."""
    assert not (Path(results["holds_the_gil"].path) / FOLDER).exists()


def test_load_sweep_has_the_reason(results: dict[str, Any]) -> None:
    """Though no row of the trial holds it."""
    folder = Path(results["sleeps"].path).parent
    found = {t.params["fate"]: t for t in load_sweep(str(folder)).trials}
    assert found["sleeps"].reason == "stalled"
    assert (found["sleeps"].step, found["sleeps"].state) == (2, "ERROR")
    assert found["once"].reason == ""
