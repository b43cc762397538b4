"""Runs a function on several real processes that form a gloo group."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

RUNNER = """
import datetime, importlib, json, os, sys
import torch.distributed as dist
rank, world, store, module, name, out = sys.argv[1:]
dist.init_process_group(
    "gloo", init_method=f"file://{store}", rank=int(rank), world_size=int(world),
    timeout=datetime.timedelta(seconds=60),
)
told = getattr(importlib.import_module(module), name)(int(rank))
with open(out, "w") as file:
    json.dump(told, file)
os._exit(0)
"""

ROOT = Path(__file__).parents[3]


def on_ranks(world: int, module: str, name: str, *, expect: int | None = None) -> Any:
    """Call ``module.name(rank)`` on each rank; return what each returned.

    Args:
        world: Number of processes.

        module: Where the function is found.

        name: The function's name.

        expect: Ranks that must come back; None for all.
    """
    with tempfile.TemporaryDirectory() as folder:
        outs = [Path(folder) / str(rank) for rank in range(world)]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
        shared = (str(world), f"{folder}/store", module, name)
        processes = [
            subprocess.Popen(
                [sys.executable, "-c", RUNNER, str(rank), *shared, str(out)],
                env=environment,
                stderr=subprocess.PIPE,
                text=True,
            )
            for rank, out in enumerate(outs)
        ]
        try:
            errors = [process.communicate(timeout=120)[1] for process in processes]
        finally:
            for process in processes:
                process.kill()
        found = [json.loads(o.read_text()) if o.exists() else None for o in outs]
        present = sum(one is not None for one in found)
        assert present == (world if expect is None else expect), errors
        return found
