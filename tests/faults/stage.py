"""Where faults are injected: a quiet process, a local cluster, a folder a fault."""

from __future__ import annotations

import logging
import os
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

from tests.faults.catalogue import Run
from tests.faults.ledger import Count
from tests.faults.processes import start_ray

ROOT = Path(__file__).parents[2]
ENVIRONMENT = {
    "RAY_AIR_NEW_OUTPUT": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "OMP_NUM_THREADS": "1",
}
_TABLE: list[Any] = []


def set_up() -> None:
    """Let the table stand alone, and start Ray: what fails here fails on purpose.

    Ray's own processes write to the same output; they get none.
    """
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    os.environ["PYTHONPATH"] = f"{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    warnings.simplefilter("ignore")
    for name in ("tune_guard", "ray", "optuna"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    _TABLE.append(os.fdopen(os.dup(1), "w"))
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for number in (1, 2):
        os.dup2(nowhere, number)
    start_ray(num_cpus=2)


def say(line: str) -> None:
    """Print a line of the table."""
    print(line, file=_TABLE[0] if _TABLE else sys.stdout, flush=True)


def inject(name: str, run: Run) -> Count:
    """Run one fault in a folder of its own and return what became of its verdicts."""
    with tempfile.TemporaryDirectory(prefix="faults-") as folder:
        work = Path(folder, "work")
        work.mkdir()
        os.chdir(work)  # where a refused record is kept
        try:
            return run(Path(folder))
        except Exception as error:  # noqa: BLE001 - a fault that ends the sweep itself
            return Count(sweeps=1, expected=1, lost=1, remarks=[f"{name}: {error!r}"])
        finally:
            os.chdir(ROOT)
