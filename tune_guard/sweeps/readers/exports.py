"""Read files that were exported from W&B or MLflow, one or a directory of them."""

from __future__ import annotations

import posixpath
from collections.abc import Callable
from typing import TYPE_CHECKING

from tune_guard.sweeps.readers import mlflow_export, wandb_export
from tune_guard.sweeps.readers.export_runs import Runs, Table, csv_table, json_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tune_guard.sweeps.readers.files import Tree
    from tune_guard.sweeps.readers.progress import Progress
    from tune_guard.sweeps.sweep import Sweep

_Take = Callable[[Table, Runs], bool]
_ENDINGS = (".csv", ".json", ".jsonl")


def read_exports(
    source: str, tree: Tree, files: Sequence[str], progress: Progress
) -> list[Sweep]:
    """Read every exported file: one sweep of all W&B's, one of all MLflow's.

    A table of runs and the histories of the same runs make one sweep together,
    whatever the files are called.

    Args:
        source: What the user named.

        tree: Where the files lie.

        files: The files to look at.

        progress: Called as files are read.
    """
    found = [(wandb_export.take, Runs("wandb")), (mlflow_export.take, Runs("mlflow"))]
    paths = [path for path in files if path.endswith(_ENDINGS)]
    for done, path in enumerate(paths, start=1):
        table = _table(tree, path)
        if table is not None and table.rows:
            _take(table, found)
        progress(done, len(paths), "files read")
    name = posixpath.splitext(posixpath.basename(tree.root))[0]
    if len(files) == 1:
        name = posixpath.splitext(posixpath.basename(files[0]))[0]
    return [into.sweep(source, name) for _, into in found if into.runs]


def _take(table: Table, found: Sequence[tuple[_Take, Runs]]) -> None:
    """Hand a table to the tracker that it is of, if it is of one."""
    for take, into in found:
        if take(table, into):
            for line in table.torn:
                into.gap(table, "torn line left out", line=line)
            return


def _table(tree: Tree, path: str) -> Table | None:
    text = tree.read(path).decode("utf-8-sig", errors="replace")
    stem = posixpath.splitext(posixpath.basename(path))[0]
    read = csv_table if path.endswith(".csv") else json_table
    return read(text, tree.shown(path), stem)
