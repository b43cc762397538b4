"""A sweep on a cluster of two nodes: ``python -m tests.integration.ray.nodes_process``.

Trials fail once, by the machine or by an exception, and write down where their
attempts ran.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from pathlib import Path
from typing import Any

from tune_guard import Policy
from tune_guard.policy import DEFAULT
from tune_guard.rules import Stalled

POLICY = Policy.default("loss", "min", rules=(*DEFAULT, Stalled(timeout_s=600)))


def train(config: dict[str, Any]) -> None:
    """Note the node; fail at the first attempt, after a report."""
    import ray
    from ray import tune

    from tune_guard.worker import HardwareFault

    notes = Path(config["folder"]) / config["fate"]
    with notes.open("a") as file:
        file.write(ray.get_runtime_context().get_node_id() + "\n")
    tune.report({"loss": 1.0})
    if len(notes.read_text().splitlines()) == 1:
        if config["fate"] == "raises":
            msg = "the user's own error"
            raise ValueError(msg)
        from tune_guard import Blame, Outcome, StopRecord

        record = StopRecord(
            reason="gpu_fault", outcome=Outcome.GUARD, blame=Blame.INFRASTRUCTURE
        )
        msg = "the GPU is lost"
        raise HardwareFault(msg, record)
    tune.report({"loss": 0.5})


def main(folder: Path) -> None:
    """Run the sweep and write down where its attempts ran."""
    warnings.simplefilter("ignore")
    import ray
    from ray import tune
    from ray.cluster_utils import Cluster

    from tune_guard.ray import GuardCallback, GuardStopper, Watchdog, _engine

    # Nodes are told apart by their addresses, as those of a real cluster are.
    cluster = Cluster(
        initialize_head=True,
        head_node_args={"num_cpus": 1, "include_dashboard": False},
    )
    cluster.add_node(num_cpus=1, node_ip_address="127.0.0.2")
    ray.init(address=cluster.address, logging_level="ERROR", log_to_driver=False)
    selectors: dict[str, Any] = {}

    class Note(GuardCallback):
        def on_trial_complete(self, *args: Any, **info: Any) -> None:
            """Note where a trial was allowed to run."""
            trial = info["trial"]
            request = trial.placement_group_factory
            selectors[trial.config["fate"]] = _engine.label_selectors(request)
            super().on_trial_complete(*args, **info)

    tune.Tuner(
        train,
        param_space={
            "fate": tune.grid_search(["fault", "raises"]),
            "folder": str(folder),
        },
        tune_config=tune.TuneConfig(
            scheduler=Watchdog(POLICY), max_concurrent_trials=1
        ),
        run_config=tune.RunConfig(
            name="sweep",
            storage_path=str(folder / "results"),
            verbose=0,
            stop=GuardStopper(POLICY),
            callbacks=[Note(POLICY)],
            failure_config=tune.FailureConfig(max_failures=1),
        ),
    ).fit()
    found: dict[str, Any] = {
        fate: (folder / fate).read_text().split() for fate in ("fault", "raises")
    }
    (folder / "nodes.json").write_text(json.dumps({**found, "selectors": selectors}))
    ray.shutdown()
    cluster.shutdown()


if __name__ == "__main__":
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    main(Path(sys.argv[1]))
