"""Read what MLflow keeps itself: an ``mlruns`` folder, or its SQLite database."""

from __future__ import annotations

import contextlib
import math
import pathlib
import posixpath
import sqlite3
import urllib.parse
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from tune_guard.exceptions import SourceError
from tune_guard.sweeps.readers.export_runs import Run, Runs
from tune_guard.sweeps.readers.mlflow_export import PARENT, as_logged, moment
from tune_guard.sweeps.readers.sqlite_tables import plain_tables
from tune_guard.sweeps.readers.wandb_export import scalar
from tune_guard.sweeps.sweep import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tune_guard.sweeps.readers.files import Tree
    from tune_guard.sweeps.readers.progress import Progress
    from tune_guard.sweeps.sweep import Sweep

_META = "meta.yaml"
_STATES = {"1": "running", "2": "scheduled", "3": "finished", "4": "failed"} | {
    "5": "killed"
}
"""The numbers by which the files call a run's state."""

_TABLES = frozenset({"experiments", "metrics", "params", "runs", "tags"})
_MAGIC = b"SQLite format 3\x00"


def read_mlruns(
    source: str, tree: Tree, files: Sequence[str], progress: Progress
) -> list[Sweep]:
    """Read every experiment of an ``mlruns`` folder; none is no error.

    Args:
        source: What the user named: the folder, one above it, or an experiment's.

        tree: Where the files lie.

        files: All files of the tree.

        progress: Called as runs are read.
    """
    by_run: defaultdict[str, list[str]] = defaultdict(list)
    metas = {path for path in files if posixpath.basename(path) == _META}
    for path in files:
        for part in ("metrics", "params", "tags"):
            run, found, _ = path.partition(f"/{part}/")
            if found and f"{run}/{_META}" in metas:
                by_run[run].append(path)
    runs = [posixpath.dirname(path) for path in sorted(metas)]
    experiments: dict[str, Runs] = {}
    for done, run in enumerate(runs, start=1):
        meta = _meta(tree, f"{run}/{_META}")
        run_id = meta.get("run_id") or meta.get("run_uuid")
        if run_id and meta.get("lifecycle_stage") != "deleted":
            into = experiments.setdefault(posixpath.dirname(run), Runs("mlflow"))
            _describe(into.of(run_id), meta)
            _take_files(tree, run, by_run[run], into.of(run_id), into)
        progress(done, len(runs), "runs read")
    return [
        into.sweep(source, _meta(tree, f"{home}/{_META}").get("name") or home)
        for home, into in experiments.items()
    ]


def _meta(tree: Tree, path: str) -> dict[str, str]:
    """Read the plain values of a meta.yaml: one a line, as MLflow writes them."""
    try:
        text = tree.read(path).decode(errors="replace")
    except OSError:
        return {}
    pairs = (line.partition(": ") for line in text.splitlines())
    return {key: value.strip().strip("'\"") for key, _, value in pairs if value}


def _describe(run: Run, meta: Mapping[str, Any]) -> None:
    state = str(meta.get("status") or "")
    run.state = _STATES.get(state, state)
    run.name = str(meta.get("run_name") or meta.get("name") or "")
    run.began_at, ended = moment(meta.get("start_time")), moment(meta.get("end_time"))
    if run.began_at is not None and ended is not None:
        run.time_s = max(0.0, ended - run.began_at)


def _take_files(
    tree: Tree, home: str, paths: Sequence[str], run: Run, into: Runs
) -> None:
    """Take in the files of a run: a parameter, a tag, or a metric's history each."""
    for path in paths:
        try:
            text = tree.read(path).decode(errors="replace")
        except OSError as error:
            what = f"cannot be read: {error}"
            into.problems.append(Problem(file=tree.shown(path), what=what))
            continue
        kind, _, name = path.removeprefix(f"{home}/").partition("/")
        if kind == "params":
            run.params[name] = scalar(text)
        if kind == "tags" and name == PARENT:
            run.parent = text.strip()
        lines = text.splitlines() if kind == "metrics" else []
        for number, line in enumerate(lines, start=1):
            # Before 0.9 there was no step.
            words = [*line.split(), str(number - 1)]
            read = len(words) > 2 and _add(run, name, words[2], words[1], words[0])  # noqa: PLR2004
            if not read:
                what = "left out: no reading"
                file = tree.shown(path)
                into.problems.append(Problem(file=file, line=number, what=what))


