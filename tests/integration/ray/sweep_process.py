"""A sweep in a process of its own, for tests that interrupt or kill it.

``python -m tests.integration.ray.sweep_process FOLDER ADDRESS`` starts it, or goes on
with it if it was started before. Its trials wait at two gates until a file named
like the gate lies in the folder, and leave a mark there when they arrive.
"""

from __future__ import annotations

import math
import os
import sys
import time
import warnings
from pathlib import Path
from typing import Any

from tests.integration.ray.support import CountTo
from tune_guard import Policy
from tune_guard.policy import DEFAULT

GATES = {6: "first", 12: "second"}
END = 20
FATES = ["saves", "starts_over", "nan", "returns"]
POLICY = Policy.default("loss", "min", rules=(*DEFAULT, CountTo(n=END)))


def train(config: dict[str, Any]) -> None:
    """Report a loss a step; save at every third step, or never."""
    import tempfile

    from ray import tune

    fate, first = config["fate"], 1
    checkpoint = tune.get_checkpoint()
    if checkpoint is not None:
        with checkpoint.as_directory() as folder:
            first = int((Path(folder) / "step").read_text()) + 1
    for step in range(first, 100):
        if fate == "returns" and step == 5:
            return
        if step in GATES:
            wait_at(Path(config["folder"]), GATES[step], fate)
        report = {"loss": math.nan if fate == "nan" and step == 3 else 1 / step}
        if fate != "saves" or step % 3:
            tune.report(report)
            continue
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "step").write_text(str(step))
            tune.report(report, checkpoint=tune.Checkpoint.from_directory(folder))


def wait_at(folder: Path, gate: str, fate: str) -> None:
    """Leave a mark, and wait until the gate is open."""
    (folder / f"{fate}_at_{gate}").touch()
    while not (folder / gate).exists():
        time.sleep(0.05)


def main(folder: Path, address: str) -> None:
    """Run the sweep, or what is left of it."""
    warnings.simplefilter("ignore")
    import ray
    from ray import tune

    from tune_guard.ray import GuardCallback, GuardStopper

    ray.init(address=address, logging_level="ERROR", log_to_driver=False)
    path = folder / "results" / "sweep"
    resources = tune.with_resources(train, {"cpu": 0.5})
    if tune.Tuner.can_restore(str(path)):
        tuner = tune.Tuner.restore(str(path), trainable=resources)
    else:
        space = {"fate": tune.grid_search(FATES), "folder": str(folder)}
        run_config = tune.RunConfig(
            name="sweep",
            storage_path=str(path.parent),
            verbose=0,
            stop=GuardStopper(POLICY),
            callbacks=[GuardCallback(POLICY)],
        )
        tuner = tune.Tuner(resources, param_space=space, run_config=run_config)
    tuner.fit()


if __name__ == "__main__":
    os.environ["TUNE_GLOBAL_CHECKPOINT_S"] = "1"
    main(Path(sys.argv[1]), sys.argv[2])
