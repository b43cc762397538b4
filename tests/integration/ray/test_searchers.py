"""What an Optuna study holds after a Ray sweep whose trials met NaN."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna.storages.journal import JournalFileBackend
from optuna.trial import FrozenTrial, TrialState

POINTS = {"finite": 0.3, "nan": 0.9, "raises": 0.05, "gpu_lost": 0.15, "too_large": 0.6}


def storage_in(folder: Path, kind: str) -> optuna.storages.BaseStorage:
    """Return a storage of a kind."""
    if kind == "sqlite":
        return optuna.storages.RDBStorage(f"sqlite:///{folder}/study.db")
    return optuna.storages.JournalStorage(JournalFileBackend(f"{folder}/study.log"))


@pytest.fixture(scope="module", params=["sqlite", "journal"])
def trials(
    request: pytest.FixtureRequest, sweep: Any, tmp_path_factory: Any
) -> dict[str, FrozenTrial]:
    """Run one trial a point and return what the study says of it."""
    from ray import tune
    from ray.tune.search.optuna import OptunaSearch

    from tune_guard.ray import GuardSearcher

    def train(config: dict[str, Any]) -> None:
        x = config["x"]
        for step in range(1, 6):
            if x == 0.05 and step == 3:
                msg = "the user's own error"
                raise FloatingPointError(msg)
            if x == 0.6 and step == 3:
                msg = "CUDA out of memory. Tried to allocate 20.00 GiB."
                raise RuntimeError(msg)
            loss = math.nan if x == 0.9 and step == 3 else x / step
            # Xid 79: the GPU has fallen off the bus.
            xid = 79 if x == 0.15 and step == 4 else 0
            tune.report({"loss": loss, "gpu_xid": xid})

    storage = storage_in(tmp_path_factory.mktemp("study"), request.param)
    searcher = OptunaSearch(
        study_name="study",
        storage=storage,
        points_to_evaluate=[{"x": x} for x in POINTS.values()],
    )
    sweep(
        train,
        [],
        space={"x": tune.uniform(0, 1)},
        tune_config={
            "search_alg": GuardSearcher(searcher),
            "metric": "loss",
            "mode": "min",
            "num_samples": len(POINTS),
            "max_concurrent_trials": 2,
        },
    )
    study = optuna.load_study(study_name="study", storage=storage)
    names = {x: name for name, x in POINTS.items()}
    return {names[trial.params["x"]]: trial for trial in study.trials}


@pytest.mark.parametrize(
    ("fate", "state", "why"),
    [
        ("finite", TrialState.COMPLETE, ""),
        ("nan", TrialState.PRUNED, "non_finite"),
        ("raises", TrialState.FAIL, "error:FloatingPointError"),
        ("too_large", TrialState.PRUNED, "error:cuda_oom"),
        ("gpu_lost", TrialState.FAIL, "gpu_fault"),
    ],
)
def test_each_end_is_told_as_it_was(
    trials: dict[str, FrozenTrial], fate: str, state: TrialState, why: str
) -> None:
    """NaN is pruned and not left running; the machine's fault is a failure."""
    assert trials[fate].state is state
    assert trials[fate].user_attrs["tune_guard/reason"] == why


def test_no_nan_is_in_the_study(trials: dict[str, FrozenTrial]) -> None:
    """Neither as a value nor on the way there."""
    values = [
        v for trial in trials.values() for v in trial.intermediate_values.values()
    ]
    assert values
    assert all(math.isfinite(value) for value in values)
    assert trials["nan"].intermediate_values == {1: 0.9, 2: 0.45}


def test_the_detail_is_there_as_plain_values(trials: dict[str, FrozenTrial]) -> None:
    """As in a study that the guard itself prunes."""
    detail = trials["nan"].user_attrs["tune_guard/detail"]
    assert (detail["value"], detail["best_value"], detail["schema"]) == ("NaN", 0.45, 1)
