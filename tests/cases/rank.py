"""One rank of a distributed training: ``python -m tests.cases.rank FOLDER RANK``."""

from __future__ import annotations

import datetime as dt
import json
import sys
from pathlib import Path
from typing import Any

import torch.distributed as dist

from tune_guard import Policy, TrialGuard


def main(folder: Path, rank: int) -> dict[str, Any]:
    """Judge this rank's values step by step; return what it was told."""
    setting = json.loads((folder / "setting.json").read_text())
    dist.init_process_group(
        "gloo",
        init_method=f"file://{folder / 'meeting'}",
        rank=rank,
        world_size=setting["world"],
        timeout=dt.timedelta(seconds=60),
    )
    policy = Policy.from_yaml(folder / "policy.yaml")
    guard = TrialGuard(policy, gpu="off", deciding_rank=setting["deciding"])
    began = None
    for began, value in zip(
        setting["steps"], setting["values"][str(rank)], strict=True
    ):
        if guard.check_epoch(value, began).stop:
            break
    told = {
        "reason": guard.verdict.reason,
        "step": guard.verdict.step,
        "began": began,
        "collectives": guard._trial.ranks.collectives,
    }
    guard.close()
    dist.destroy_process_group()
    return told


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), int(sys.argv[2]))))
