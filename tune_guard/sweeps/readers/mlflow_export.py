"""Read exports of MLflow: tables of runs, answers of its server, histories."""

from __future__ import annotations

import datetime as dt
import math
import sys
from collections.abc import Mapping
from typing import Any

from tune_guard.coercion import to_number
from tune_guard.sweeps.readers.export_runs import Run, Runs, Table
from tune_guard.sweeps.readers.wandb_export import scalar
from tune_guard.sweeps.wording import counted

PARENT = "mlflow.parentRunId"
"""The tag that names the run under which a run was made."""

_TABLE = {"run_id", "status"}
_ANSWER = {"info", "data"}
_HISTORY = {"key", "value", "step"}


def take(table: Table, into: Runs) -> bool:
    """Take in a table if it is one of MLflow's.

    Args:
        table: A file as rows.

        into: Where its runs go.

    Returns:
        Whether it is: ``run_id`` and ``status`` of ``mlflow.search_runs``;
        ``info`` and ``data`` of the server's answers; or ``key``, ``value`` and
        ``step`` of a metric's history.
    """
    columns = set(table.columns)
    for needed, read in ((_TABLE, _table), (_ANSWER, _answer), (_HISTORY, _history)):
        if needed <= columns:
            read(table, into)
            return True
    return False


def as_logged(value: Any) -> float | None:
    """Return a metric's value as it was logged.

    MLflow's databases hold the largest number where infinity was logged, and a data
    frame writes NaN as an empty cell: a reading always had a value.

    Example:
        >>> as_logged(""), as_logged("0.5"), as_logged(-1.7976931348623157e308)
        (nan, 0.5, -inf)
    """
    if value is None or value == "":
        return math.nan
    number = to_number(value)
    if number is not None and abs(number) == sys.float_info.max:
        return math.copysign(math.inf, number)
    return number


def _table(table: Table, into: Runs) -> None:
    for _, row in table.rows:
        run = into.of(row.get("run_id"))
        run.state = str(row.get("status") or "")
        run.name = str(row.get("tags.mlflow.runName") or "")
        run.parent = str(row.get(f"tags.{PARENT}") or "")
        run.params |= _part(row, "params.", scalar)
        run.finish(_part(row, "metrics.", as_logged))
        _times(run, row)


def _part(row: Mapping[str, Any], prefix: str, read: Any) -> dict[str, Any]:
    """Return the columns under a prefix whose cells are not empty."""
    return {
        name.removeprefix(prefix): read(value)
        for name, value in row.items()
        if name.startswith(prefix) and value is not None
    }


def _times(run: Run, row: Mapping[str, Any]) -> None:
    run.began_at = moment(row.get("start_time"))
    ended = moment(row.get("end_time"))
    if run.began_at is not None and ended is not None:
        run.time_s = max(0.0, ended - run.began_at)


def moment(value: Any) -> float | None:
    """Return seconds since 1970; MLflow counts milliseconds, pandas writes dates."""
    number = to_number(value)
    if number is not None:
        return number / 1000 if math.isfinite(number) and number > 0 else None
    try:
        return dt.datetime.fromisoformat(str(value)).timestamp()
    except (ValueError, OverflowError, OSError):
        return None


def _answer(table: Table, into: Runs) -> None:
    for line, row in table.rows:
        info, data = row.get("info"), row.get("data")
        if not isinstance(info, Mapping) or not isinstance(data, Mapping):
            into.gap(table, "left out: `info` or `data` is no mapping", line=line)
            continue
        run = into.of(info.get("run_id") or info.get("run_uuid") or table.stem)
        run.state = str(info.get("status") or "")
        run.name = str(info.get("run_name") or "")
        run.parent = str(dict(_pairs(data.get("tags"))).get(PARENT) or "")
        run.params |= {k: scalar(v) for k, v in _pairs(data.get("params"))}
        run.finish({k: as_logged(v) for k, v in _pairs(data.get("metrics"))})
        _times(run, info)


def _pairs(items: Any) -> list[tuple[str, Any]]:
    """Return names and values: of a list of pairs, or of a mapping."""
    if isinstance(items, Mapping):
        return [(str(name), value) for name, value in items.items()]
    rows = items if isinstance(items, list) else []
    return [(str(r.get("key")), r.get("value")) for r in rows if isinstance(r, Mapping)]


def _history(table: Table, into: Runs) -> None:
    """Read readings; where no row names the run, the file's name does."""
    first: dict[str, float] = {}
    lost = 0
    for _, row in table.rows:
        key = str(row.get("run_id") or table.stem)
        written = moment(row.get("timestamp"))
        time_s = math.nan
        if written is not None:
            time_s = written - first.setdefault(key, written)
        metric = str(row.get("key"))
        value = as_logged(row.get("value"))
        lost += not into.of(key).add(metric, row.get("step"), value, time_s)
    if lost:
        into.gap(table, f"{counted(lost, 'row')} left out: no step or no number")
