"""Read a live Ray ResultGrid: its directory, and what only the driver knows."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from tune_guard.exceptions import SourceError
from tune_guard.record import Outcome
from tune_guard.sweeps.readers.files import Tree
from tune_guard.sweeps.readers.progress import Progress, silent
from tune_guard.sweeps.readers.ray_directory import read_ray

if TYPE_CHECKING:
    from ray.tune import ResultGrid

    from tune_guard.sweeps.sweep import Sweep


def read_result_grid(grid: ResultGrid, progress: Progress = silent) -> Sweep:
    """Read what ``Tuner.fit()`` returned.

    Args:
        grid: The grid. Its directory is read where it lies, also in the cloud.

        progress: Called as trials are read.

    Raises:
        SourceError: If the directory is gone, or holds no trial.
    """
    from fsspec.implementations.arrow import ArrowFSWrapper

    tree = Tree(ArrowFSWrapper(grid.filesystem), grid.experiment_path)
    sweeps = read_ray(grid.experiment_path, tree, tree.files(), progress)
    if not sweeps:
        msg = f"{grid.experiment_path} holds no trial any more."
        raise SourceError(msg)
    sweep = sweeps[0]
    results = [grid[i] for i in range(len(grid))]
    errors = {_trial_id(result): result.error for result in results if result.error}
    trials = tuple(
        dataclasses.replace(
            trial,
            outcome=Outcome.ERROR,
            reason=f"error:{type(_cause(errors[trial.id])).__name__}",
        )
        if trial.id in errors and trial.id not in sweep.records
        else trial
        for trial in sweep.trials
    )
    return dataclasses.replace(sweep, trials=trials)


def _trial_id(result: Any) -> str:
    return str((result.metrics or {}).get("trial_id", ""))


def _cause(error: Any) -> Any:
    """Return what the training code raised, out of Ray's wrapper."""
    return getattr(error, "cause", None) or error
