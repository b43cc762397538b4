"""Tasks on a small disk that only they see: ``-m tests.faults.isolated TASK DISK``.

Each prints what is recorded of its sweep, read back while the disk is as it is.
"""

from __future__ import annotations

import contextlib
import json
import math
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

_BLOCK = b"\0" * 4096


def fill(disk: Path) -> None:
    """Fill a disk to its last byte."""
    with contextlib.suppress(OSError), (disk / "filler").open("ab", 0) as file:
        while True:
            file.write(_BLOCK)
    with contextlib.suppress(OSError), (disk / "filler").open("ab", 0) as file:
        while True:
            file.write(b"\0")


def make_read_only(disk: Path) -> None:
    """Let nothing be written to a disk any more."""
    command = ["mount", "-o", "remount,ro", str(disk)]
    subprocess.run(command, check=True, capture_output=True)


# ----------------------------------------------------------------------------- Ray


def _train(config: dict[str, Any]) -> None:
    """Spoil the disk at step 2, and meet a NaN at step 3."""
    from ray import tune

    for step in range(1, 5):
        if step == 2 and config["fate"] == "nan":
            spoil = fill if config["how"] == "full" else make_read_only
            spoil(Path(config["disk"]))
        sick = config["fate"] == "nan" and step == 3
        tune.report({"loss": math.nan if sick else 1 / step})


def _ray(disk: Path, how: str) -> list[Any]:
    from ray import tune

    from tests.faults.processes import start_ray
    from tests.faults.trials import POLICY
    from tune_guard import load_sweep
    from tune_guard.ray import GuardCallback, GuardStopper

    start_ray(num_cpus=1, address="local")
    space = {"fate": tune.grid_search(["healthy", "nan"]), "disk": str(disk)}
    tune.Tuner(
        _train,
        param_space={**space, "how": how},
        tune_config=tune.TuneConfig(max_concurrent_trials=1),
        run_config=tune.RunConfig(
            name="sweep",
            storage_path=str(disk),
            verbose=0,
            stop=GuardStopper(POLICY),
            callbacks=[GuardCallback(POLICY)],
        ),
    ).fit()
    # A full disk leaves empty files: the fate is known by the directory's name.
    trials = load_sweep(str(disk / "sweep")).trials
    fates = ("healthy", "nan")
    return [
        [next(f for f in fates if f"={f}_" in trial.name), trial.reason, trial.step]
        for trial in trials
    ]


def ray_disk_full(disk: Path) -> list[Any]:
    """Run a sweep whose storage is full."""
    return _ray(disk, "full")


def ray_read_only(disk: Path) -> list[Any]:
    """Run a sweep whose storage turns read-only."""
    return _ray(disk, "read-only")


# -------------------------------------------------------------------------- Optuna


def _study(storage: Any, spoil: Any, source: str) -> list[Any]:
    """Run a trial whose storage is spoilt between the report and the cut."""
    import optuna

    from tests.faults.optuna_faults import recorded
    from tune_guard.optuna import GuardPruner

    optuna.logging.set_verbosity(optuna.logging.CRITICAL)
    study = optuna.create_study(storage=storage, pruner=GuardPruner())

    def objective(trial: optuna.Trial) -> float:
        trial.report(1.0, 0)
        trial.report(math.nan, 1)
        spoil()
        if trial.should_prune():
            raise optuna.TrialPruned
        return 1.0

    with contextlib.suppress(Exception):  # telling the storage of the end fails, too
        study.optimize(objective, n_trials=1)
    return [[trial, *verdict] for trial, verdict in recorded(source)]


def sqlite_disk_full(disk: Path) -> list[Any]:
    """Run a study whose SQLite file lies on a full disk."""
    url = f"sqlite:///{disk}/study.db"
    return _study(url, lambda: fill(disk), url)


def journal_read_only(disk: Path) -> list[Any]:
    """Run a study whose journal lies on a disk that turns read-only."""
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    path = str(disk / "journal.log")
    storage = JournalStorage(JournalFileBackend(path))
    return _study(storage, lambda: make_read_only(disk), path)


def evidence_disk_full(disk: Path) -> list[Any]:
    """Cut a trial whose evidence does not fit its disk."""
    import optuna

    from tests.faults.optuna_faults import recorded
    from tune_guard import Evidence
    from tune_guard.evidence.reader import find_bundle
    from tune_guard.optuna import GuardPruner

    optuna.logging.set_verbosity(optuna.logging.CRITICAL)
    url = "sqlite:///study.db"  # in the working directory, which has room
    pruner = GuardPruner(evidence=Evidence(folder=disk))
    study = optuna.create_study(storage=url, pruner=pruner)

    def objective(trial: optuna.Trial) -> float:
        for step in range(601):
            value = math.nan if step == 600 else 1 / (step + 1)
            trial.report(value, step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return 1.0

    study.optimize(objective, n_trials=1)
    found = [[trial, *verdict] for trial, verdict in recorded(url)]
    bundle = find_bundle(str(disk))
    record = bundle.record()
    if record is not None and not bundle.problems():
        found += [["record.json", record.reason, record.step]]
    return found


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    result = globals()[sys.argv[1]](Path(sys.argv[2]))
    print("FOUND " + json.dumps(result), flush=True)
