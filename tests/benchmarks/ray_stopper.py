"""What a call of GuardStopper costs beside Ray's own TrialPlateauStopper.

Both judge the same results, in turns, in one process. Run it with
``python -m tests.benchmarks.ray_stopper``.
"""

from __future__ import annotations

import json
import logging
import pickle
import random
import statistics
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

from ray.tune.stopper import Stopper, TrialPlateauStopper

from tune_guard import Policy
from tune_guard.ray import GuardStopper

TRIALS = 50
STEPS = 200
ROUNDS = 7
MANY = 10_000

Trials = dict[str, list[dict[str, Any]]]


def row(
    trial_id: str, step: int, noise: random.Random, *, metric_only: bool = False
) -> dict[str, Any]:
    """Return the row of a healthy trial, as Ray hands it to a stopper."""
    loss = 2.0 / step + noise.random() * 0.05
    signals = {} if metric_only else {"grad_norm": 1.0 + noise.random(), "lr": 1e-3}
    return {
        "loss": loss,
        **signals,
        "timestamp": 1_700_000_000 + step,
        "checkpoint_dir_name": None,
        "done": False,
        "training_iteration": step,
        "trial_id": trial_id,
        "date": "2026-01-01_00-00-00",
        "time_this_iter_s": 0.1,
        "time_total_s": 0.1 * step,
        "pid": 4242,
        "hostname": "node",
        "node_ip": "127.0.0.1",
        "config": {"lr": 1e-3, "width": 64},
        "time_since_restore": 0.1 * step,
        "iterations_since_restore": step,
    }


def results(
    trial_id: str, seed: int, *, metric_only: bool = False
) -> list[dict[str, Any]]:
    """Return the rows of one trial."""
    noise = random.Random(seed)
    steps = range(1, STEPS + 1)
    return [row(trial_id, step, noise, metric_only=metric_only) for step in steps]


def seconds(stop: Callable[[str, dict[str, Any]], Any], trials: Trials) -> float:
    """Return the CPU time of all rows; trials take turns as in a sweep."""
    began_s = time.process_time()
    for step in range(STEPS):
        for trial_id, rows in trials.items():
            stop(trial_id, rows[step].copy())
    return time.process_time() - began_s


def seconds_per_call(stopper: Stopper, trials: Trials) -> float:
    """Return the mean CPU time of a call, without what the loop itself costs."""
    loop_s = seconds(lambda trial_id, result: False, trials)
    return (seconds(stopper, trials) - loop_s) / (STEPS * TRIALS)


def speed(*, metric_only: bool) -> dict[str, float]:
    """Return microseconds a call for both, and their ratio: medians of rounds."""
    trials = {
        f"t{n}": results(f"t{n}", n, metric_only=metric_only) for n in range(TRIALS)
    }
    policy = Policy.default("loss", "min")
    guard, plateau = [], []
    for _ in range(ROUNDS):
        guard.append(seconds_per_call(GuardStopper(policy), trials))
        plateau.append(seconds_per_call(TrialPlateauStopper("loss", std=0), trials))
    ratios = [one / other for one, other in zip(guard, plateau, strict=True)]
    return {
        "guard_us": round(statistics.median(guard) * 1e6, 2),
        "plateau_us": round(statistics.median(plateau) * 1e6, 2),
        "ratio": round(statistics.median(ratios), 2),
    }


def state() -> dict[str, float]:
    """Return pickled bytes a trial, open ones and ended ones."""
    policy = Policy.default("loss", "min")
    stopper = GuardStopper(policy)
    empty = len(pickle.dumps(stopper))
    for n in range(TRIALS):
        for result in results(f"t{n}", n):
            stopper(f"t{n}", result)
    open_bytes = (len(pickle.dumps(stopper)) - empty) / TRIALS
    for n in range(TRIALS):
        last = {**results(f"t{n}", n)[-1], "done": True}
        stopper(f"t{n}", last)
    ended_bytes = (len(pickle.dumps(stopper)) - empty) / TRIALS
    return {"open_bytes": open_bytes, "ended_bytes": ended_bytes}


def memory() -> dict[str, float]:
    """Return MiB of live state with very many trials, all of them still open."""
    stopper = GuardStopper(Policy.default("loss", "min"))
    rows = results("t", 0)[:50]
    tracemalloc.start()
    for n in range(MANY):
        for result in rows:
            stopper(f"t{n}", dict(result))
    used_bytes, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return {"open_trials": MANY, "live_mib": used_bytes / 2**20}


def main() -> None:
    """Print all of it."""
    logging.disable(logging.WARNING)
    figures = {
        "a call, metric only": speed(metric_only=True),
        "a call, metric, loss, gradient norm, learning rate": speed(metric_only=False),
        "pickled bytes a trial": state(),
        "live state": memory(),
    }
    print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
