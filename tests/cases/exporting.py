"""A study whose exporters raise: ``python -m tests.cases.exporting FOLDER STEP``."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

FOLDER, AT = Path(sys.argv[1]), int(sys.argv[2])
# Before the first event: the environment is read once.
os.environ["TUNE_GUARD_TENSORBOARD"] = str(FOLDER / "runs")
os.environ["TUNE_GUARD_PROMETHEUS"] = str(FOLDER / "guard.prom")

import optuna  # noqa: E402
import tensorboardX  # noqa: E402
from tensorboardX import event_file_writer  # noqa: E402

from tests.cases.reload import open_storage, stored_trial  # noqa: E402
from tune_guard import Policy, listeners  # noqa: E402
from tune_guard.optuna import GuardPruner  # noqa: E402
from tune_guard.record import REASON  # noqa: E402

ADDRESS = f"sqlite:///{FOLDER / 'study.db'}"


class RaisingWriter:
    """Notes what is stored when it is first called, and raises."""

    seen: list[Any] = []  # noqa: RUF012 - of all writers together

    def __init__(self, *_: Any, **__: Any) -> None:
        study = optuna.load_study(study_name="s", storage=open_storage(ADDRESS))
        self.seen.append(stored_trial(study).get(REASON))
        msg = "cannot make a histogram of NaN"
        raise ValueError(msg)


def objective(trial: optuna.Trial) -> float:
    """Report a loss that is NaN from a step on."""
    for step in range(AT + 3):
        trial.report(float("nan") if step >= AT else 1.0 / (step + 1), step)
        if trial.should_prune():
            raise optuna.TrialPruned
    return 1.0


if __name__ == "__main__":
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    tensorboardX.SummaryWriter = event_file_writer.EventsWriter = RaisingWriter
    policy = Policy.from_yaml(FOLDER / "policy.yaml")
    study = optuna.create_study(
        study_name="s", storage=open_storage(ADDRESS), pruner=GuardPruner(policy=policy)
    )
    study.optimize(objective, n_trials=1)
    listeners.shut()
    reloaded = optuna.load_study(study_name="s", storage=open_storage(ADDRESS))
    # The last call is for the trial's end; those before are for its reports.
    seen = (RaisingWriter.seen or [None])[-1]
    print(json.dumps({**stored_trial(reloaded), "stored_before_export": seen}))
