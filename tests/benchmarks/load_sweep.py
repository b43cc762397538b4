"""What it takes to load a Ray sweep of 1,000 trials, beside Ray's own analysis.

The directory is written by Ray's own loggers: 1,000 trials of 200 results. Each
reading of it has a process of its own, in turns, so that the peak of memory is its
own too. Run it with ``python -m tests.benchmarks.load_sweep [TRIALS [STEPS]]``.
"""

from __future__ import annotations

import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

TRIALS, STEPS, ROUNDS = 1_000, 200, 3
NAME = "sweep"


def write(folder: Path, trials: int, steps: int) -> Path:
    """Write an experiment as Ray does, without a cluster; return its directory."""
    from ray.train._internal.storage import StorageContext
    from ray.tune import PlacementGroupFactory
    from ray.tune.experiment import Trial
    from ray.tune.logger import CSVLoggerCallback, JsonLoggerCallback

    class Stored(Trial):
        """Writes where its results end, and not where a cluster would stage them."""

        @property
        def local_path(self) -> str:
            """Its directory."""
            path: str = self.storage.trial_fs_path
            return path

        def init_local_path(self) -> None:
            """Make it."""
            self.relative_logdir = self.storage.trial_dir_name
            Path(self.local_path).mkdir(parents=True, exist_ok=True)

    loggers = [JsonLoggerCallback(), CSVLoggerCallback()]
    states = []
    for number in range(trials):
        storage = StorageContext(str(folder), NAME, trial_dir_name=f"t_{number:05d}")
        config = {"lr": 10 ** -(1 + number % 4), "width": 64, "opt": {"name": "sgd"}}
        trial = Stored("train", stub=True, config=config, storage=storage)
        trial.trial_id = f"t{number:05d}"
        trial.placement_group_factory = PlacementGroupFactory([{"CPU": 1}])
        trial.init_local_path()
        for logger in loggers:
            logger.log_trial_start(trial)
        for row in rows(trial, number, steps):
            for logger in loggers:
                logger.log_trial_result(row["training_iteration"], trial, row)
        for logger in loggers:
            logger.log_trial_end(trial)
        trial.update_last_result(row)
        trial.set_status(Trial.TERMINATED)
        states.append(trial.get_json_state())
    state = {"trial_data": states, "runner_data": {}, "stats": {}}
    home = folder / NAME
    name = "experiment_state-2026-01-01_00-00-00.json"
    (home / name).write_text(json.dumps(state), encoding="utf-8")
    return home


def rows(trial: Any, number: int, steps: int) -> list[dict[str, Any]]:
    """Return a trial's results, stamped by the guard; every fifth trial is cut."""
    noise = random.Random(number)
    sick = number % 5 == 0
    last = steps // 2 if sick else steps
    return [
        {
            "loss": float("nan")
            if sick and step == last
            else 2 / step + noise.random(),
            "accuracy": step / steps,
            "grad_norm": 1.0 + noise.random(),
            **stamp(step, cut=sick and step == last),
            "timestamp": 1_700_000_000 + number + step,
            "checkpoint_dir_name": None,
            "done": step == last,
            "training_iteration": step,
            "trial_id": trial.trial_id,
            "date": "2026-01-01_00-00-00",
            "time_this_iter_s": 1.0,
            "time_total_s": 1.0 * step,
            "pid": 4242,
            "hostname": "node",
            "node_ip": "127.0.0.1",
            "config": trial.config,
            "time_since_restore": 1.0 * step,
            "iterations_since_restore": step,
        }
        for step in range(1, last + 1)
    ]


def stamp(step: int, *, cut: bool) -> dict[str, Any]:
    """Return the guard's keys of a row."""
    from tune_guard import Blame, Outcome, StopRecord
    from tune_guard.row_stamp import RUNNING, to_row

    if not cut:
        return RUNNING
    return to_row(
        StopRecord(
            reason="non_finite",
            outcome=Outcome.GUARD,
            blame=Blame.CONFIG,
            step=step,
            metric="loss",
            value=float("nan"),
            objective="loss",
            mode="min",
            message=f"loss is NaN at step {step}.",
        )
    )


def ours(home: Path) -> dict[str, float]:
    """Load it, then make the page."""
    from tune_guard import load_sweep
    from tune_guard.sweeps.report.html import page

    began_s = time.perf_counter()
    sweep = load_sweep(home).with_objective("loss", "min")
    loaded_s = time.perf_counter()
    loaded_mib = peak_mib()
    readings = len(sweep.curves)
    size = len(page([sweep]).encode())
    return {
        "seconds": loaded_s - began_s,
        "peak_mib": loaded_mib,
        "trials": len(sweep.trials),
        "readings": readings,
        "html_seconds": time.perf_counter() - loaded_s,
        "html_mb": size / 1e6,
        "html_peak_mib": peak_mib(),
    }


def rays(home: Path) -> dict[str, float]:
    """Let Ray's own analysis load it."""
    from ray.tune import ExperimentAnalysis

    began_s = time.perf_counter()
    analysis = ExperimentAnalysis(str(home))
    seconds = time.perf_counter() - began_s
    frames = analysis.trial_dataframes.values()
    rows = sum(len(frame) for frame in frames)
    return {"seconds": seconds, "peak_mib": peak_mib(), "rows": rows}


def peak_mib() -> float:
    """Return the most memory that this process has held since it began."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    peak = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(peak.split()[1]) / 1024


def measured(who: str, home: Path) -> dict[str, float]:
    """Let a process of its own load the directory."""
    command = [sys.executable, "-m", "tests.benchmarks.load_sweep", who, str(home)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main(trials: int = TRIALS, steps: int = STEPS) -> None:
    """Print all of it."""
    with tempfile.TemporaryDirectory() as folder:
        home = write(Path(folder), trials, steps)
        own, other = [], []
        for _ in range(ROUNDS):
            own.append(measured("ours", home))
            other.append(measured("rays", home))
    ratios = [a["seconds"] / b["seconds"] for a, b in zip(own, other, strict=True)]
    figures = {
        "load_sweep": medians(own),
        "ray.tune.ExperimentAnalysis": medians(other),
        "ratio": round(statistics.median(ratios), 2),
    }
    print(json.dumps(figures, indent=2))


def medians(found: list[dict[str, float]]) -> dict[str, float]:
    """Return the median of each figure."""
    return {
        name: round(statistics.median(one[name] for one in found), 2)
        for name in found[0]
    }


if __name__ == "__main__":
    if sys.argv[1:2] in (["ours"], ["rays"]):
        read = ours if sys.argv[1] == "ours" else rays
        print(json.dumps(read(Path(sys.argv[2]))))
    else:
        main(*map(int, sys.argv[1:]))
