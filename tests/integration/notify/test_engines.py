"""Zero lines: variables of the environment are enough, in every engine."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from tests.integration.notify.robots import Robots

ROOT = Path(__file__).parents[3]

OPTUNA = """
import optuna
from tune_guard import Policy
from tune_guard.optuna import GuardPruner

optuna.logging.set_verbosity(optuna.logging.ERROR)
policy = Policy.default("value", "min", budget_steps=10)

def train(trial):
    lr = trial.suggest_float("lr", 0.001, 0.012)
    for step in range(10):
        bad = lr > 0.0065 and step == 3
        trial.report(float("nan") if bad else 1.0 / (step + 1), step)
        if trial.should_prune():
            raise optuna.TrialPruned
    return 0.1

grid = {"lr": [0.001 * number for number in range(1, 13)]}
study = optuna.create_study(
    study_name="digits", pruner=GuardPruner(policy=policy),
    sampler=optuna.samplers.GridSampler(grid),
)
study.optimize(train)
"""

RAY = """
import os
os.environ["RAY_AIR_NEW_OUTPUT"] = "0"
import ray
from ray import tune
from tune_guard import Policy
from tune_guard.ray import GuardCallback, GuardStopper

policy = Policy.default("loss", "min", budget_steps=10)

def train(config):
    for step in range(10):
        bad = config["lr"] > 0.0065 and step == 3
        tune.report({"loss": float("nan") if bad else 1.0 / (step + 1)})

ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
tune.Tuner(
    train,
    tune_config=tune.TuneConfig(reuse_actors=True),
    param_space={"lr": tune.grid_search([0.001 * number for number in range(1, 13)])},
    run_config=tune.RunConfig(
        name="digits", storage_path=os.environ["STORAGE"], verbose=0,
        stop=GuardStopper(policy), callbacks=[GuardCallback(policy)],
    ),
).fit()
"""

PLAIN = """
import sys
from tune_guard import Policy, TrialGuard

sys.argv = ["train_digits.py"]
with TrialGuard(Policy.default("val_loss", "min"), gpu="off") as guard:
    for epoch in range(5):
        verdict = guard.check_epoch(1.0 / (epoch + 1) if epoch < 3 else float("nan"))
        if verdict.stop:
            break
"""

Run = Callable[..., str]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run a script with settings in its environment; return what it logged."""

    def start(code: str, alerts: str, **more: str) -> str:
        clean = {k: v for k, v in os.environ.items() if "proxy" not in k.lower()}
        environment = {
            **clean,
            "TUNE_GUARD_STATE": str(tmp_path / "state"),
            "TUNE_GUARD_ALERTS": alerts,
            "TUNE_GUARD_PROMETHEUS": str(tmp_path / "tune_guard.prom"),
            "TUNE_GUARD_TENSORBOARD": str(tmp_path / "runs"),
            "STORAGE": str(tmp_path / "results"),
            "PYTHONPATH": str(ROOT),
            **more,
        }
        process = subprocess.run(
            [sys.executable, "-c", code],
            env=environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
        assert process.returncode == 0, process.stderr
        return process.stderr

    return start


def metrics(path: Path) -> dict[tuple[str, str], float]:
    """Return the values of a metrics file by name and reason."""
    return {
        (sample.name, sample.labels.get("reason", "")): sample.value
        for family in text_string_to_metric_families(path.read_text())
        for sample in family.samples
    }


def margins(folder: Path) -> int:
    """Return how many readings of the rule on NaN there are in all runs."""
    tag = "tune_guard/margin/non_finite"
    runs = {path.parent for path in folder.rglob("events*")}
    loaded = [EventAccumulator(str(run)).Reload() for run in runs]
    return sum(len(e.Scalars(tag)) for e in loaded if tag in e.Tags()["scalars"])


def reasons(folder: Path) -> list[str]:
    """Return the reason of every run, as TensorBoard's own loader reads it."""
    found = []
    for run in {path.parent for path in folder.rglob("events*")}:
        events = EventAccumulator(str(run)).Reload()
        if "tune_guard/reason/text_summary" in events.Tags()["tensors"]:
            (event,) = events.Tensors("tune_guard/reason/text_summary")
            text = event.tensor_proto.string_val[0].decode()
            found.append(text.split()[1])
    return sorted(found)


@pytest.mark.parametrize(
    ("code", "end"),
    [
        pytest.param(OPTUNA, "has ended: 12 trials started", id="optuna"),
        pytest.param(RAY, "has ended: 12 trials", id="ray", marks=pytest.mark.ray),
    ],
)
def test_alerts_metrics_and_runs_come_without_a_line_of_code(
    robots: Robots, run: Run, tmp_path: Path, code: str, end: str
) -> None:
    """Six of twelve trials went NaN: told once, by their region, and in the end."""
    run(code, robots.url("dingtalk"))
    text = robots.text()
    assert text.count("First non-finite trial") == 1
    assert "died of non_finite" in text
    assert end in text
    assert "cut by the guard: 6 (non_finite 6)" in text
    values = metrics(tmp_path / "tune_guard.prom")
    assert values["tuneguard_trials_ended_total", "non_finite"] == 6
    assert values["tuneguard_trials_started_total", ""] == 12
    assert values["tuneguard_compute_saved_seconds_total", "non_finite"] > 0
    assert values["tuneguard_guard_healthy", ""] == 1
    assert reasons(tmp_path / "runs").count("non_finite") == 6
    assert margins(tmp_path / "runs") >= 6 * 10


def test_a_plain_loop_tells_too(robots: Robots, run: Run, tmp_path: Path) -> None:
    """Two lines in the loop, and none for the listeners."""
    run(PLAIN, robots.url("feishu"))
    text = robots.text()
    assert "train_digits" in text
    assert text.count("First non-finite trial") == 1
    assert "cut by the guard: 1 (non_finite 1)" in text
    values = metrics(tmp_path / "tune_guard.prom")
    assert values["tuneguard_trials_ended_total", "non_finite"] == 1
    assert reasons(tmp_path / "runs") == ["non_finite"]
    assert margins(tmp_path / "runs") == 4


@pytest.mark.parametrize(
    "code", [OPTUNA, pytest.param(RAY, marks=pytest.mark.ray)], ids=["optuna", "ray"]
)
def test_listeners_that_fail_leave_the_sweep_alone(
    run: Run, tmp_path: Path, code: str
) -> None:
    """No server, no folder to write to, a port that is taken by nobody's right."""
    (tmp_path / "runs").write_text("a file where a folder should be")
    said = run(
        code,
        "dingtalk+http://127.0.0.1:1/robot/send?access_token=abcdefgh",
        TUNE_GUARD_PROMETHEUS="/proc/nowhere/x.prom 127.0.0.1:1",
        TUNE_GUARD_STATE="/proc/nowhere",
    )
    assert "Traceback" not in said
    assert said.count("TensorBoard could not take a") == 1
    assert said.count("did not take the metrics") == 1
