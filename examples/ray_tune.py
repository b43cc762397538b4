"""A Ray Tune sweep of small classifiers, guarded: which trials were cut, and why.

Run it with ``python -m examples.ray_tune``; it takes under a minute on two cores.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ray
from ray import tune

from examples import digits
from tune_guard import Policy
from tune_guard.ray import GuardCallback, GuardStopper


def train(config: dict[str, Any]) -> None:
    """Train on handwritten digits and report once an epoch."""
    for report in digits.train(config, epochs=30):
        tune.report(report)


def main() -> None:
    """Run ten trials and print how each of them ended."""
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    policy = Policy.default("val_loss", "min", warmup_steps=3, patience=5)
    space = {
        "lr": tune.grid_search([0.05, 0.5, 3.0, 30.0, 100.0]),
        "optimizer": "sgd",
        "momentum": tune.grid_search([0.5, 0.95]),
        "weight_decay": 1e-4,
        "batch_size": 64,
        "hidden": 32,
        "warmup_epochs": 0,
        "schedule": "constant",
    }
    results = tune.Tuner(
        train,
        param_space=space,
        tune_config=tune.TuneConfig(reuse_actors=True),
        run_config=tune.RunConfig(
            storage_path=str(Path("results").resolve()),
            verbose=0,
            stop=GuardStopper(policy),
            callbacks=[GuardCallback(policy)],
        ),
    ).fit()
    for result in results:
        row, config = result.metrics, result.metrics["config"]
        reason = row["tune_guard/reason"]
        setting = f"lr {config['lr']:6.2f}  momentum {config['momentum']:.2f}"
        end = f"{reason} at epoch {row['tune_guard/step']}" if reason else "completed"
        print(f"{setting}  {end}")
    print(f"Compare the reasons: tune-guard report {results.experiment_path}")


if __name__ == "__main__":
    main()
