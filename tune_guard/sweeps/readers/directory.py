"""Read a directory, whatever left its logs there."""

from __future__ import annotations

import dataclasses
import pathlib
import posixpath
from typing import TYPE_CHECKING

from tune_guard.exceptions import SourceError
from tune_guard.sweeps.readers.exports import read_exports
from tune_guard.sweeps.readers.lightning_csv import METRICS_FILE, read_lightning
from tune_guard.sweeps.readers.mlflow_store import read_database, read_mlruns, tables_of
from tune_guard.sweeps.readers.ray_directory import read_ray
from tune_guard.sweeps.readers.trainer_state import STATE_FILE, read_trainer_states
from tune_guard.sweeps.sweep import Problem, Sweep

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tune_guard.sweeps.readers.files import Tree
    from tune_guard.sweeps.readers.progress import Progress

_DATABASES = (".db", ".sqlite", ".sqlite3")
_OF_OPTUNA = frozenset({"studies", "trials"})
_OTHER = (".csv", ".journal", ".log", ".parquet", *_DATABASES)
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
    gaps: list[Problem] = []
    for read in (read_ray, read_lightning, read_trainer_states):
        sweeps += read(source, tree, files, progress)
    sweeps += _read_studies(tree, files, gaps, progress)
    # Only where there is nothing else: MLflow logs what others ran, and every log is
    # a table of some kind.
    sweeps = sweeps or _read_mlflow(source, tree, files)
    for read in (read_mlruns, read_exports):
        sweeps = sweeps or read(source, tree, files, progress)
    if not sweeps:
        msg = (
            f"{source} holds no sweep: no result.json, progress.csv or"
            f" experiment_state-*.json of Ray, no {METRICS_FILE} of Lightning, no"
            f" {STATE_FILE} of Transformers, no run of MLflow, no study of Optuna and"
            f" no export of MLflow or W&B lies in it.{_advice(source, tree, files)}"
        )
        raise SourceError(msg)
    first = dataclasses.replace(sweeps[0], problems=[*sweeps[0].problems, *gaps])
    return [first, *sweeps[1:]]


def _read_studies(
    tree: Tree, files: Sequence[str], gaps: list[Problem], progress: Progress
) -> list[Sweep]:
    """Read the studies of every local database; note those that cannot be read."""
    sweeps: list[Sweep] = []
    for path in _databases(tree, files):
        if tables_of(path) >= _OF_OPTUNA:
            from tune_guard.sweeps.readers.optuna_storage import read_optuna_storage

            try:
                sweeps += read_optuna_storage(str(path), progress=progress)
            except SourceError as error:
                gaps.append(Problem(file=str(path), what=str(error)))
    return sweeps


def _read_mlflow(source: str, tree: Tree, files: Sequence[str]) -> list[Sweep]:
    """Read the experiments of every local database of MLflow."""
    found = [read_database(source, path) for path in _databases(tree, files)]
    return [sweep for sweeps in found for sweep in sweeps]


def _databases(tree: Tree, files: Sequence[str]) -> list[pathlib.Path]:
    paths = files if tree.is_local else ()
    return [pathlib.Path(path) for path in paths if path.endswith(_DATABASES)]


def _advice(source: str, tree: Tree, files: Sequence[str]) -> str:
    """Name files that are sweeps themselves, when they are given by name."""
    if any(path.endswith(".wandb") for path in files):
        return (
            " W&B's own files (.wandb) are not read: `wandb sync` them, and export"
            " each run with `run.history().to_csv(...)`."
        )
    names = [
        posixpath.join(source, tree.relative(path))
        for path in sorted(files, key=lambda path: path.endswith(".csv"))
        if posixpath.splitext(path)[1] in _OTHER
    ]
    if not names:
        return " Give the experiment's directory, or one above it."
    return f" Give the file itself: {', '.join(names[:_MOST_NAMED])}."
