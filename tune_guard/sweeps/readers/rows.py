"""Collect the rows of one trial and turn them into curves."""

from __future__ import annotations

import math
import re
from array import array
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tune_guard.coercion import to_number
from tune_guard.sweeps.curves import Curve
from tune_guard.sweeps.readers.numbers import number_of
from tune_guard.sweeps.sweep import Problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

_LARGEST = 2**1023
_DEEPEST = 20
_TENSOR = re.compile(r"tensor\(\[?([^],)]+)\]?[^)]*\)")


@dataclass(slots=True)
class _Column:
    """The cells of one metric: in which rows they are, and their values."""

    rows: array[int] = field(default_factory=lambda: array("l"))
    values: array[float] = field(default_factory=lambda: array("d"))


@dataclass(slots=True)
class _Repair:
    """How often, and where first, a cell of one metric had to be repaired."""

    line: int
    count: int = 0


def by_step(
    rows: Iterable[tuple[int, int, dict[str, Any]]],
) -> Iterator[tuple[int, int, dict[str, Any]]]:
    """Join neighbouring rows of one step: a training log and its evaluation.

    Args:
        rows: Line, step and values of each row.

    Example:
        >>> list(by_step([(1, 10, {"loss": 0.5}), (2, 10, {"eval_loss": 0.6})]))
        [(1, 10, {'loss': 0.5, 'eval_loss': 0.6})]
    """
    current: tuple[int, int, dict[str, Any]] | None = None
    for line, step, values in rows:
        if current is not None and current[1] == step:
            current[2].update(values)
            continue
        if current is not None:
            yield current
        current = (line, step, dict(values))
    if current is not None:
        yield current


class RowTable:
    """The rows of one trial as they were written, retries and all.

    Args:
        skipped: Top-level keys that are bookkeeping and no metric.

    Example:
        >>> table = RowTable()
        >>> for line, step in enumerate([1, 2, 3, 2], start=1):
        ...     table.add(step, None, {"loss": line / 10}, line)
        >>> list(table.curves()["loss"].values), table.rerun_lines
        ([0.1, 0.4], [2, 3])
    """

    def __init__(self, skipped: frozenset[str] = frozenset()) -> None:
        self.steps = array("q")
        self.times_s = array("d")
        self.lines = array("q")
        self._skipped = skipped
        self._columns: dict[str, _Column] = {}
        self._nulls: dict[str, _Repair] = {}
        self._tensors: dict[str, _Repair] = {}
        self._texts: set[str] = set()

    def add(
        self, step: int, time_s: float | None, values: Mapping[str, Any], line: int
    ) -> None:
        """Add one row; values that are no numbers are left out.

        Args:
            step: Step of the row.

            time_s: Seconds of run time at the row, or None.

            values: What was reported, nested or flat.

            line: Line in the file, for what is said about it later.
        """
        row = len(self.steps)
        self.steps.append(step)
        self.times_s.append(math.nan if time_s is None else time_s)
        self.lines.append(line)
        self._put("", values, row, self._skipped, _DEEPEST)

    def _put(
        self,
        prefix: str,
        values: Mapping[str, Any],
        row: int,
        skipped: frozenset[str],
        deepest: int,
    ) -> None:
        columns = self._columns
        for key, value in values.items():
            kind = type(value)
            if kind is bool or value is None or key in skipped:
                continue
            name = f"{prefix}{key}"
            if kind is dict:
                if deepest:
                    self._put(f"{name}/", value, row, frozenset(), deepest - 1)
                continue
            if kind is not float:
                value = self._number(name, value, row)  # noqa: PLW2901
                if value is None:
                    continue
            column = columns.get(name)
            if column is None:
                column = columns[name] = _Column()
            column.rows.append(row)
            column.values.append(value)

    def _number(self, name: str, value: Any, row: int) -> float | None:
        """Read what is no float: integers, and the quirks of JSON encoders."""
        if type(value) is int and -_LARGEST < value < _LARGEST:
            return float(value)
        if not isinstance(value, str):
            return number_of(name, value)
        number = number_of(name, value)
        if number is not None:
            return number
        text = value.strip()
        if text in ("null", "None"):
            self._note(self._nulls, name, row)
            return math.nan
        tensor = _TENSOR.fullmatch(text)
        if tensor:
            self._note(self._tensors, name, row)
            return to_number(tensor[1])
        self._texts.add(name)
        return None

    def _note(self, repairs: dict[str, _Repair], name: str, row: int) -> None:
        repair = repairs.setdefault(name, _Repair(self.lines[row]))
        repair.count += 1

    @property
    def rerun_lines(self) -> list[int]:
        """Lines that a later attempt ran again."""
        kept = set(self._kept())
        return [line for row, line in enumerate(self.lines) if row not in kept]

    def _kept(self) -> list[int]:
        """Return the rows that hold: a step that comes again undoes what followed it.

        After a retry the trial goes on from its last checkpoint, or from the
        start, and the rows of the lost attempt stay in the file.
        """
        kept: list[int] = []
        steps = self.steps
        for row, step in enumerate(steps):
            while kept and steps[kept[-1]] >= step:
                kept.pop()
            kept.append(row)
        return kept

    def curves(self) -> dict[str, Curve]:
        """Return one curve a metric, without the rows that were run again."""
        kept = self._kept()
        whole = len(kept) == len(self.steps)
        holds = None if whole else frozenset(kept)
        steps = array("q", (self.steps[row] for row in kept))
        times = array("d", (self.times_s[row] for row in kept))
        known = any(time == time for time in times)  # noqa: PLR0124 - NaN is unlike itself
        curves: dict[str, Curve] = {}
        for name, column in self._columns.items():
            if self._textual(name, column):
                continue
            curve = self._curve(column, holds)
            if len(curve) == len(steps):
                # Metrics reported in every row share one array of steps: at ten
                # metrics a trial this is a third of the memory.
                curve = Curve(steps, curve.values, times if known else None)
            curves[name] = curve
        return curves

    def _curve(self, column: _Column, holds: frozenset[int] | None) -> Curve:
        cells: Sequence[tuple[int, float]] = list(
            zip(column.rows, column.values, strict=True)
        )
        if holds is not None:
            cells = [cell for cell in cells if cell[0] in holds]
        times = array("d", (self.times_s[row] for row, _ in cells))
        return Curve(
            array("q", (self.steps[row] for row, _ in cells)),
            array("d", (value for _, value in cells)),
            times if any(map(math.isfinite, times)) else None,
        )

    def _textual(self, name: str, column: _Column) -> bool:
        """Whether a column is text in which "null" is a word and no lost NaN."""
        nulls = self._nulls.get(name)
        return (
            nulls is not None
            and name in self._texts
            and nulls.count == len(column.values)
        )

    def problems(self, file: str) -> list[Problem]:
        """Return what was repaired, in the order of the lines."""
        found = [
            (
                one.line,
                one.count,
                f'{one.count} x `{name}` is the text "null": read as NaN',
            )
            for name, one in self._nulls.items()
            if not self._textual(name, self._columns[name])
        ]
        found += [
            (
                one.line,
                one.count,
                f"{one.count} x `{name}` is the text of a tensor: number read",
            )
            for name, one in self._tensors.items()
        ]
        rerun = self.rerun_lines
        if rerun:
            what = "rows were run again after a retry: the later ones hold"
            found.append((rerun[0], len(rerun), f"{len(rerun)} {what}"))
        found.sort(key=lambda repair: repair[0])
        return [
            Problem(file=file, line=line, lines=count, repaired=True, what=what)
            for line, count, what in found
        ]
