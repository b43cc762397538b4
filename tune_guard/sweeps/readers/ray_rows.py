"""The rows of one Ray trial: result.json, or progress.csv where that is missing."""

from __future__ import annotations

import ast
import csv
import io
import json
import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from tune_guard.coercion import to_number, to_step
from tune_guard.sweeps.readers.rows import RowTable
from tune_guard.sweeps.sweep import Problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from tune_guard.sweeps.curves import Curve

STEP = "training_iteration"
_MOST_SALVAGED = 2**26

_BOOKKEEPING = frozenset(
    {
        "checkpoint_dir_name",
        "config",
        "date",
        "done",
        "experiment_id",
        "experiment_tag",
        "hostname",
        "iterations_since_restore",
        "node_ip",
        "pid",
        "should_checkpoint",
        "time_since_restore",
        "time_total_s",
        "timestamp",
        "timesteps_since_restore",
        "training_iteration",
        "trial_id",
        "tune_guard",
        "tune_guard/blame",
        "tune_guard/detail",
        "tune_guard/reason",
        "tune_guard/status",
        "tune_guard/step",
        "warmup_time",
    }
)


@dataclass(slots=True)
class RayRows:
    """What the row file of one trial says.

    Args:
        last: The last row, whole; empty when the trial never reported.

        steps_run: Step of the last row that holds.

        time_s: Seconds spent, lost attempts included, or None.

        began_at: When it began, in seconds since 1970, or None.
    """

    curves: dict[str, Curve] = field(default_factory=dict)
    last: dict[str, Any] = field(default_factory=dict)
    steps_run: int = 0
    time_s: float | None = None
    began_at: float | None = None
    problems: list[Problem] = field(default_factory=list)


class _Spent:
    """Adds up the run time of all attempts, those that were lost included."""

    def __init__(self) -> None:
        self.total_s = 0.0
        self._since_s = math.nan
        self._total_s: float | None = None
        self._iterations = 0.0

    def add(self, row: dict[str, Any]) -> float | None:
        """Take in a row and return the trial's run time at it."""
        since, total = row.get("time_since_restore"), to_number(row.get("time_total_s"))
        iterations = to_number(row.get("iterations_since_restore"))
        if iterations is not None:
            if self._iterations and iterations <= self._iterations:
                self._close()
            self._iterations = iterations
        number = to_number(since)
        self._since_s = math.nan if number is None else number
        self._total_s = total
        return total

    def _close(self) -> None:
        if math.isfinite(self._since_s):
            self.total_s += self._since_s

    @property
    def time_s(self) -> float | None:
        """Seconds over all attempts; None when the rows do not say."""
        if math.isfinite(self._since_s):
            return self.total_s + self._since_s
        return self._total_s


def read_rows(rows: Iterable[tuple[int, dict[str, Any]]], file: str) -> RayRows:
    """Turn numbered rows into curves.

    Args:
        rows: Line number and content of each row, in the order of the file.

        file: Name of the file, for what is said about it.
    """
    table, spent = RowTable(_BOOKKEEPING), _Spent()
    first: dict[str, Any] = {}
    last: dict[str, Any] = {}
    step = 0
    for line, row in rows:
        found = to_step(row.get(STEP))
        step = step + 1 if found is None else found
        table.add(step, spent.add(row), row, line)
        first, last = first or row, row
    return RayRows(
        curves=table.curves(),
        last=last,
        steps_run=step,
        time_s=spent.time_s,
        began_at=_began_at(first),
        problems=table.problems(file),
    )


