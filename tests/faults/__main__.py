"""Inject the faults and print the table: ``python -m tests.faults [NAME ...]``."""

from __future__ import annotations

import argparse
import logging
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.faults import optuna_faults, ray_faults, resource_faults
from tests.faults.ledger import Count
from tests.faults.ray_faults import DIED, NAN, one

Run = Callable[[Path], Count]

FAULTS: dict[str, Run] = {
    # ------------------------------------------------------- trials and workers in Ray
    "NaN in a report": one("nan", NAN),
    "NaN between reports": one("worker_nan", ("non_finite", 2)),
    "an exception": one("raises", ("error:ValueError", 2)),
    "GPU memory runs out": one("gpu_memory", ("error:cuda_oom", 2)),
    "a MemoryError": one("no_memory", ("error:MemoryError", 2)),
    "worker killed (-9)": one("killed", DIED),
    "worker crashes (SIGSEGV)": one("crashes", DIED),
    "worker killed, retried anew": one("lost_once", ("non_finite", 5), retries=1),
    "worker killed, retried from checkpoint": one(
        "lost_once_saved", ("non_finite", 5), retries=1
    ),
    "GPU lost at every try": one("worker_gpu", ("gpu_fault", 3), retries=1),
    "GPU lost once, retried": one("worker_gpu_once", None, retries=1),
    "trial hangs": one("hangs", ("stalled", 2)),
    "trial hangs with Python's lock": one("holds_the_lock", ("stalled", 2)),
    "trial never reports": one("never_reports", ("stalled", None)),
    "trial frozen (SIGSTOP)": one("frozen", ("stalled", 2)),
    "trial hangs once, retried": one("hangs_once", None, retries=1),
    "host memory runs out": resource_faults.host_memory,
    "trial paused, then resumed": ray_faults.paused,
    "weights taken over (PBT)": ray_faults.exploited,
    "time budget spent": ray_faults.out_of_time,
    "fail_fast": ray_faults.fail_fast,
    # --------------------------------------------------------------- the driver in Ray
    "driver killed (-9), then interrupted": resource_faults.driver_killed,
    # -------------------------------------------------------------------------- Optuna
    "NaN, two workers, one SQLite file": optuna_faults.two_workers,
    "worker killed (-9), then stale": optuna_faults.stale,
    "worker killed after the cut, retried": optuna_faults.inherited,
    "worker killed while it records": optuna_faults.half_written,
    "GPU lost, queued again": optuna_faults.gpu_lost,
    "SQLite file locked": optuna_faults.locked,
    "database gone (server killed)": optuna_faults.server_gone,
    # ------------------------------------------------------------------------ storages
    "Ray: storage full": resource_faults.ray_disk_full,
    "Ray: storage read-only": resource_faults.ray_read_only,
    "Ray: bucket refuses": resource_faults.bucket_refuses,
    "Optuna: SQLite on a full disk": resource_faults.sqlite_disk_full,
    "Optuna: journal on a read-only disk": resource_faults.journal_read_only,
    "evidence on a full disk": resource_faults.evidence_disk_full,
}

_ROW = "{:<40} {:>6} {:>9} {:>9} {:>5} {:>11} {:>6}"


def main() -> int:
    """Run the faults that are asked for, or all, and print what became of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="faults whose name has this text")
    wanted = parser.parse_args().names
    chosen = {
        name: run
        for name, run in FAULTS.items()
        if not wanted or any(text in name for text in wanted)
    }
    heads = ("fault", "sweeps", "expected", "recorded", "lost", "duplicated", "s")
    _say(_ROW.format(*heads))
    total, begun_s = Count(), time.monotonic()
    for name, run in chosen.items():
        total += _one(name, run)
    _print_row(f"{len(chosen)} faults", total, time.monotonic() - begun_s)
    for remark in total.remarks:
        _say(f"  {remark}")
    return int(total.lost + total.duplicated > 0)


def _one(name: str, run: Run) -> Count:
    begun_s = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="faults-") as folder:
        work = Path(folder, "work")
        work.mkdir()
        os.chdir(work)  # where a refused record is kept
        try:
            count = run(Path(folder))
        except Exception as error:  # noqa: BLE001 - a fault that ends the sweep itself
            count = Count(sweeps=1, expected=1, lost=1, remarks=[f"{name}: {error!r}"])
        finally:
            os.chdir(ROOT)
    _print_row(name, count, time.monotonic() - begun_s)
    return count


def _print_row(name: str, count: Count, seconds: float) -> None:
    numbers = (count.sweeps, count.expected, count.recorded, count.lost)
    _say(_ROW.format(name, *numbers, count.duplicated, f"{seconds:.0f}"))


ROOT = Path(__file__).parents[2]
_TABLE: list[Any] = []


def _say(line: str) -> None:
    """Print a line of the table."""
    print(line, file=_TABLE[0] if _TABLE else sys.stdout, flush=True)


def _be_quiet() -> None:
    """Let the table stand alone: what fails here fails on purpose.

    Ray's own processes write to the same output; they get none.
    """
    warnings.simplefilter("ignore")
    for name in ("tune_guard", "ray", "optuna"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    _TABLE.append(os.fdopen(os.dup(1), "w"))
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for number in (1, 2):
        os.dup2(nowhere, number)


def _start_ray() -> Any:
    import ray

    return ray.init(
        num_cpus=2,
        include_dashboard=False,
        logging_level="CRITICAL",
        log_to_driver=False,
    )


if __name__ == "__main__":
    os.environ.setdefault("RAY_AIR_NEW_OUTPUT", "0")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ["PYTHONPATH"] = f"{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    if "--help" not in sys.argv:
        _be_quiet()
        _start_ray()
    sys.exit(main())