def _add(run: Run, metric: str, step: Any, value: Any, written: Any) -> bool:
    at, began = moment(written), run.began_at
    time_s = math.nan if at is None or began is None else at - began
    return run.add(metric, step, as_logged(value), time_s)


def read_database(source: str, path: pathlib.Path) -> list[Sweep]:
    """Read every experiment of MLflow's SQLite database; nothing of any other file.

    The file is opened for reading only.

    Args:
        source: What the user named.

        path: The file.

    Raises:
        SourceError: If it is one of MLflow's and cannot be read.
    """
    if not tables_of(path) >= _TABLES:
        return []
    try:
        with contextlib.closing(_opened(path)) as database:
            experiments = dict(_experiments(database))
    except (sqlite3.Error, LookupError, TypeError, ValueError) as error:
        msg = f"{path} cannot be read: {error}."
        raise SourceError(msg) from error
    return [into.sweep(source, name) for name, into in experiments.items() if into.runs]


def tables_of(path: pathlib.Path) -> frozenset[str]:
    """Return the names of a SQLite file's tables; none of any other file."""
    try:
        with path.open("rb") as file:
            if file.read(len(_MAGIC)) != _MAGIC:
                return frozenset()
        with contextlib.closing(_opened(path)) as database:
            found = database.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table'"
            )
            return frozenset(row["name"] for row in found)
    except (OSError, ValueError, sqlite3.Error):
        return frozenset()


def _opened(path: pathlib.Path) -> sqlite3.Connection:
    place = urllib.parse.quote(str(path.absolute()))
    database = sqlite3.connect(f"file:{place}?mode=ro", uri=True)
    try:
        database.execute("SELECT 1 FROM sqlite_master LIMIT 1")
    except sqlite3.OperationalError:
        # A file in write-ahead mode on read-only media opens only as immutable.
        database.close()
        place = f"file:{place}?mode=ro&immutable=1"
        database = sqlite3.connect(place, uri=True)
    database.row_factory = sqlite3.Row
    return database


def _experiments(database: sqlite3.Connection) -> Iterator[tuple[str, Runs]]:
    if not plain_tables(database) >= _TABLES:
        return
    names = {
        row["experiment_id"]: str(row["name"])
        for row in database.execute("SELECT experiment_id, name FROM experiments")
    }
    experiments = {name: Runs("mlflow") for name in names.values()}
    by_run: dict[str, Run] = {}
    for row in database.execute("SELECT * FROM runs WHERE lifecycle_stage = 'active'"):
        into = experiments[names[row["experiment_id"]]]
        by_run[row["run_uuid"]] = into.of(row["run_uuid"])
        _describe(by_run[row["run_uuid"]], dict(row))
    for row in database.execute("SELECT * FROM params"):
        if row["run_uuid"] in by_run:
            by_run[row["run_uuid"]].params[row["key"]] = scalar(row["value"])
    for row in database.execute("SELECT * FROM tags WHERE key = ?", (PARENT,)):
        if row["run_uuid"] in by_run:
            by_run[row["run_uuid"]].parent = row["value"] or ""
    for row in database.execute("SELECT * FROM metrics ORDER BY timestamp"):
        if row["run_uuid"] in by_run:
            value = math.nan if row["is_nan"] else row["value"]
            run, metric = by_run[row["run_uuid"]], str(row["key"])
            _add(run, metric, row["step"], value, row["timestamp"])
    yield from experiments.items()
