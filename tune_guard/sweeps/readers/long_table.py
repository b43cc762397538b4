"""Read a long table of curves, one reading a row: parquet or CSV.

Needed columns: ``trial_id``, ``step``, ``metric_name``, ``value``. Used where
they are there: ``sweep_id``, ``wall_time_s``, ``mode``. What is known about the
trials themselves lies in a second table with ``sweep_id``, ``trial_id``,
``config`` (JSON), ``status``, ``objective`` and ``objective_mode``: the file of
the same name in the folder ``trials`` beside that of the curves.
"""

from __future__ import annotations

import csv
import itertools
import json
import math
import pathlib
from array import array
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tune_guard.exceptions import SourceError, did_you_mean
from tune_guard.observation import to_number
from tune_guard.record import Outcome
from tune_guard.sweeps.curves import Curve, Curves, Mode
from tune_guard.sweeps.readers.params import flat_params
from tune_guard.sweeps.readers.progress import Progress, silent
from tune_guard.sweeps.sweep import UNKNOWN, Problem, Sweep, Trial

_NEEDED = ("trial_id", "step", "metric_name", "value")
_USED = (*_NEEDED, "sweep_id", "wall_time_s", "mode")
_COMPLETED = frozenset(
    {"complete", "completed", "success", "done", "measured", "logged"}
)
_FAILED = frozenset({"fail", "failed", "error", "abort", "aborted"})
_CHUNK = 100_000


@dataclass(slots=True)
class _Cells:
    """The readings of one metric of one trial, in the order of the file."""

    steps: array[int] = field(default_factory=lambda: array("q"))
    values: array[float] = field(default_factory=lambda: array("d"))
    times_s: array[float] = field(default_factory=lambda: array("d"))


@dataclass(slots=True)
class _Found:
    """What the rows of one sweep hold."""

    cells: dict[str, dict[str, _Cells]] = field(default_factory=dict)
    modes: dict[str, Mode] = field(default_factory=dict)


def is_long_table(path: pathlib.Path) -> bool:
    """Tell whether a parquet or CSV file has the columns of a long table."""
    return set(_NEEDED) <= set(_columns(path))


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
    columns = _columns(path)
    missing = [name for name in _NEEDED if name not in columns]
    if missing:
        msg = (
            f"{path} is no long table of curves: it has no column"
            f" {', '.join(f'`{name}`' for name in missing)}."
        )
        raise SourceError(msg)
    found: defaultdict[str, _Found] = defaultdict(_Found)
    problems: list[Problem] = []
    rows = _rows(path, [name for name in _USED if name in columns])
    for line, row in enumerate(rows, start=1 if path.suffix == ".parquet" else 2):
        _take(row, found, line, str(path), problems)
        if line % _CHUNK == 0:
            progress(line, 0, "rows read")
    described = _described(path)
    if not found and not described:
        why = f": {problems[0].what}" if problems else ""
        msg = f"{path} holds no reading{why}."
        raise SourceError(msg)
    for name, _ in described:
        # A sweep none of whose trials reported is a sweep too.
        found.setdefault(name, _Found())
    if sweep_id and sweep_id not in found:
        msg = f"{path} has no sweep `{sweep_id}`. {did_you_mean(sweep_id, found)}"
        raise SourceError(msg)
    return [
        _sweep(str(path), name, found[name], described, problems if i == 0 else [])
        for i, name in enumerate([sweep_id] if sweep_id else found)
    ]


def _columns(path: pathlib.Path) -> list[str]:
    if path.suffix == ".parquet":
        names: list[str] = _parquet(path).schema_arrow.names
        return names
    with path.open(newline="", encoding="utf-8-sig", errors="replace") as file:
        return next(csv.reader(file), [])


def _parquet(path: pathlib.Path) -> Any:
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ImportError as error:
        msg = "Reading parquet needs pyarrow: pip install pyarrow"
        raise SourceError(msg) from error
    try:
        return ParquetFile(path)
    except (ArrowException, OSError) as error:
        msg = f"{path} cannot be read as parquet: {error}"
        raise SourceError(msg) from error


def _rows(path: pathlib.Path, columns: list[str]) -> Iterator[dict[str, Any]]:
    if path.suffix == ".parquet":
        for batch in _parquet(path).iter_batches(_CHUNK, columns=columns):
            names = batch.schema.names
            cells = [batch.column(name).to_pylist() for name in names]
            for row in zip(*cells, strict=True):
                yield dict(zip(names, row, strict=True))
        return
    with path.open(newline="", encoding="utf-8-sig", errors="replace") as file:
        yield from csv.DictReader(file)


