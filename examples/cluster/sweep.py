"""A guarded Ray Tune sweep on a cluster that is already running.

``python -m examples.cluster.sweep /shared/results`` on a node of the cluster, or
through ``ray job submit``: ``sweep.sbatch`` and ``raycluster.yaml`` beside this file do
it under Slurm and on Kubernetes. The folder must be one that every node sees.
"""

from __future__ import annotations

import argparse
from typing import Any

import ray
from ray import tune
from ray.tune.search.basic_variant import BasicVariantGenerator

from examples import digits
from tune_guard import Policy
from tune_guard.policy import DEFAULT
from tune_guard.ray import GuardCallback, GuardStopper, Watchdog
from tune_guard.rules import Plateau, Stalled

EPOCHS = 30


def train(config: dict[str, Any]) -> None:
    """Train on handwritten digits and report once an epoch."""
    for report in digits.train(config, EPOCHS):
        tune.report(report)


def policy() -> Policy:
    """Return the default rules, a plateau, and one for a trial that falls silent.

    On many machines one will hang sooner or later: the watchdog ends such a trial,
    and its retry keeps away from that node.
    """
    rules = (*DEFAULT, Plateau(patience=5), Stalled(timeout_s=600.0))
    return Policy.default(
        "val_loss", "min", warmup_steps=3, budget_steps=EPOCHS, rules=rules
    )


def main() -> None:
    """Run the trials wherever there is room, and print how each of them ended."""
    parser = argparse.ArgumentParser()
    parser.add_argument("results", help="folder or URL that every node can write to")
    parser.add_argument("--trials", type=int, default=32)
    parser.add_argument("--seed", type=int, help="draw the same trials each time")
    given = parser.parse_args()

    ray.init("auto", log_to_driver=False)  # RAY_ADDRESS, or the node that runs here
    guarded = policy()
    space = {
        "lr": tune.loguniform(1e-2, 1e2),
        "optimizer": "sgd",
        "momentum": tune.uniform(0.0, 0.99),
        "weight_decay": 1e-4,
        "batch_size": 64,
        "hidden": 32,
        "warmup_epochs": 0,
        "schedule": "constant",
    }
    results = tune.Tuner(
        train,
        param_space=space,
        tune_config=tune.TuneConfig(
            num_samples=given.trials,
            search_alg=BasicVariantGenerator(random_state=given.seed),
            scheduler=Watchdog(guarded),
            reuse_actors=True,
        ),
        run_config=tune.RunConfig(
            name="guarded_sweep",
            storage_path=given.results,
            verbose=0,
            stop=GuardStopper(guarded),
            callbacks=[GuardCallback(guarded)],
            # A lost node costs its trials an attempt, and not their result.
            failure_config=tune.FailureConfig(max_failures=2),
        ),
    ).fit()
    for result in results:
        row = result.metrics
        lr, reason = row["config"]["lr"], row["tune_guard/reason"]
        end = f"{reason} at epoch {row['tune_guard/step']}" if reason else "completed"
        print(f"lr {lr:8.3f}  {end}")
    print(f"Compare the reasons: tune-guard report {results.experiment_path}")


if __name__ == "__main__":
    main()
