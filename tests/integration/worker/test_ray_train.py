"""Ray Train inside a Tune trial: what happens on rank 1 reaches Tune."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pytest

from tune_guard import Policy
from tune_guard.ray import GuardCallback, GuardReportCallback, GuardStopper
from tune_guard.rules import NonFinite

pytestmark = [pytest.mark.ray, pytest.mark.filterwarnings("ignore")]

POLICY = Policy(metric="val_loss", mode="min", rules=(NonFinite(),))


def plain_loop(config: dict[str, Any]) -> None:
    """Report from both ranks; rank 1's loss becomes NaN at the third report."""
    import ray.train

    rank = ray.train.get_context().get_world_rank()
    for epoch in range(6):
        loss = float("nan") if rank == 1 and epoch >= 2 else 1.0 / (epoch + 1)
        ray.train.report({"val_loss": loss, "epoch": epoch})


def guarded_loop(config: dict[str, Any]) -> None:
    """Train with a guard on both ranks; rank 1's loss becomes NaN between reports."""
    import ray.train

    from tune_guard import TrialGuard

    rank = ray.train.get_context().get_world_rank()
    guard = TrialGuard(POLICY)
    for epoch in range(4):
        for step in range(10):
            bad = rank == 1 and (epoch, step) == (1, 5)
            if guard.step(float("nan") if bad else 1.0).stop:
                Path(config["log"]).with_suffix(f".{rank}").write_text(
                    f"{guard.verdict.step}"
                )
                return
        guard.report({"val_loss": 1.0 / (epoch + 1), "epoch": epoch})


def trial(config: dict[str, Any]) -> None:
    """Run a training on two ranks."""
    import ray.train
    from ray.train.torch import TorchTrainer

    loop = {"plain": plain_loop, "guarded": guarded_loop}[config["loop"]]
    TorchTrainer(
        loop,
        train_loop_config=config,
        scaling_config=ray.train.ScalingConfig(num_workers=2),
        run_config=ray.train.RunConfig(
            name="train",
            storage_path=config["storage"],
            callbacks=[GuardReportCallback(POLICY)],
        ),
    ).fit()


def sweep(tmp_path: Path, loop: str) -> Any:
    """Run one trial and return its result."""
    from ray import tune

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        grid = tune.Tuner(
            trial,
            param_space={
                "loop": loop,
                "log": str(tmp_path / "rank"),
                "storage": str(tmp_path / "train"),
            },
            tune_config=tune.TuneConfig(metric="val_loss", mode="min"),
            run_config=tune.RunConfig(
                name="sweep",
                storage_path=str(tmp_path / "results"),
                verbose=0,
                stop=GuardStopper(POLICY),
                callbacks=[GuardCallback(POLICY)],
            ),
        ).fit()
    return grid[0]


def test_a_nan_of_rank_one_stops_the_trial(cluster: None, tmp_path: Path) -> None:
    """Without a guard in the loop: the worst rank's metric is what Tune sees."""
    result = sweep(tmp_path, "plain")
    assert result.error is None
    assert result.metrics["tune_guard/reason"] == "non_finite"
    assert result.metrics["worst_rank"] == 1
    assert result.metrics["epoch"] == 2


def test_a_guard_on_the_ranks_stops_all_of_them(cluster: None, tmp_path: Path) -> None:
    """At the same step, between two reports, and the record names the rank."""
    result = sweep(tmp_path, "guarded")
    assert result.error is None
    steps = {file.suffix: file.read_text() for file in tmp_path.glob("rank.*")}
    assert steps == {".0": "15", ".1": "15"}
    row = result.metrics
    assert (row["tune_guard/reason"], row["tune_guard/step"]) == ("non_finite", 15)
    assert json.loads(row["tune_guard/detail"])["message"].count("(rank 1)") == 1
