"""Read a Ray experiment directory of any version, local or behind an fsspec URL."""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING

from tune_guard.sweeps.readers.progress import Progress, silent
from tune_guard.sweeps.readers.ray_experiment import Experiment, ExperimentReader
from tune_guard.sweeps.readers.ray_state import last_part
from tune_guard.sweeps.readers.ray_trial_files import ROWS, TRIAL_FILES
from tune_guard.sweeps.sweep import Sweep

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tune_guard.sweeps.readers.files import Tree

_STATE = re.compile(r"experiment_state-.*\.json")
_CHECKPOINT = re.compile(r"checkpoint_[\w-]+")


def read_ray(
    source: str, tree: Tree, files: Sequence[str], progress: Progress = silent
) -> list[Sweep]:
    """Read every experiment of a tree; none is no error.

    Args:
        source: What the user named: an experiment's directory, one above several,
            or one trial's.

        tree: Where the files lie.

        files: All files of the tree.

        progress: Called as trials are read.
    """
    experiments = _experiments(tree, files)
    total = sum(len(experiment.trials) for experiment in experiments.values())
    sweeps, done = [], 0
    for directory, experiment in experiments.items():
        reader = ExperimentReader(tree, directory, experiment)
        sweeps.append(reader.read(source, progress, done, total))
        done += len(experiment.trials)
    return sweeps


def _experiments(tree: Tree, files: Sequence[str]) -> dict[str, Experiment]:
    """Group the files of a tree into experiments and their trials."""
    found: dict[str, Experiment] = {}
    for path in files:
        directory, name = posixpath.split(path)
        if _STATE.fullmatch(name):
            found.setdefault(directory, Experiment()).states.append(path)
        elif name in TRIAL_FILES and not _CHECKPOINT.fullmatch(last_part(directory)):
            parent = posixpath.dirname(directory)
            trials = found.setdefault(parent, Experiment()).trials
            trials.setdefault(directory, {})[name] = path
    alone = found.get(posixpath.dirname(tree.root))
    if alone is not None:
        alone.states = tree.siblings(_STATE)
    return {
        directory: experiment
        for directory, experiment in sorted(found.items())
        if experiment.states
        or any(name in files for files in experiment.trials.values() for name in ROWS)
    }
