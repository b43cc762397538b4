"""One monitor: observations a second, bytes a trial, and memory of a large sweep."""

from __future__ import annotations

import logging
import pickle
import random
import subprocess
import sys
import time
import tracemalloc

from tune_guard.monitor import Monitor
from tune_guard.notices import Notices
from tune_guard.policy import Policy

REPORTS = 10_000
TRIALS = 10_000
LIMIT_BYTES = 4096


def report(step: int, rng: random.Random, *, everything: bool) -> dict[str, float]:
    """Return a plausible report of a healthy trial."""
    found = {"val_loss": 1 / (step + 1) + 0.01 * rng.random()}
    if everything:
        found |= {
            "loss": found["val_loss"] * 0.9,
            "lr": 0.1,
            "grad_norm": 1 + rng.random(),
            "amp_scale": 65536.0,
            "step_time_s": 0.1 + 0.01 * rng.random(),
            "gpu_reasons": 0,
            "gpu_utilization_ratio": 0.9,
            "gpu_clock_mhz": 1500.0,
            "time_total_s": float(step),
        }
    return found


def policy() -> Policy:
    """Return the default policy with every rule armed."""
    return Policy.default("val_loss", "min", patience=20, target=0.0)


def observed(*, everything: bool) -> tuple[float, int]:
    """Return observations a second of CPU time, and the pickled state's bytes."""
    rng = random.Random(0)
    rows = [report(step, rng, everything=everything) for step in range(REPORTS)]
    monitor = Monitor(Policy.default("val_loss", "min"))
    started = time.process_time()
    for step, row in enumerate(rows):
        monitor.observe(step, row)
    spent_s = time.process_time() - started
    full = Monitor(policy())
    for step, row in enumerate(rows):
        full.observe(step, row)
    return REPORTS / spent_s, len(pickle.dumps(full.state()))


def sweep_mib() -> float:
    """Return the memory of as many open monitors as a large sweep has trials."""
    notices, rng = Notices(), random.Random(0)
    rows = [report(step, rng, everything=False) for step in range(3)]
    tracemalloc.start()
    stored = {}
    for number in range(TRIALS):
        monitor = Monitor(policy(), trial_id=str(number), notices=notices)
        for step, row in enumerate(rows):
            monitor.observe(step, row)
        stored[number] = pickle.dumps(monitor.state())
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return size / 2**20


def import_ms() -> float:
    """Return the best of five imports, each in a fresh interpreter."""
    code = (
        "import time; t = time.perf_counter(); import tune_guard;"
        " print((time.perf_counter() - t) * 1000)"
    )
    runs = [
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, check=True, text=True
        ).stdout
        for _ in range(5)
    ]
    return min(map(float, runs))


def main() -> None:
    """Print the figures."""
    logging.disable(logging.CRITICAL)
    for name, everything in (("metric only", False), ("every signal", True)):
        rate, size = observed(everything=everything)
        fits = "ok" if size < LIMIT_BYTES else "over"
        print(f"{name}: {rate:,.0f} observations/s, {size} bytes a trial ({fits})")
    print(f"{TRIALS:,} stored trials: {sweep_mib():.1f} MiB")
    print(f"import tune_guard: {import_ms():.1f} ms")


if __name__ == "__main__":
    main()
