"""A real study for a real server: it goes on when it is told to.

Six trials go NaN at high learning rates and six do not; then a GPU is lost.
"""

from __future__ import annotations

import functools
import sys

import optuna

from tune_guard import Policy
from tune_guard.optuna import GuardPruner, HardwareFault

STEPS = 10


def main() -> None:
    """Run the study, in two parts."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    guard = GuardPruner(policy=Policy.default("value", "min", budget_steps=STEPS))
    study = optuna.create_study(study_name="digits", pruner=guard)
    for number in range(1, 13):
        study.enqueue_trial({"lr": 0.001 * number})

    def train(trial: optuna.Trial, *, lost: bool = False) -> float:
        bad = trial.suggest_float("lr", 0.001, 0.014) > 0.0065
        for step in range(STEPS):
            health = {
                "gpu_uuid": "GPU-11111111-2222-3333-4444-555555555555",
                "gpu_temperature_celsius": 71 + step,
                "gpu_utilization_ratio": 0.93,
                "gpu_clock_mhz": 1980,
                "gpu_thermal_ratio": 0.0,
                "gpu_xid": 79 if lost and step > 3 else 0,
                "gpu_lost": lost and step > 3,
                "gpu_ecc_uncorrected": 0,
            }
            value = float("nan") if bad and step == 3 else 1.0 / (step + 1)
            guard.report(trial, value, step, **health)
            if trial.should_prune():
                raise optuna.TrialPruned
        return 0.1

    study.optimize(train, n_trials=12)
    tell("trained")
    while sys.stdin.readline() == "fault\n":
        study.enqueue_trial({"lr": 0.001})
        study.optimize(
            functools.partial(train, lost=True), n_trials=1, catch=(HardwareFault,)
        )
        tell("lost")


def tell(word: str) -> None:
    """Say to whoever started this how far it is."""
    print(word, flush=True)


if __name__ == "__main__":
    main()
