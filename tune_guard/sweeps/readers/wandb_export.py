"""Read exports of Weights & Biases: tables of runs, histories, and panels."""

from __future__ import annotations

import ast
import json
import math
from collections.abc import Mapping
from typing import Any

from tune_guard.coercion import to_number
from tune_guard.sweeps.readers.export_runs import Run, Runs, Table
from tune_guard.sweeps.wording import counted

_API = {"name", "config", "summary"}
_APP = {"Name", "State"}
_HISTORY = "_step"
_SAMPLED = 500
"""Rows that ``run.history()`` gives of a longer run, unless it is told."""

_RUN = ("run", "run_id", "run_name", "name", "id")
_STEPS = ("Step", "_step", "global_step", "epoch", "trainer/global_step")
_NO_METRICS = frozenset({"_step", "_runtime", "_timestamp", "_wandb", *_RUN})
_ENVELOPE = ("__MIN", "__MAX", "__STEP")
_BETWEEN = " - "
_BOOKKEEPING = frozenset(
    {
        *("Name", "State", "ID", "User", "Created", "Runtime", "Sweep", "Tags"),
        *("Notes", "Description", "End Time", "Hostname", "GPU Type", "GPU Count"),
        *("Group", "Job Type", "Commit", "Artifact Input", "Artifact Output"),
    }
)


def take(table: Table, into: Runs) -> bool:
    """Take in a table if it is one of W&B's.

    Args:
        table: A file as rows.

        into: Where its runs go.

    Returns:
        Whether it is: ``name``, ``config`` and ``summary`` of the public API;
        ``_step`` of a run's history; ``Name`` and ``State`` of the table of runs
        in the app; or ``Step`` beside ``<run> - <metric>`` of a panel.
    """
    columns = set(table.columns)
    for needed, read in ((_API, _api), (_APP, _app), ({_HISTORY}, _history)):
        if needed <= columns:
            read(table, into)
            return True
    if table.columns and table.columns[0] in _STEPS and _pairs(table):
        _panel(table, into)
        return True
    return False


def _api(table: Table, into: Runs) -> None:
    for line, row in table.rows:
        config, summary = _mapping(row.get("config")), _mapping(row.get("summary"))
        if config is None or summary is None:
            into.gap(table, "left out: `config` or `summary` is no mapping", line=line)
            continue
        run = into.of(row.get("id") or row.get("name"))
        run.name, run.state = str(row.get("name") or ""), str(row.get("state") or "")
        # The old format of the config wraps each value together with a note.
        run.params = {k: _unwrapped(v) for k, v in config.items() if k != "_wandb"}
        run.time_s = to_number(summary.get("_runtime"))
        ended = to_number(summary.get("_timestamp"))
        if ended is not None and run.time_s is not None:
            run.began_at = ended - run.time_s
        run.finish(summary)


def _mapping(value: Any) -> Mapping[str, Any] | None:
    """Read a mapping that pandas wrote as Python or JSON text."""
    if isinstance(value, Mapping):
        return value
    for read in (json.loads, _python_literal):
        try:
            found = read(str(value or "{}"))
        except (TypeError, ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        return found if isinstance(found, Mapping) else None
    return None


class _Floats(ast.NodeTransformer):
    """Python writes floats that are not finite as names, which are no literals."""

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """Turn such a name into the number."""
        known = node.id in ("nan", "inf")
        return ast.Constant(float(node.id)) if known else node


def _python_literal(text: str) -> Any:
    return ast.literal_eval(_Floats().visit(ast.parse(text.strip(), mode="eval")))


def _unwrapped(value: Any) -> Any:
    wrapped = isinstance(value, Mapping) and set(value) == {"desc", "value"}
    return value["value"] if wrapped else value


def _app(table: Table, into: Runs) -> None:
    """Read the table of runs: hyperparameters and final values side by side."""
    for _, row in table.rows:
        run = into.of(row.get("ID") or row.get("Name"))
        run.name, run.state = str(row.get("Name") or ""), str(row.get("State") or "")
        run.time_s = to_number(row.get("Runtime"))
        told = {k: v for k, v in row.items() if k not in _BOOKKEEPING}
        run.finish(told)
        run.params |= {k: scalar(v) for k, v in told.items()}
    what = (
        "the columns do not say which are hyperparameters: all are taken for them,"
        " and the numbers for final values too"
    )
    into.gap(table, what, line=1)


def _history(table: Table, into: Runs) -> None:
    name = next((column for column in _RUN if column in table.columns), "")
    lost = 0
    for _, row in table.rows:
        run = into.of(row.get(name) if name else table.stem)
        time_s = to_number(row.get("_runtime"))
        for metric, value in row.items():
            if metric not in _NO_METRICS and value is not None:
                _add(run, metric, row.get(_HISTORY), value, time_s)
        run.time_s = max(run.time_s or 0.0, time_s) if time_s else run.time_s
        lost += row.get(_HISTORY) is None
    if lost:
        into.gap(table, f"{counted(lost, 'row')} left out: no step")
    last = to_number(table.rows[-1][1].get(_HISTORY))
    if len(table.rows) == _SAMPLED and last is not None and last >= _SAMPLED:
        into.gap(table, f"a sample of {_SAMPLED} rows: `run.scan_history()` gives all")


def _add(run: Run, metric: str, step: Any, value: Any, time_s: float | None) -> None:
    if isinstance(value, (str, int, float)) and not isinstance(value, bool):
        run.add(metric, step, value, math.nan if time_s is None else time_s)


def _pairs(table: Table) -> list[tuple[str, str, str]]:
    """Return column, run and metric of each line that a panel shows."""
    return [
        (column, *column.rpartition(_BETWEEN)[::2])
        for column in table.columns[1:]
        if _BETWEEN in column and not column.endswith(_ENVELOPE)
    ]


def _panel(table: Table, into: Runs) -> None:
    step = table.columns[0]
    for _, row in table.rows:
        for column, run, metric in _pairs(table):
            into.of(run).add(metric, row.get(step), row.get(column))


def scalar(value: Any) -> Any:
    """Read a value that a table holds as text.

    Example:
        >>> scalar("0.1"), scalar("16"), scalar("true"), scalar("adam")
        (0.1, 16, True, 'adam')
    """
    if not isinstance(value, str):
        return value
    text = value.strip()
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    return value
