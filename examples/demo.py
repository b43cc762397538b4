"""The whole path: a Ray Tune sweep and an Optuna study, cut by the same rules.

Both sweep over ``search_spaces/image_classifier.yaml`` with a real training on
scikit-learn's digits. No fault is injected: the space reaches where training
breaks by itself. Run it with ``make demo``; the results lie in ``results``.
"""

from __future__ import annotations

import datetime as dt
import logging
import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import ray
from ray import tune
from rich.console import Console
from rich.progress import Progress

from examples.digits import EPOCHS, train
from tune_guard.cli import main as tune_guard_cli
from tune_guard.optuna import GuardPruner
from tune_guard.policy import Policy
from tune_guard.ray import GuardCallback, GuardStopper
from tune_guard.space import Space

ROOT = Path(__file__).resolve().parents[1]
SPACE = ROOT / "search_spaces" / "image_classifier.yaml"
TRIALS = 30
console = Console()


def policy() -> Policy:
    """Return the default policy, with a plateau and a learning-rate floor armed."""
    return Policy.default(
        "val_loss",
        "min",
        warmup_steps=5,
        patience=20,
        target=0.15,
        budget_steps=EPOCHS,
    )


def ray_trial(config: Mapping[str, Any]) -> None:
    """Train under Ray Tune: nothing in here knows of tune_guard."""
    for report in train(config):
        tune.report(report)


class _Bar:
    """One engine's progress: a bar in a terminal, else a line every few trials."""

    def __init__(self, progress: Progress, engine: str) -> None:
        self.progress, self.engine, self.done = progress, engine, 0
        self.task = progress.add_task(engine, total=TRIALS)

    def advance(self) -> None:
        """Count a trial that ended."""
        self.done += 1
        self.progress.advance(self.task)
        if not console.is_terminal and self.done % 5 == 0:
            console.print(f"{self.engine}: {self.done} of {TRIALS} trials ended")


class _ShowProgress(tune.Callback):
    """Advance a bar at each trial's end."""

    def __init__(self, bar: _Bar) -> None:
        self.bar = bar

    def __getstate__(self) -> dict[str, Any]:
        """Leave the bar behind: Tune stores its callbacks for a restore."""
        return {}

    def on_trial_complete(self, *_: Any, **__: Any) -> None:
        """Count a trial that ended."""
        self.bar.advance()

    on_trial_error = on_trial_complete


def run_ray(folder: Path, bar: Progress) -> Path:
    """Run the sweep and return its directory."""
    guard = policy()
    np.random.seed(1)  # noqa: NPY002 - what Ray's conditional parameters draw from
    tuner = tune.Tuner(
        ray_trial,
        param_space=Space.from_yaml(SPACE).to_ray(),
        tune_config=tune.TuneConfig(
            metric="val_loss",
            mode="min",
            num_samples=TRIALS,
            search_alg=tune.search.BasicVariantGenerator(random_state=1),
        ),
        run_config=tune.RunConfig(
            name="digits",
            storage_path=str(folder),
            stop=GuardStopper(guard),
            callbacks=[GuardCallback(guard), _ShowProgress(_Bar(bar, "Ray Tune"))],
            verbose=0,
        ),
    )
    tuner.fit()
    return folder / "digits"


def run_optuna(folder: Path, bar: Progress) -> str:
    """Run the study and return the URL of its storage."""
    space = Space.from_yaml(SPACE)
    guard = GuardPruner(optuna.pruners.MedianPruner(n_warmup_steps=10), policy())
    storage = f"sqlite:///{folder / 'optuna.db'}"
    study = optuna.create_study(
        study_name="digits",
        storage=storage,
        sampler=optuna.samplers.TPESampler(seed=1),
        pruner=guard,
    )
    shown = _Bar(bar, "Optuna")

    def objective(trial: optuna.Trial) -> float:
        value = float("nan")
        for report in train(space.suggest(trial)):
            value, step = report.pop("val_loss"), int(report.pop("epoch"))
            guard.report(trial, value, step, **report)
            if trial.should_prune():
                raise guard.pruned(trial)
        return value

    study.optimize(objective, TRIALS, callbacks=[lambda *_: shown.advance()])
    return storage


class _Once(logging.Filter):
    """Pass each text once: both engines say which rules are inactive here."""

    def __init__(self) -> None:
        super().__init__()
        self.said: set[str] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether the text is new."""
        text = record.getMessage()
        is_new = text not in self.said
        self.said.add(text)
        return is_new


def _quiet() -> None:
    """Silence what the engines say for each trial: the report says it better."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    logging.getLogger("ray").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", category=FutureWarning)
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    os.environ.setdefault("RAY_AIR_NEW_OUTPUT", "0")


def main() -> None:
    """Run both engines and compare why their trials ended."""
    _quiet()
    logging.basicConfig(format="%(name)s: %(message)s")
    logging.getLogger("tune_guard").addFilter(_Once())
    started = dt.datetime.now(dt.UTC).strftime("%Y%m%d-%H%M%S")
    folder = ROOT / "results" / f"demo-{started}"
    folder.mkdir(parents=True)
    console.print(
        f"{TRIALS} trials each, up to {EPOCHS} epochs, on two CPU cores: about two"
        " minutes."
    )
    console.print("Starting a local Ray cluster ...")
    ray.init(
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        logging_level=logging.ERROR,
        runtime_env={"env_vars": {"PYTHONPATH": str(ROOT)}},
    )
    with Progress(console=console) as bar:
        experiment = run_ray(folder, bar)
        storage = run_optuna(folder, bar)
    ray.shutdown()
    tune_guard_cli(["report", str(experiment)])
    tune_guard_cli(["report", storage])
    shown = experiment.relative_to(ROOT)
    console.print(
        "\nThe results stay here, and can be compared again with\n"
        f"  .venv/bin/tune-guard report {shown}\n"
        f"  .venv/bin/tune-guard report {storage}\n"
        "As one page, with the curves and the regions that kill:\n"
        f"  .venv/bin/tune-guard report {shown} --html demo.html",
        soft_wrap=True,
    )


if __name__ == "__main__":
    main()
