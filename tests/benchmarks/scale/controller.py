"""A simulated Ray controller: a million results of ten thousand real trials.

The trials, their storage and the controller that takes the snapshots are Ray's own;
only the training is made up. Rows go through GuardStopper and GuardCallback in the
order in which the controller calls them.
"""

from __future__ import annotations

import json
import pickle
import random
import statistics
import tempfile
import time
from collections.abc import Iterator
from typing import Any

import psutil
import ray
from ray.train._internal.storage import StorageContext
from ray.tune.execution.tune_controller import TuneController
from ray.tune.experiment import Trial
from ray.tune.registry import register_trainable
from ray.tune.stopper import NoopStopper, Stopper
from ray.tune.utils.serialization import TuneFunctionEncoder

from tests.benchmarks.ray_stopper import row
from tests.benchmarks.scale.limits import Limits
from tune_guard import Policy
from tune_guard.ray import GuardCallback, GuardStopper

CONCURRENT = 64
SNAPSHOTS = 5
MIB = 2**20


class Simulation:
    """Trials that run to their end, so many at a time, under one guard."""

    def __init__(self, trials: int, folder: str) -> None:
        policy = Policy.default("loss", "min")
        self.stopper, self.callback = GuardStopper(policy), GuardCallback(policy)
        storage = StorageContext(storage_path=folder, experiment_dir_name="sweep")
        self.controller = TuneController(
            storage=storage, stopper=self.stopper, callbacks=[self.callback]
        )
        self.callback.setup()
        self.trials = [
            Trial("nothing", trial_id=f"{n:05d}", storage=storage)
            for n in range(trials)
        ]
        self.controller._trials = self.trials
        self.callback.on_step_begin(iteration=0, trials=self.trials)

    def run(self, results: int) -> Iterator[float]:
        """Yield the guard's CPU seconds of each result."""
        for first in range(0, len(self.trials), CONCURRENT):
            together = self.trials[first : first + CONCURRENT]
            noises = [random.Random(first + n) for n in range(len(together))]
            for trial in together:
                self.callback.on_trial_start(0, self.trials, trial)
            for step in range(1, results + 1):
                for trial, noise in zip(together, noises, strict=True):
                    yield self._result(trial, row(trial.trial_id, step, noise))
            for trial in together:
                trial.set_status(Trial.TERMINATED)
                self.callback.on_trial_complete(0, self.trials, trial)

    def _result(self, trial: Trial, result: dict[str, Any]) -> float:
        began_ns = time.thread_time_ns()
        self.stopper(trial.trial_id, result)
        self.callback.on_trial_result(0, self.trials, trial, result)
        self.callback.on_step_end(0, self.trials)
        took_s = (time.thread_time_ns() - began_ns) / 1e9
        trial.run_metadata.last_result = result
        return took_s

    def snapshots(self) -> tuple[float, float]:
        """Return the CPU seconds of Ray's snapshot, and of the guard's part in it.

        Ray writes every trial again and works out anew those with new results: the
        open ones.
        """
        bare, added = [], []
        self._snapshot(self.trials, NoopStopper())
        for _ in range(SNAPSHOTS):
            bare.append(self._snapshot(self.trials[-CONCURRENT:], NoopStopper()))
            added.append(_seconds(self._pickle_guard))
        return statistics.median(bare), statistics.median(added)

    def _pickle_guard(self) -> None:
        """Do what a snapshot does with the stopper and the callback."""
        json.dumps({"_stopper": self.stopper}, cls=TuneFunctionEncoder)
        pickle.dumps(self.callback.get_state())

    def _snapshot(self, changed: list[Trial], stopper: Stopper) -> float:
        for trial in changed:
            trial.run_metadata.invalidate_cache()
            self.controller._mark_trial_to_checkpoint(trial)
        self.controller._stopper = stopper
        return _seconds(self.controller.save_to_dir)


def _seconds(do: Any) -> float:
    began_s = time.process_time()
    do()
    return time.process_time() - began_s


def measure(limits: Limits, trials: int = 157 * CONCURRENT, results: int = 100) -> None:
    """Run all of it and note the figures against their limits."""
    register_trainable("nothing", lambda config: None)
    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False)
    try:
        with tempfile.TemporaryDirectory() as folder:
            _measure(limits, Simulation(trials, folder), trials * results, results)
    finally:
        ray.shutdown()


def _measure(limits: Limits, simulation: Simulation, calls: int, results: int) -> None:
    tenth = calls // 10
    process = psutil.Process()
    deciles: list[float] = []
    took_s: list[float] = []
    for number, spent_s in enumerate(simulation.run(results), start=1):
        took_s.append(spent_s)
        if number % tenth:
            continue
        deciles.append(statistics.median(took_s) * 1e6)
        limits.say(
            f"{number:,} results: median {deciles[-1]:.1f} µs a result,"
            f" mean {statistics.fmean(took_s) * 1e6:.1f} µs,"
            f" {process.memory_info().rss / MIB:.0f} MiB in all"
        )
        took_s.clear()
        if number == calls:
            break  # the last trials are still open when the snapshot is taken
    limits.at_most("last decile / first decile", deciles[-1] / deciles[0], 1.2)
    open_trials = len(simulation.stopper._trials)
    limits.at_most("trials whose state is kept", open_trials, 4 * CONCURRENT)
    bare_s, guard_s = simulation.snapshots()
    limits.say(f"Ray's snapshot {bare_s:.2f} s, the guard's part {guard_s:.3f} s")
    limits.at_most("guard's part of a snapshot", guard_s / bare_s, 0.05)