def brought_up(rows: RayRows, state: Mapping[str, Any]) -> RayRows:
    """Return the rows with the last result of the experiment's state, if it is newer.

    While a sweep runs, either file may be behind. The curves stay as they are: of
    the results in between nothing is known.
    """
    step, written = to_step(state.get(STEP)), to_number(state.get("timestamp"))
    known = to_number(rows.last.get("timestamp"))
    if step is None or written is None or known is None:
        return rows
    if (written, step) <= (known, rows.steps_run):
        return rows
    spent, before = (to_number(r.get("time_total_s")) for r in (state, rows.last))
    more = max(0.0, (spent or 0.0) - (before or 0.0))
    time_s = None if rows.time_s is None else rows.time_s + more
    return replace(rows, last=dict(state), steps_run=step, time_s=time_s)


def _began_at(first: Mapping[str, Any]) -> float | None:
    """Return when a trial began: the time of its first row, less what it took."""
    written, took = (to_number(first.get(k)) for k in ("timestamp", "time_total_s"))
    return None if written is None else written - (took or 0.0)


def json_rows(
    lines: Iterable[bytes], file: str, problems: list[Problem]
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Parse result.json line by line; what cannot be read is noted.

    A killed process leaves a torn last line, and a restarted one appends its
    first row to that same line, so the end of a broken line is tried too.
    """
    broken: list[Problem] = []
    number = 0
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            row = _salvaged(line)
            what = (
                "torn line left out" if row is None else "torn start of line left out"
            )
            broken.append(Problem(file=file, line=number, what=what))
        if isinstance(row, dict):
            yield number, row
        elif row is not None:
            what = "left out: valid JSON, but no row"
            broken.append(Problem(file=file, line=number, what=what))
    problems += [_last_line(problem, number) for problem in broken]


def _last_line(problem: Problem, last: int) -> Problem:
    if problem.line != last or problem.what != "torn line left out":
        return problem
    what = "torn last line left out"
    return Problem(file=problem.file, line=problem.line, what=what)


def _salvaged(line: bytes) -> dict[str, Any] | None:
    """Find a whole row at the end of a broken line.

    A line of nothing but beginnings would be read over and over: what is read
    of it in all is bounded.
    """
    text = line.decode(errors="replace").strip("\x00 \r\n")
    start, left = text.find('{"', 1), _MOST_SALVAGED
    while start > 0 and left > 0:
        left -= len(text) - start
        try:
            row = json.loads(text[start:])
        except (ValueError, RecursionError):
            row = None
        # A nested object may stand at the end of a torn row: it is no row.
        if isinstance(row, dict) and STEP in row:
            return row
        start = text.find('{"', start + 1)
    return None


def csv_rows(
    text: str, file: str, problems: list[Problem]
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Parse progress.csv; a file without its header line is reported, not guessed."""
    reader = csv.reader(io.StringIO(text.replace("\x00", ""), newline=""))
    try:
        header = next(reader, None)
    except csv.Error as error:
        problems.append(Problem(file=file, line=1, what=f"left out: {error}"))
        return
    if header is None:
        return
    if STEP not in header and any(to_number(cell) is not None for cell in header):
        what = "no header line: the columns are unknown, so nothing is read"
        problems.append(Problem(file=file, line=1, what=what))
        return
    what = "columns are those of the first row: later metrics are not in this file"
    problems.append(Problem(file=file, what=what))
    try:
        for cells in reader:
            if len(cells) == len(header) and cells != header:
                pairs = zip(header, cells, strict=True)
                yield reader.line_num, {k: _cell(k, c) for k, c in pairs if c != ""}
            elif cells and cells != header:
                what = f"left out: {len(cells)} cells under {len(header)} columns"
                problems.append(Problem(file=file, line=reader.line_num, what=what))
    except csv.Error as error:
        what = f"left out from here: {error}"
        problems.append(Problem(file=file, line=reader.line_num, what=what))


def _cell(key: str, cell: str) -> Any:
    """Read one cell; early versions wrote nested results as Python literals."""
    if not cell.startswith("{") or key.startswith("tune_guard"):
        return {"True": True, "False": False}.get(cell, cell)
    try:
        return ast.literal_eval(cell)
    except (TypeError, ValueError, SyntaxError, RecursionError, MemoryError):
        return cell
