"""Read a directory, whatever left its logs there."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

from tune_guard.exceptions import SourceError
from tune_guard.sweeps.readers.exports import read_exports
from tune_guard.sweeps.readers.lightning_csv import METRICS_FILE, read_lightning
from tune_guard.sweeps.readers.mlflow_store import read_mlruns
from tune_guard.sweeps.readers.ray_directory import read_ray
from tune_guard.sweeps.readers.trainer_state import STATE_FILE, read_trainer_states

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tune_guard.sweeps.readers.files import Tree
    from tune_guard.sweeps.readers.progress import Progress
    from tune_guard.sweeps.sweep import Sweep

_OTHER = (".csv", ".db", ".journal", ".log", ".parquet", ".sqlite", ".sqlite3")
_MOST_NAMED = 3


def read_directory(source: str, tree: Tree, progress: Progress) -> list[Sweep]:
    """Read every sweep at or under a directory.

    Args:
        source: What the user named.

        tree: The directory.

        progress: Called as trials are read.

    Raises:
        SourceError: If nothing in it is a sweep.
    """
    files = tree.files()
    sweeps: list[Sweep] = []
    for read in (read_ray, read_lightning, read_trainer_states):
        sweeps += read(source, tree, files, progress)
    # Only where there is nothing else: every log is a table of some kind.
    for read in (read_mlruns, read_exports):
        sweeps = sweeps or read(source, tree, files, progress)
    if not sweeps:
        msg = (
            f"{source} holds no sweep: no result.json, progress.csv or"
            f" experiment_state-*.json of Ray, no {METRICS_FILE} of Lightning, no"
            f" {STATE_FILE} of Transformers and no export of W&B or MLflow lies in it."
            f"{_advice(files)}"
        )
        raise SourceError(msg)
    return sweeps


def _advice(files: Sequence[str]) -> str:
    """Name files that are sweeps themselves, when they are given by name."""
    if any(path.endswith(".wandb") for path in files):
        return (
            " W&B's own files (.wandb) are not read: `wandb sync` them, and export"
            " each run with `run.history().to_csv(...)`."
        )
    names = [path for path in files if posixpath.splitext(path)[1] in _OTHER]
    if not names:
        return " Give the experiment's directory, or one above it."
    return f" Give the file itself: {', '.join(names[:_MOST_NAMED])}."
