"""A guarded sweep with fixed seeds: ``python sweep.py FOLDER ADDRESS``.

Imports nothing of the tests, so that a job can be submitted with this file alone. The
curve of a trial depends on its seed only, whatever the cluster.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tune_guard import Policy
from tune_guard.policy import DEFAULT
from tune_guard.rules import Plateau

SEEDS = range(8)
STEPS = 30
GATE = 6
FIRST = (0, 1)
"""These trials meet before the step of the gate: each is on a GPU of its own."""

POLICY = Policy.default(
    "loss",
    "min",
    warmup_steps=3,
    budget_steps=STEPS,
    # It counts: exact only if no report is lost, and none is heard twice.
    rules=(*DEFAULT, Plateau(patience=8, holds=())),
)


def losses(seed: int) -> Iterator[float]:
    """Yield a loss a step: stale after a while, NaN, diverging, or sound."""
    noise = random.Random(seed)
    turn = noise.randint(8, 14)
    level = noise.uniform(1.0, 3.0)
    for step in range(1, STEPS + 1):
        loss = level * math.exp(-step / 10) + 0.01 * noise.random()
        fate = ("stale", "stale", "nan", "diverging", "sound")[seed % 5]
        if fate == "stale" and step > turn:
            yield level * math.exp(-turn / 10) + 0.02
        elif fate == "nan" and step == turn:
            yield math.nan
        elif fate == "diverging" and step >= turn:
            yield level * 10.0 ** (step - turn + 1)
        else:
            yield loss


def train(config: dict[str, Any]) -> None:
    """Report the losses of a seed; save every fourth step where the seed is even."""
    from ray import tune

    seed, first = config["seed"], 1
    checkpoint = tune.get_checkpoint()
    if checkpoint is not None:
        with checkpoint.as_directory() as folder:
            first = int((Path(folder) / "step").read_text()) + 1
    for step, loss in enumerate(losses(seed), start=1):
        if step < first:
            continue
        if step == GATE and seed in FIRST:
            meet(Path(config["gate"]), seed, opened=config["opened"])
        if seed % 2 or step % 4:
            tune.report({"loss": loss})
            continue
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "step").write_text(str(step))
            saved = tune.Checkpoint.from_directory(folder)
            tune.report({"loss": loss}, checkpoint=saved)


def meet(gate: Path, seed: int, *, opened: bool) -> None:
    """Leave node and process in a mark; wait for the others, or for whoever opens."""
    import ray

    draft = gate / f".{seed}"
    draft.write_text(f"{ray.util.get_node_ip_address()} {os.getpid()}")
    draft.replace(gate / str(seed))
    awaited = ["open"] if opened else map(str, FIRST)
    for name in awaited:
        while not (gate / name).exists():
            time.sleep(0.05)


def storage(folder: Path, kind: str) -> dict[str, Any]:
    """Return where a sweep stores: a folder, or the same through fsspec."""
    if kind == "folder":
        return {"storage_path": str(folder)}
    from fsspec.implementations.dirfs import DirFileSystem
    from fsspec.implementations.local import LocalFileSystem
    from pyarrow import fs

    shared = DirFileSystem(path=str(folder), fs=LocalFileSystem())
    return {
        "storage_path": "bucket",
        "storage_filesystem": fs.PyFileSystem(fs.FSSpecHandler(shared)),
    }


def connect(address: str) -> None:
    """Connect to the cluster; as a client, up to three times.

    The proxy forks a server for each client among threads of gRPC, and now and then
    that child dies at once (Ray 2.60).
    """
    import ray

    local = {"num_cpus": 2, "num_gpus": 2, "include_dashboard": False}
    for attempts_left in (2, 1, 0):
        try:
            ray.init(address, **(local if address == "local" else {}))
        except ConnectionAbortedError:
            if not attempts_left:
                raise
        else:
            return


def main() -> None:
    """Run the sweep on the cluster at the address, or on one node of its own."""
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("address", help="`local` starts a node; `auto` is a job's")
    parser.add_argument("--storage", choices=["folder", "fsspec"], default="folder")
    parser.add_argument("--opened", action="store_true", help="by a file in gate/")
    given = parser.parse_args()

    from ray import tune

    from tune_guard.ray import GuardCallback, GuardStopper

    gate = given.folder / "gate"
    gate.mkdir()
    connect(given.address)
    tune.Tuner(
        tune.with_resources(train, {"cpu": 1, "gpu": 1}),
        param_space={
            "seed": tune.grid_search(list(SEEDS)),
            "gate": str(gate),
            "opened": given.opened,
        },
        tune_config=tune.TuneConfig(reuse_actors=True),
        run_config=tune.RunConfig(
            name="sweep",
            verbose=0,
            stop=GuardStopper(POLICY),
            callbacks=[GuardCallback(POLICY)],
            failure_config=tune.FailureConfig(max_failures=2),
            **storage(given.folder, given.storage),
        ),
    ).fit()


if __name__ == "__main__":
    main()
