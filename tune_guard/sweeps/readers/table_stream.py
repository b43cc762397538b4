"""The sweeps of a long table one after another: memory for one, not for all."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING, Any

import numpy as np

from tune_guard.exceptions import SourceError
from tune_guard.sweeps.readers.long_table import (
    check_columns,
    described_trials,
    read_long_table,
    sweep_of,
)
from tune_guard.sweeps.readers.readings import (
    RowsOfTexts,
    SweepReadings,
    of_arrow,
    open_csv,
    open_parquet,
    readable,
    used_columns,
)

if TYPE_CHECKING:
    import pathlib
    from collections.abc import Iterator

    from tune_guard.sweeps.readers.readings import Readings
    from tune_guard.sweeps.sweep import Sweep

_BATCH = 65_536
_SWEEP = "sweep_id"


def stream_long_table(path: pathlib.Path) -> tuple[int, Iterator[Sweep]]:
    """Return the number of sweeps of a long table, and the sweeps one by one.

    The table is read twice: once for where each sweep ends, and once for the
    readings. A sweep comes as soon as its last row was read, so that a table whose
    sweeps lie one behind another never holds two.

    Args:
        path: A ``.parquet`` or ``.csv`` file.

    Raises:
        SourceError: If it is no long table.
    """
    if _SWEEP not in check_columns(path):
        sweeps = read_long_table(path)
        return len(sweeps), iter(sweeps)
    from_parquet = path.suffix == ".parquet"
    with readable(path):
        ends = _parquet_ends(path) if from_parquet else _csv_ends(path)
    described = described_trials(path)
    silent = [name for name in described if name not in ends]
    if not ends and not silent:
        msg = f"{path} holds no reading."
        raise SourceError(msg)

    def sweeps_in_turn() -> Iterator[Sweep]:
        pieces = _parquet_pieces if from_parquet else _csv_pieces
        for name, readings in _unbroken(path, pieces(path, ends)):
            read = readings.sweeps().get(name, SweepReadings())
            yield sweep_of(str(path), name, read, described.get(name, {}))
        for name in silent:
            yield sweep_of(str(path), name, SweepReadings(), described[name])

    return len(ends) + len(silent), sweeps_in_turn()


def _unbroken(
    path: pathlib.Path, pieces: Iterator[tuple[str, Readings]]
) -> Iterator[tuple[str, Readings]]:
    """Yield the pieces; damage is the reader's error, not that of who takes them."""
    while True:
        with readable(path):
            piece = next(pieces, None)
        if piece is None:
            return
        yield piece


def _parquet_ends(path: pathlib.Path) -> dict[str, int]:
    """Return the last row of each sweep."""
    ends: dict[str, int] = {}
    first = 0
    for batch in open_parquet(path).iter_batches(_BATCH, columns=[_SWEEP]):
        names, codes = _coded(batch.column(0))
        for code in np.unique(codes):
            ends[names[code]] = first + int(np.flatnonzero(codes == code)[-1])
        first += len(batch)
    return ends


def _parquet_pieces(
    path: pathlib.Path, ends: dict[str, int]
) -> Iterator[tuple[str, Readings]]:
    import pyarrow as pa

    file, first = open_parquet(path), 0
    begun: dict[str, list[Any]] = {}
    for batch in file.iter_batches(_BATCH, columns=used_columns(file)):
        names, codes = _coded(batch.column(_SWEEP))
        for code in np.unique(codes):
            piece = batch.filter(pa.array(codes == code))
            begun.setdefault(names[code], []).append(piece)
        first += len(batch)
        for name in [name for name in begun if ends[name] < first]:
            yield name, of_arrow(pa.Table.from_batches(begun.pop(name)))


def _coded(column: Any) -> tuple[list[str], Any]:
    """Return the different texts of a column, and which of them each row has."""
    import pyarrow as pa

    if not pa.types.is_dictionary(column.type):
        column = column.cast(pa.string()).dictionary_encode()
    names = [*map(str, column.dictionary.to_pylist()), ""]
    codes = column.indices.fill_null(len(names) - 1)
    return names, codes.to_numpy(zero_copy_only=False)


def _csv_ends(path: pathlib.Path) -> dict[str, int]:
    with open_csv(path) as file:
        rows = enumerate(csv.DictReader(file))
        return {row[_SWEEP] or "": number for number, row in rows}


def _csv_pieces(
    path: pathlib.Path, ends: dict[str, int]
) -> Iterator[tuple[str, Readings]]:
    begun: dict[str, RowsOfTexts] = {}
    with open_csv(path) as file:
        for number, row in enumerate(csv.DictReader(file)):
            name = row[_SWEEP] or ""
            begun.setdefault(name, RowsOfTexts()).add(row)
            if ends[name] == number:
                yield name, begun.pop(name).readings()
