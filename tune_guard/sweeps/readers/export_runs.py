"""What exports of experiment trackers say of runs, collected over several files."""

from __future__ import annotations

import csv
import io
import json
import math
from array import array
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tune_guard.coercion import to_step
from tune_guard.record import Outcome
from tune_guard.sweeps.curves import Curve, Curves
from tune_guard.sweeps.readers.numbers import number_of
from tune_guard.sweeps.readers.params import flat_params
from tune_guard.sweeps.sweep import INTERRUPTED, UNKNOWN, Problem, Sweep, Trial
from tune_guard.sweeps.wording import counted

ENDS: dict[str, tuple[Outcome | None, str]] = {
    "finished": (Outcome.COMPLETED, ""),
    "failed": (Outcome.ERROR, "error"),
    "crashed": (Outcome.ERROR, "error:crashed"),
    "killed": (None, UNKNOWN),
    "preempted": (Outcome.INTERRUPTED, "preempted"),
    "preempting": (Outcome.INTERRUPTED, "preempted"),
    "running": (Outcome.INTERRUPTED, INTERRUPTED),
    "scheduled": (Outcome.INTERRUPTED, "never started"),
    "pending": (Outcome.INTERRUPTED, "never started"),
}
"""Who ended a run, and why, by the state that W&B or MLflow gives it."""


@dataclass(slots=True)
class Run:
    """What is known about one run."""

    name: str = ""
    state: str = ""
    params: dict[str, Any] = field(default_factory=dict)
    finals: dict[str, float] = field(default_factory=dict)
    began_at: float | None = None
    time_s: float | None = None
    parent: str = ""
    readings: defaultdict[str, dict[int, tuple[float, float]]] = field(
        default_factory=lambda: defaultdict(dict)
    )

    def add(self, metric: str, step: Any, value: Any, time_s: float = math.nan) -> bool:
        """Add one reading; what has no number or no step is left out."""
        number, at = number_of(metric, value), to_step(step)
        if number is None or at is None:
            return False
        self.readings[metric][at] = (number, time_s)
        return True

    def finish(self, metrics: Mapping[str, Any]) -> None:
        """Take in final values; what is no number is left out."""
        for name, value in metrics.items():
            number = number_of(name, value)
            if number is not None and not name.startswith("_"):
                self.finals[name] = number

    def is_empty(self) -> bool:
        """Whether it has no metric at all."""
        return not self.readings and not self.finals

    def curves(self) -> dict[str, Curve]:
        """Return one curve a metric, by step."""
        return {metric: _curve(found) for metric, found in self.readings.items()}


def _curve(readings: Mapping[int, tuple[float, float]]) -> Curve:
    steps = sorted(readings)
    times = array("d", (readings[step][1] for step in steps))
    return Curve(
        array("q", steps),
        array("d", (readings[step][0] for step in steps)),
        times if any(map(math.isfinite, times)) else None,
    )


@dataclass(slots=True)
class Table:
    """The rows of one exported file.

    Args:
        file: Its name, for what is said about it.

        stem: Its name without folder and ending: the run, where no row names one.

        columns: Names of the columns.

        rows: Line (or position in a list) and content of each row.

        torn: Lines that could not be read.
    """

    file: str
    stem: str
    columns: Sequence[str]
    rows: list[tuple[int, dict[str, Any]]]
    torn: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Runs:
    """Runs by their id, from all files of one export."""

    engine: str
    runs: dict[str, Run] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def of(self, run: Any) -> Run:
        """Return a run, a new one where it is not known yet."""
        return self.runs.setdefault(str(run), Run())

    def gap(self, table: Table, what: str, *, line: int | None = None) -> None:
        """Note what could not be read, or was guessed."""
        self.problems.append(Problem(file=table.file, line=line, what=what))

    def sweep(self, source: str, name: str) -> Sweep:
        """Return all runs as one sweep, but for empty ones that only hold others."""
        parents = {run.parent for run in self.runs.values()}
        empty = [k for k in parents if k in self.runs and self.runs[k].is_empty()]
        if empty:
            runs = counted(len(empty), "run")
            what = f"left out: {runs} without metrics, only around others"
            self.problems.append(Problem(file=source, what=what))
        for key in empty:
            del self.runs[key]
        curves = {key: run.curves() for key, run in self.runs.items()}
        return Sweep(
            source=source,
            engine=self.engine,
            name=name,
            trials=tuple(
                _trial(key, run, curves[key], name, source)
                for key, run in self.runs.items()
            ),
            curves=Curves(curves),
            problems=self.problems,
        )


def _trial(
    key: str, run: Run, curves: Mapping[str, Curve], sweep: str, source: str
) -> Trial:
    outcome, reason = ENDS.get(run.state.lower(), (None, UNKNOWN))
    # Where there are curves they say what was best; a last value need not.
    finals = {k: v for k, v in run.finals.items() if k not in curves}
    ended = None
    if run.began_at is not None and run.time_s is not None:
        ended = run.began_at + run.time_s
    return Trial(
        id=key,
        name=run.name or key,
        sweep=sweep,
        params=flat_params(run.params),
        state=run.state,
        outcome=outcome,
        reason=reason,
        steps_run=max((curve.steps[-1] for curve in curves.values()), default=0),
        time_s=run.time_s,
        finals=finals,
        source=source,
        began_at=run.began_at,
        ended_at=ended,
    )


def csv_table(text: str, file: str, stem: str) -> Table:
    """Read a CSV export up to what is none; empty cells are left out."""
    reader = csv.DictReader(io.StringIO(text.replace("\x00", ""), newline=""))
    table = Table(file, stem, [], [])
    try:
        table.columns = list(reader.fieldnames or ())
        for row in reader:
            cells = {k: v for k, v in row.items() if k is not None and v}
            table.rows.append((reader.line_num, cells))
    except csv.Error:
        table.torn.append(reader.line_num)
    return table


def json_table(text: str, file: str, stem: str) -> Table | None:
    """Read a JSON export: a list of rows, one a line, or columns; else None."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return _json_lines(text, file, stem)
    if isinstance(found, Mapping):
        found = _rows_of(found)
    if not isinstance(found, list):
        return None
    rows = [(i, row) for i, row in enumerate(found, start=1) if isinstance(row, dict)]
    return _table(file, stem, rows)


def _rows_of(found: Mapping[str, Any]) -> list[Any]:
    """Return the rows of an answer of a server, or of a data frame by columns."""
    for key in ("runs", "metrics"):
        if isinstance(found.get(key), list):
            return list(found[key])
    if isinstance(found.get("run"), Mapping):
        return [found["run"]]
    if found and all(isinstance(column, Mapping) for column in found.values()):
        keys = dict.fromkeys(key for column in found.values() for key in column)
        return [{name: c.get(key) for name, c in found.items()} for key in keys]
    return [found]


def _json_lines(text: str, file: str, stem: str) -> Table | None:
    rows, torn = [], []
    for number, line in enumerate(text.splitlines(), start=1):
        try:
            row = json.loads(line or "null")
        except (ValueError, RecursionError):
            torn.append(number)
            continue
        if isinstance(row, dict):
            rows.append((number, row))
    if not rows:
        return None
    table = _table(file, stem, rows)
    table.torn = torn
    return table


def _table(file: str, stem: str, rows: list[tuple[int, dict[str, Any]]]) -> Table:
    columns = dict.fromkeys(key for _, row in rows for key in row)
    return Table(file, stem, list(columns), rows)
