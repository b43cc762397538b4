"""TrialGuard in real Ray Tune functions: a stop between two reports ends the trial."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pytest

from tune_guard import Policy
from tune_guard.ray import GuardCallback, GuardStopper
from tune_guard.rules import GpuFault, GradientExplosion, NonFinite, Plateau

pytestmark = [pytest.mark.ray, pytest.mark.filterwarnings("ignore")]

POLICY = Policy(
    metric="val_loss",
    mode="min",
    rules=(
        NonFinite(),
        GradientExplosion(min_history=5, k=2, holds=()),
        Plateau(patience=3, holds=()),
        GpuFault(),
    ),
)
STEPS = 20


def train(config: dict[str, Any]) -> None:
    """Train for six epochs of twenty steps, and fall sick as the fate says."""
    from tune_guard import TrialGuard

    fate, log = config["fate"], Path(config["log"])
    guard = TrialGuard(POLICY)
    for epoch in range(6):
        for step in range(STEPS):
            late = epoch * STEPS + step >= 50
            loss = float("nan") if fate == "nan" and late else 1.0
            norm = 500.0 if fate == "explode" and late else 1.0
            if fate == "lost" and late and not log.with_name("retried").exists():
                log.with_name("retried").touch()
                guard._trial.streams.pulse(50, {"gpu_lost": True})
            guard.step(loss, grad_norm=norm, lr=0.1)
            with log.open("a") as file:
                file.write("s")
        value = 1.0 if fate == "flat" else 1.0 / (epoch + 1)
        guard.report({"val_loss": value, "epoch": epoch})


def sweep(tmp_path: Path, fate: str, *, guarded: bool, retries: int = 0) -> Any:
    """Run one trial to its end and return its result."""
    from ray import tune

    more: dict[str, Any] = {}
    if guarded:
        more = {"stop": GuardStopper(POLICY), "callbacks": [GuardCallback(POLICY)]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        grid = tune.Tuner(
            train,
            param_space={"fate": fate, "log": str(tmp_path / "log")},
            tune_config=tune.TuneConfig(metric="val_loss", mode="min"),
            run_config=tune.RunConfig(
                name="sweep",
                storage_path=str(tmp_path / "results"),
                verbose=0,
                failure_config=tune.FailureConfig(max_failures=retries),
                **more,
            ),
        ).fit()
    return grid[0]


def steps_taken(tmp_path: Path) -> int:
    """Return how many optimizer steps went on after the guard's word."""
    return len((tmp_path / "log").read_text())


@pytest.mark.parametrize("guarded", [True, False], ids=["stopper", "alone"])
@pytest.mark.parametrize(
    "expected", [("nan", "non_finite", 50), ("explode", "gradient_explosion", 51)]
)
def test_a_stop_between_reports_ends_the_trial_at_once(
    cluster: None, tmp_path: Path, expected: tuple[str, str, int], guarded: bool
) -> None:
    """No step follows; the last row holds the reason and the step it holds for."""
    fate, reason, step = expected
    result = sweep(tmp_path, fate, guarded=guarded)
    assert result.error is None
    assert steps_taken(tmp_path) == step
    row = result.metrics
    assert row["tune_guard/reason"] == reason
    assert (row["tune_guard/status"], row["tune_guard/step"]) == ("stopped", step)
    detail = json.loads(row["tune_guard/detail"])
    assert (detail["outcome"], detail["blame"]) == ("guard", "config")
    assert result.metrics["training_iteration"] == 3


def test_the_metric_of_a_training_gone_non_finite_is_none(
    cluster: None, tmp_path: Path
) -> None:
    """Its last good value must not make the trial look good to the search."""
    metrics = sweep(tmp_path, "nan", guarded=True).metrics
    assert metrics["val_loss"] != metrics["val_loss"]
    assert metrics["epoch"] == 1


def test_the_driver_adds_what_it_alone_knows(cluster: None, tmp_path: Path) -> None:
    """Best value and trial id; the file in the trial's directory holds the same."""
    result = sweep(tmp_path, "explode", guarded=True)
    detail = json.loads(result.metrics["tune_guard/detail"])
    assert (detail["best_value"], detail["best_step"]) == (0.5, 2)
    stored = json.loads((Path(result.path) / "tune_guard.json").read_text())
    assert stored["tune_guard/reason"] == "gradient_explosion"
    assert stored["tune_guard/detail"]["trial"] == detail["trial"]


@pytest.mark.parametrize("guarded", [True, False], ids=["stopper", "alone"])
def test_a_report_is_judged_as_well(
    cluster: None, tmp_path: Path, guarded: bool
) -> None:
    """A plateau stops at the report that makes it one, on both sides the same."""
    result = sweep(tmp_path, "flat", guarded=guarded)
    assert result.metrics["tune_guard/reason"] == "plateau"
    assert result.metrics["training_iteration"] == 4
    assert result.metrics["tune_guard/step"] == 4


@pytest.mark.parametrize("guarded", [True, False], ids=["stopper", "alone"])
def test_a_healthy_trial_runs_to_its_end(
    cluster: None, tmp_path: Path, guarded: bool
) -> None:
    """Every row carries the health signals, from the first."""
    result = sweep(tmp_path, "healthy", guarded=guarded)
    assert result.metrics["training_iteration"] == 6
    assert result.metrics["tune_guard/reason"] == ""
    table = result.metrics_dataframe
    assert table is not None
    for column in ("grad_norm", "lr", "step_time_s", "tune_guard/status"):
        assert table[column].notna().all()


def test_a_fault_of_the_machine_is_retried(cluster: None, tmp_path: Path) -> None:
    """The worker raises, ``max_failures`` tries again, and the trial completes."""
    result = sweep(tmp_path, "lost", guarded=True, retries=1)
    assert result.error is None
    assert result.metrics["training_iteration"] == 6
    assert steps_taken(tmp_path) == 50 + 6 * STEPS


def test_a_fault_without_a_retry_is_blamed_on_the_machine(
    cluster: None, tmp_path: Path
) -> None:
    """The record names the rule, not the exception."""
    result = sweep(tmp_path, "lost", guarded=True)
    assert "HardwareFault" in str(result.error)
    stored = json.loads((Path(result.path) / "tune_guard.json").read_text())
    assert stored["tune_guard/reason"] == "gpu_fault"
    assert stored["tune_guard/blame"] == "infrastructure"