def _take(
    row: dict[str, Any],
    found: defaultdict[str, _Found],
    line: int,
    file: str,
    problems: list[Problem],
) -> None:
    """Add one reading to its trial; a row that says none is noted."""
    step, value = to_number(row["step"]), to_number(row["value"])
    if step is None or value is None or not math.isfinite(step):
        what = f"row left out: step {row['step']!r}, value {row['value']!r}"
        problems.append(Problem(file=file, line=line, what=what))
        return
    sweep = found[str(row.get("sweep_id") or "")]
    metric = str(row["metric_name"])
    trial = sweep.cells.setdefault(str(row["trial_id"]), {})
    cells = trial.get(metric)
    if cells is None:
        cells = trial[metric] = _Cells()
    cells.steps.append(int(step))
    cells.values.append(value)
    time_s = to_number(row.get("wall_time_s"))
    cells.times_s.append(math.nan if time_s is None else time_s)
    if row.get("mode") in ("min", "max"):
        sweep.modes[metric] = row["mode"]


def _described(path: pathlib.Path) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the second table's rows by sweep and trial; empty when there is none."""
    beside = path.parent.parent / "trials" / path.name
    if not beside.is_file() or beside == path:
        return {}
    rows = _rows(beside, _columns(beside))
    return {
        (str(row.get("sweep_id") or ""), str(row.get("trial_id"))): row for row in rows
    }


def _sweep(
    source: str,
    name: str,
    found: _Found,
    described: Mapping[tuple[str, str], dict[str, Any]],
    problems: list[Problem],
) -> Sweep:
    rows = {trial: row for (sweep, trial), row in described.items() if sweep == name}
    ids = list(dict.fromkeys([*found.cells, *rows]))
    curves = {trial: _curves(found.cells.get(trial, {})) for trial in ids}
    objectives = {str(row.get("objective") or "") for row in rows.values()}
    metric = objectives.pop() if len(objectives) == 1 else ""
    modes = dict(found.modes)
    for row in rows.values():
        if row.get("objective_mode") in ("min", "max"):
            modes[str(row["objective"])] = row["objective_mode"]
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
        metric=metric,
        problems=tuple(problems),
    )


def _curves(cells: Mapping[str, _Cells]) -> dict[str, Curve]:
    return {metric: _curve(found) for metric, found in cells.items()}


def _curve(cells: _Cells) -> Curve:
    """Order the readings; of several at one step the last one holds."""
    steps = cells.steps
    times = cells.times_s if any(map(math.isfinite, cells.times_s)) else None
    if all(a < b for a, b in itertools.pairwise(steps)):
        return Curve(steps, cells.values, times)
    last = {step: row for row, step in enumerate(steps)}
    order = [last[step] for step in sorted(last)]
    return Curve(
        array("q", (steps[row] for row in order)),
        array("d", (cells.values[row] for row in order)),
        None if times is None else array("d", (times[row] for row in order)),
    )


def _trial(
    trial_id: str,
    sweep: str,
    curves: Mapping[str, Curve],
    row: Mapping[str, Any],
    source: str,
) -> Trial:
    status = str(row.get("status") or "")
    word = status.lower()
    outcome, reason = None, UNKNOWN
    if word in _COMPLETED:
        outcome, reason = Outcome.COMPLETED, ""
    elif word in _FAILED:
        outcome, reason = Outcome.ERROR, "error"
    elif word == "pruned":
        outcome = Outcome.PRUNER
    times = [max(c.times_s, default=0.0) for c in curves.values() if c.times_s]
    finite = [time_s for time_s in times if math.isfinite(time_s)]
    return Trial(
        id=trial_id,
        name=trial_id,
        sweep=sweep,
        params=_params(row.get("config")),
        state=status,
        outcome=outcome,
        reason=reason,
        steps_run=max((curve.steps[-1] for curve in curves.values()), default=0),
        time_s=max(finite, default=None),
        source=str(row.get("source_path") or source),
    )


def _params(config: Any) -> dict[str, Any]:
    try:
        params = json.loads(config or "{}")
    except (TypeError, ValueError):
        return {}
    return flat_params(params) if isinstance(params, dict) else {}
