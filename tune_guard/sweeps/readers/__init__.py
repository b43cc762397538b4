"""Readers of sweeps: one kind of source a file, one tidy result."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, Union

from tune_guard.exceptions import SourceError, hide_password
from tune_guard.sweeps.merge import merge
from tune_guard.sweeps.readers.progress import Progress, silent
from tune_guard.sweeps.sweep import Sweep

if TYPE_CHECKING:
    import optuna
    from ray.tune import ResultGrid

Source: TypeAlias = Union[str, pathlib.PurePath, "ResultGrid", "optuna.Study"]

_TABLES = (".csv", ".parquet")
_EXPORTS = (".csv", ".json", ".jsonl")
_LOGS = ("result.json", "progress.csv", "metrics.csv", "trainer_state.json")


def load_sweep(
    source: Source, *, study_name: str = "", progress: Progress = silent
) -> Sweep:
    """Load a sweep: who ended each trial, why, and what it reported.

    Nothing that is read is changed, and nothing pickled is ever loaded.

    Args:
        source: Directory of a Ray experiment, of several, or of one trial, or
            its fsspec URL; directory of Lightning's CSV logs or of Transformers'
            checkpoints; a file exported from W&B or MLflow, or a directory of
            them; MLflow's ``mlruns`` or SQLite file; URL of an Optuna storage, or
            path of its SQLite or journal file, with ``?study=NAME`` to choose one;
            parquet or CSV table of curves; a live ``ResultGrid`` or ``Study``.

        study_name: Study to read, where a storage holds several; sweep id, where
            a table does.

        progress: Called with how many are read, of how many, and of what.

    Returns:
        The sweep. Several experiments or studies become one whose trials are
        named ``<experiment>/<trial>``; see :func:`load_sweeps` for each alone.

    Raises:
        SourceError: If there is no sweep that can be read.

    Example:
        >>> load_sweep("no/such/directory")
        Traceback (most recent call last):
        tune_guard.exceptions.SourceError: no/such/directory does not exist. ...
    """
    sweeps = load_sweeps(source, study_name=study_name, progress=progress)
    return merge(sweeps, sweeps[0].source)


def load_sweeps(
    source: Source, *, study_name: str = "", progress: Progress = silent
) -> Sequence[Sweep]:
    """Load every experiment or study of a source; see :func:`load_sweep`.

    Raises:
        SourceError: If there is none that can be read.
    """
    if not isinstance(source, (str, pathlib.PurePath)):
        return [_read_live(source, progress)]
    return _read(str(source), study_name, progress)


def stream_sweeps(
    source: str, *, progress: Progress = silent
) -> tuple[int, Iterator[Sweep]]:
    """Return how many sweeps a source holds, and the sweeps one after another.

    A long table is read as its sweeps are asked for, so that many of them fit into
    the memory of one. Other sources are read at once.

    Raises:
        SourceError: If there is none that can be read.
    """
    path = pathlib.Path(source)
    if path.is_file() and path.suffix in _TABLES and path.name not in _LOGS:
        from tune_guard.sweeps.readers.table_stream import stream_long_table

        return stream_long_table(path)
    sweeps = load_sweeps(source, progress=progress)
    return len(sweeps), iter(sweeps)


def _read_live(source: Any, progress: Progress) -> Sweep:
    """Read a live object, told apart without importing an engine."""
    kinds = {kind.__name__ for kind in type(source).__mro__}
    if "ResultGrid" in kinds:
        from tune_guard.sweeps.readers.result_grid import read_result_grid

        return read_result_grid(source, progress)
    if "Study" in kinds:
        from tune_guard.sweeps.readers.optuna_study import read_study

        return read_study(source, progress=progress)
    msg = (
        f"{type(source).__name__} is no kind of sweep. Give a path, a storage URL, a"
        " ResultGrid or a Study."
    )
    raise SourceError(msg)


def _read(source: str, name: str, progress: Progress) -> Sequence[Sweep]:
    from tune_guard.sweeps.readers import optuna_storage

    tracked = _read_tracked(pathlib.Path(source.removeprefix("sqlite:///")), source)
    if tracked:
        return tracked
    if optuna_storage.is_storage_url(source):
        return optuna_storage.read_optuna_storage(source, name, progress)
    address, named = optuna_storage.split_study(source)
    path = pathlib.Path(source if pathlib.Path(source).is_file() else address)
    if not path.is_file() or path.name in _LOGS:
        return _read_directory(str(path.parent) if path.is_file() else source, progress)
    exported = _read_export(path, source, progress)
    if exported:
        return exported
    if path.suffix in _TABLES:
        from tune_guard.sweeps.readers.long_table import read_long_table

        return read_long_table(path, name or named, progress)
    return optuna_storage.read_optuna_storage(str(path), name or named, progress)


def _read_tracked(path: pathlib.Path, source: str) -> Sequence[Sweep]:
    """Read MLflow's own database; nothing where it is no such file."""
    from tune_guard.sweeps.readers.mlflow_store import read_database

    return read_database(source, path) if path.is_file() else []


def _read_export(
    path: pathlib.Path, source: str, progress: Progress
) -> Sequence[Sweep]:
    """Read a file that a tracker exported; nothing where it is no such file."""
    from tune_guard.sweeps.readers.files import Tree
    from tune_guard.sweeps.readers.readings import NEEDED, columns_of

    if path.suffix not in _EXPORTS:
        return []
    if path.suffix == ".csv" and set(NEEDED) <= set(columns_of(path)):
        return []
    from tune_guard.sweeps.readers.exports import read_exports

    tree = Tree.open(str(path.parent))
    return read_exports(source, tree, [f"{tree.root}/{path.name}"], progress)


def _read_directory(source: str, progress: Progress) -> Sequence[Sweep]:
    from tune_guard.sweeps.readers.directory import read_directory
    from tune_guard.sweeps.readers.files import Tree

    return read_directory(hide_password(source), Tree.open(source), progress)


__all__ = ["Progress", "Source", "load_sweep", "load_sweeps", "silent", "stream_sweeps"]
