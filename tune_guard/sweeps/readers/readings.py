"""The readings of a long table, column by column: millions of them in seconds."""

from __future__ import annotations

import contextlib
import csv
import math
from array import array
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np

from tune_guard.exceptions import SourceError
from tune_guard.sweeps.curves import MODES, Curve
from tune_guard.sweeps.readers.numbers import number_of

if TYPE_CHECKING:
    import pathlib
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from tune_guard.sweeps.curves import Mode
    from tune_guard.sweeps.readers.progress import Progress

NEEDED = ("trial_id", "step", "metric_name", "value")
_WORDS = ("sweep_id", "trial_id", "metric_name", "mode")
_NUMBERS = ("step", "value", "wall_time_s")
_CHUNK = 100_000
_MOST_ROWS = 2**28
_MOST_STEPS = 2.0**63


@dataclass(slots=True)
class SweepReadings:
    """The curves of one sweep of the table, and the directions it names."""

    curves: dict[str, dict[str, Curve]] = field(default_factory=dict)
    modes: dict[str, Mode] = field(default_factory=dict)


@dataclass(slots=True)
class Readings:
    """A table of readings.

    Args:
        names: The different texts of each column of words.

        codes: For each row, which of them it has.

        numbers: The columns of numbers; NaN where ``missing`` says so too.

        missing: For each column of numbers, the rows that hold none.
    """

    names: dict[str, list[str]]
    codes: dict[str, NDArray[np.int32]]
    numbers: dict[str, NDArray[np.float64]]
    missing: dict[str, NDArray[np.bool_]]

    @property
    def left_out(self) -> NDArray[np.bool_]:
        """Rows without a step or without a value. A value of NaN is a value."""
        no_step = ~(np.abs(self.numbers["step"]) < _MOST_STEPS)
        return no_step | self.missing["value"]

    def sweeps(self) -> dict[str, SweepReadings]:
        """Group the readings by sweep, trial and metric, in the table's order."""
        found: dict[str, SweepReadings] = {}
        for rows in self._groups():
            sweep, trial, metric, mode = (
                self.names[word][self.codes[word][rows[0]]] for word in _WORDS
            )
            into = found.setdefault(sweep, SweepReadings())
            into.curves.setdefault(trial, {})[metric] = self._curve(rows)
            if mode in MODES:
                into.modes[metric] = MODES[mode]
        return found

    def _groups(self) -> Iterator[NDArray[np.int64]]:
        """Yield the rows of each curve, by step; of equal steps the last row holds."""
        rows = np.flatnonzero(~self.left_out)
        if not len(rows):
            return
        words = [
            self.codes[word][rows] for word in ("metric_name", "trial_id", "sweep_id")
        ]
        steps = self.numbers["step"][rows]
        keys: list[Any] = [rows, steps, *words]
        order = np.lexsort(keys)
        rows, steps = rows[order], steps[order]
        same = np.ones(len(rows) - 1, dtype=bool)
        for word in words:
            same &= np.diff(word[order]) == 0
        repeated = same & (np.diff(steps) == 0)
        kept = np.append(~repeated, True)
        first = np.append(True, ~same)
        curve = np.cumsum(first)[kept]
        ends = np.flatnonzero(np.diff(curve)) + 1
        yield from np.split(rows[kept], ends)

    def _curve(self, rows: NDArray[np.int64]) -> Curve:
        times = self.numbers["wall_time_s"][rows]
        steps = self.numbers["step"][rows].astype(np.int64)
        return Curve(
            array("q", steps.tobytes()),
            array("d", self.numbers["value"][rows].tobytes()),
            array("d", times.tobytes()) if np.isfinite(times).any() else None,
        )


def columns_of(path: pathlib.Path) -> list[str]:
    """Return the columns of a parquet or CSV file.

    Raises:
        SourceError: If it cannot be read.
    """
    if path.suffix == ".parquet":
        names: list[str] = open_parquet(path).schema_arrow.names
        return names
    with readable(path), open_csv(path) as file:
        return next(csv.reader(file), [])


@contextlib.contextmanager
def readable(path: pathlib.Path, kind: str = "a table of curves") -> Iterator[None]:
    """Name the file where it turns out damaged while it is read.

    Raises:
        SourceError: In the place of whatever csv or pyarrow raise then.
    """
    try:
        yield
    except SourceError:
        raise
    except Exception as error:
        why = str(error).partition("\n")[0] or type(error).__name__
        msg = f"{path} cannot be read as {kind}: {why}"
        raise SourceError(msg) from error


