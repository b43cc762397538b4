"""Read a long table of curves, one reading a row: parquet or CSV.

Needed columns: ``trial_id``, ``step``, ``metric_name``, ``value``. Used where
they are there: ``sweep_id``, ``wall_time_s``, ``mode``. What is known about the
trials themselves lies in a second table with ``sweep_id``, ``trial_id``,
``config`` (JSON), ``status``, ``objective`` and ``objective_mode``: the file of
the same name in the folder ``trials`` beside that of the curves.
"""

from __future__ import annotations

import csv
import json
import math
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np

from tune_guard.exceptions import SourceError, did_you_mean
from tune_guard.record import Outcome
from tune_guard.sweeps.curves import MODES, Curve, Curves
from tune_guard.sweeps.readers.params import flat_params
from tune_guard.sweeps.readers.progress import Progress, silent
from tune_guard.sweeps.readers.readings import (
    NEEDED,
    Readings,
    SweepReadings,
    columns_of,
    open_csv,
    open_parquet,
    read_readings,
    readable,
)
from tune_guard.sweeps.sweep import UNKNOWN, Problem, Sweep, Trial

if TYPE_CHECKING:
    import pathlib
    from collections.abc import Iterable, Mapping

_COMPLETED = frozenset(
    {"complete", "completed", "success", "done", "measured", "logged"}
)
_FAILED = frozenset({"fail", "failed", "error", "abort", "aborted"})

_Rows = dict[str, dict[str, dict[str, Any]]]


def read_long_table(
    path: pathlib.Path, sweep_id: str = "", progress: Progress = silent
) -> list[Sweep]:
    """Read every sweep of a long table, or the one that is named.

    Args:
        path: A ``.parquet`` or ``.csv`` file.

        sweep_id: The sweep to read; empty for all.

        progress: Called as rows are read.

    Raises:
        SourceError: If a needed column is missing, there is no such sweep, or no
            reading at all.
    """
    check_columns(path)
    readings = read_readings(path, progress)
    found, described = readings.sweeps(), described_trials(path)
    # A sweep none of whose trials reported is a sweep too.
    names = list(dict.fromkeys([*found, *described]))
    if not names:
        msg = f"{path} holds no reading."
        raise SourceError(msg)
    if sweep_id and sweep_id not in names:
        msg = f"{path} has no sweep `{sweep_id}`. {did_you_mean(sweep_id, names)}"
        raise SourceError(msg)
    problems = _left_out(readings, path)
    sweeps = []
    for name in [sweep_id] if sweep_id else names:
        rows = described.get(name, {})
        read = found.get(name, SweepReadings())
        sweeps.append(sweep_of(str(path), name, read, rows, problems))
        problems = ()
    return sweeps


def check_columns(path: pathlib.Path) -> list[str]:
    """Return the columns of a long table.

    Raises:
        SourceError: If a needed one is missing.
    """
    columns = columns_of(path)
    missing = [f"`{name}`" for name in NEEDED if name not in columns]
    if missing:
        msg = (
            f"{path} is no long table of curves: it has no column {', '.join(missing)}."
            " Nor is it an export of W&B or MLflow."
        )
        raise SourceError(msg)
    return columns


def _left_out(readings: Readings, path: pathlib.Path) -> tuple[Problem, ...]:
    rows = np.flatnonzero(readings.left_out)
    if not len(rows):
        return ()
    head = 1 if path.suffix == ".parquet" else 2
    what = f"{len(rows)} rows left out: no step or no value"
    line = int(rows[0]) + head
    return (Problem(file=str(path), line=line, lines=len(rows), what=what),)


def described_trials(path: pathlib.Path) -> _Rows:
    """Return the second table's rows by sweep and trial; empty when there is none."""
    beside = path.parent.parent / "trials" / path.name
    found: _Rows = defaultdict(dict)
    if beside.is_file() and beside != path:
        for row in _rows(beside):
            found[str(row.get("sweep_id") or "")][str(row.get("trial_id"))] = row
    return dict(found)


def _rows(path: pathlib.Path) -> list[dict[str, Any]]:
    with readable(path):
        if path.suffix == ".parquet":
            rows: list[dict[str, Any]] = open_parquet(path).read().to_pylist()
            return rows
        with open_csv(path) as file:
            return list(csv.DictReader(file))


def sweep_of(
    source: str,
    name: str,
    readings: SweepReadings,
    rows: Mapping[str, Mapping[str, Any]],
    problems: tuple[Problem, ...] = (),
) -> Sweep:
    """Make a sweep of its readings and of its rows in the second table."""
    ids = dict.fromkeys([*readings.curves, *rows])
    curves: dict[str, Mapping[str, Curve]] = {
        t: readings.curves.get(t, {}) for t in ids
    }
    objectives = {str(row.get("objective") or "") for row in rows.values()}
    modes = dict(readings.modes)
    for row in rows.values():
        mode = str(row.get("objective_mode"))
        if mode in MODES:
            modes[str(row.get("objective"))] = MODES[mode]
    return Sweep(
        source=source,
        engine="table",
        name=name,
        trials=tuple(
            _trial(trial, name, curves[trial], rows.get(trial, {}), source)
            for trial in ids
        ),
        curves=Curves(curves),
        modes=modes,
        metric=objectives.pop() if len(objectives) == 1 else "",
        problems=problems,
    )


def _trial(
    trial_id: str,
    sweep: str,
    curves: Mapping[str, Curve],
    row: Mapping[str, Any],
    source: str,
) -> Trial:
    status = str(row.get("status") or "")
    outcome, reason = _end(status.lower())
    return Trial(
        id=trial_id,
        name=trial_id,
        sweep=sweep,
        params=_params(row.get("config")),
        state=status,
        outcome=outcome,
        reason=reason,
        steps_run=max((curve.steps[-1] for curve in curves.values()), default=0),
        time_s=_longest(curve.times_s for curve in curves.values()),
        source=str(row.get("source_path") or source),
    )


def _end(status: str) -> tuple[Outcome | None, str]:
    if status in _COMPLETED:
        return Outcome.COMPLETED, ""
    if status in _FAILED:
        return Outcome.ERROR, "error"
    return (Outcome.PRUNER if status == "pruned" else None), UNKNOWN


def _longest(times: Iterable[Iterable[float] | None]) -> float | None:
    """Return the latest time that any curve knows."""
    known = (time for curve in times if curve is not None for time in curve)
    return max((time for time in known if math.isfinite(time)), default=None)


def _params(config: Any) -> dict[str, Any]:
    try:
        params = json.loads(config or "{}")
    except (TypeError, ValueError, RecursionError):
        return {}
    return flat_params(params) if isinstance(params, dict) else {}
