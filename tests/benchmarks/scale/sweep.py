"""Results a second of a real Ray sweep, with the guard and without, in turns."""

from __future__ import annotations

import statistics
import tempfile
import time
from typing import Any

import ray
from ray import tune

from tests.benchmarks.scale.limits import Limits
from tune_guard import Policy
from tune_guard.ray import GuardCallback, GuardStopper

ROUNDS = 7
TRIALS = 2
RESULTS = 400


def train(config: dict[str, Any]) -> None:
    """Report as fast as Ray takes it: the driver is the bottleneck."""
    for step in range(RESULTS):
        tune.report({"loss": 2.0 / (step + 1), "grad_norm": 1.0, "lr": 1e-3})


def run(*, guarded: bool) -> tuple[float, float]:
    """Run a sweep; return its results a second, and the driver's CPU ms for each."""
    policy = Policy.default("loss", "min")
    guard: dict[str, Any] = {}
    if guarded:
        guard = {"stop": GuardStopper(policy), "callbacks": [GuardCallback(policy)]}
    with tempfile.TemporaryDirectory() as folder:
        tuner = tune.Tuner(
            train,
            param_space={"x": tune.grid_search(list(range(TRIALS)))},
            run_config=tune.RunConfig(storage_path=folder, verbose=0, **guard),
        )
        began_s, cpu_s = time.monotonic(), time.process_time()
        grid = tuner.fit()
        took_s, cpu_s = time.monotonic() - began_s, time.process_time() - cpu_s
    assert all(r.metrics["training_iteration"] == RESULTS for r in grid)
    results = TRIALS * RESULTS
    return results / took_s, 1000 * cpu_s / results


def measure(limits: Limits) -> None:
    """Note the ratio of the medians; the two take turns, in turned order."""
    ray.init(num_cpus=TRIALS, include_dashboard=False, log_to_driver=False)
    try:
        run(guarded=True)  # starts the workers
        rates: dict[bool, list[float]] = {True: [], False: []}
        cpu_ms: dict[bool, list[float]] = {True: [], False: []}
        for turn in range(ROUNDS):
            for guarded in (turn % 2 == 0, turn % 2 == 1):
                rate, cpu = run(guarded=guarded)
                rates[guarded].append(rate)
                cpu_ms[guarded].append(cpu)
            limits.say(
                f"with {rates[True][-1]:.0f}/s, without {rates[False][-1]:.0f}/s"
            )
    finally:
        ray.shutdown()
    with_guard, without = map(statistics.median, (cpu_ms[True], cpu_ms[False]))
    limits.say(
        f"driver's CPU a result: with {with_guard:.2f} ms, without {without:.2f} ms"
    )
    with_guard, without = map(statistics.median, (rates[True], rates[False]))
    limits.at_least("results a second, with / without", with_guard / without, 0.97)