def open_parquet(path: pathlib.Path) -> Any:
    """Open a parquet file.

    A small file can claim any number of rows, and each takes about 50 bytes.

    Raises:
        SourceError: If it is none or too large, or pyarrow is not installed.
    """
    try:
        from pyarrow.parquet import ParquetFile
    except ImportError as error:
        msg = "Reading parquet needs pyarrow: pip install pyarrow"
        raise SourceError(msg) from error
    with readable(path, "parquet"):
        file = ParquetFile(path)
    if file.metadata.num_rows > _MOST_ROWS:
        msg = f"{path} has {file.metadata.num_rows} rows. Split it: {_MOST_ROWS} fit."
        raise SourceError(msg)
    return file


def read_readings(path: pathlib.Path, progress: Progress) -> Readings:
    """Read the columns that are used.

    Raises:
        SourceError: If a column of numbers holds none, or the file is damaged.
    """
    with readable(path):
        if path.suffix == ".parquet":
            file = open_parquet(path)
            return of_arrow(file.read(columns=used_columns(file)))
        return _from_csv(path, progress)


def used_columns(file: Any) -> list[str]:
    """Return the columns of a parquet file that are used."""
    return [name for name in (*_WORDS, *_NUMBERS) if name in file.schema_arrow.names]


def of_arrow(table: Any) -> Readings:
    """Return the readings of an Arrow table."""
    table, found = table.unify_dictionaries(), Readings({}, {}, {}, {})
    for word in _WORDS:
        _take_words(found, word, table)
    for number in _NUMBERS:
        _take_numbers(found, number, table)
    return found


def _take_words(found: Readings, word: str, table: Any) -> None:
    if word not in table.column_names:
        found.names[word] = [""]
        found.codes[word] = np.zeros(len(table), dtype=np.int32)
        return
    import pyarrow as pa

    column = table.column(word)
    if not pa.types.is_dictionary(column.type):
        column = column.cast(pa.string()).dictionary_encode()
    column = column.combine_chunks()
    found.names[word] = [*map(str, column.dictionary.to_pylist()), ""]
    codes = column.indices.fill_null(len(found.names[word]) - 1)
    found.codes[word] = codes.to_numpy(zero_copy_only=False).astype(np.int32)


def _take_numbers(found: Readings, number: str, table: Any) -> None:
    if number not in table.column_names:
        found.numbers[number] = np.full(len(table), np.nan)
        found.missing[number] = np.ones(len(table), dtype=bool)
        return
    column = table.column(number).cast("float64", safe=False).combine_chunks()
    found.missing[number] = column.is_null().to_numpy(zero_copy_only=False)
    found.numbers[number] = column.fill_null(math.nan).to_numpy(zero_copy_only=False)


def _from_csv(path: pathlib.Path, progress: Progress) -> Readings:
    rows = RowsOfTexts()
    with open_csv(path) as file:
        for line, row in enumerate(csv.DictReader(file), start=1):
            rows.add(row)
            if line % _CHUNK == 0:
                progress(line, 0, "rows read")
    return rows.readings()


def open_csv(path: pathlib.Path) -> TextIO:
    """Open a CSV file, whatever bytes it holds."""
    return path.open(newline="", encoding="utf-8-sig", errors="replace")


class RowsOfTexts:
    """Collects the rows of a CSV file, in a few bytes each."""

    def __init__(self) -> None:
        self._names: dict[str, dict[str, int]] = {word: {} for word in _WORDS}
        self._codes = {word: array("i") for word in _WORDS}
        self._numbers = {number: array("d") for number in _NUMBERS}
        self._missing = {number: array("B") for number in _NUMBERS}

    def add(self, row: Mapping[str, str | None]) -> None:
        """Take one more row."""
        for word in _WORDS:
            known = self._names[word]
            code = known.setdefault(row.get(word) or "", len(known))
            self._codes[word].append(code)
        for number in _NUMBERS:
            name = row.get("metric_name") if number == "value" else None
            value = number_of(name or "", row.get(number))
            self._numbers[number].append(math.nan if value is None else value)
            self._missing[number].append(value is None)

    def readings(self) -> Readings:
        """Return the rows as columns."""
        return Readings(
            names={word: list(known) for word, known in self._names.items()},
            codes={
                w: np.array(codes, dtype=np.int32) for w, codes in self._codes.items()
            },
            numbers={name: np.array(column) for name, column in self._numbers.items()},
            missing={
                n: np.array(gaps, dtype=bool) for n, gaps in self._missing.items()
            },
        )
