"""How a Ray trial ended, by its record, its state, and its last row."""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tune_guard.coercion import to_number, to_step
from tune_guard.nested_keys import lookup
from tune_guard.record import DETAIL, KEYS, REASON, Outcome, StopRecord
from tune_guard.strict_json import from_json
from tune_guard.sweeps.readers.ray_rows import STEP
from tune_guard.sweeps.sweep import INTERRUPTED, UNKNOWN, Trial

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tune_guard.sweeps.readers.ray_rows import RayRows
    from tune_guard.sweeps.readers.ray_state import TrialState


def stored_in(place: Mapping[str, Any]) -> StopRecord | None:
    """Read a record from a row, a state or a file; None unless it says an end."""
    stored = {key: lookup(place, key) for key in KEYS}
    if not isinstance(stored.get(REASON), str):
        return None
    detail = stored[DETAIL]
    detail = from_json(detail) if isinstance(detail, str) else detail
    ended = bool(stored[REASON]) or (
        isinstance(detail, Mapping) and "outcome" in detail
    )
    return StopRecord.from_metadata(stored) if ended else None


def is_stale(
    record: StopRecord, place: Mapping[str, Any], rows: RayRows, *, failed: bool
) -> bool:
    """Whether the trial went on after the guard had cut it: a later row has no cut.

    That is so after a restore by a driver that has no callback of the guard. While
    a sweep runs, rows reach the storage long after the record: those are no sign. No
    row has the cut of a trial that failed: the machine ended it between two rows.

    Args:
        record: The record.

        place: What it was read from.

        rows: The trial's rows.

        failed: Whether the trial failed.
    """
    cut = record.outcome is Outcome.GUARD and not failed
    if not cut or lookup(rows.last, REASON) != "":
        return False
    at = to_step(place.get(STEP))
    return rows.steps_run > (record.step if at is None else at) or _later(rows, record)


def steps_of(record: StopRecord, place: Mapping[str, Any], rows: RayRows) -> int:
    """Return how many iterations a trial ran: by its rows, or by a newer record."""
    at = to_step(place.get(STEP)) or 0
    newer = at > rows.steps_run and not (rows.last and _later(rows, record))
    return at if newer else rows.steps_run


def _later(rows: RayRows, record: StopRecord) -> bool:
    """Whether the last row was written after the record, or nobody knows."""
    written = to_number(rows.last.get("timestamp"))
    try:
        recorded = dt.datetime.fromisoformat(record.time).timestamp()
    except (ValueError, OverflowError):
        return True
    return written is None or written > recorded


def end_of(
    known: TrialState | None,
    rows: RayRows,
    record: StopRecord | None,
    error: str | None,
) -> dict[str, Any]:
    """Return who ended a trial, why, at which step, and whose fault it is.

    Args:
        known: What the experiment's state says, if it names the trial.

        rows: Its rows.

        record: The record that holds, if there is one.

        error: ``error:<kind>`` when it failed for good.
    """
    if record is not None:
        reason = record.reason or (
            "" if record.outcome is Outcome.COMPLETED else str(record.outcome)
        )
        step = record.step if record.step >= 0 else None
        return {
            "outcome": record.outcome,
            "reason": reason,
            "step": step,
            "blame": record.blame,
        }
    if error is not None:
        return {"outcome": Outcome.ERROR, "reason": error}
    if known is None:
        return {"reason": UNKNOWN}
    if known.status != "TERMINATED":
        return {"outcome": Outcome.INTERRUPTED, "reason": INTERRUPTED}
    met = any(_reached(rows.last, key, at) for key, at in known.criterion.items())
    return {"outcome": Outcome.CRITERION if met else Outcome.COMPLETED}


def _reached(row: Mapping[str, Any], key: str, at: Any) -> bool:
    value = lookup(row, key)
    try:
        return bool(value >= at)
    except TypeError:
        return False


def settled(trials: Sequence[Trial], cut_ids: set[str]) -> tuple[Trial, ...]:
    """Mark the trials that something unrecorded cut.

    Ray calls a trial that its scheduler or stopper cut ``TERMINATED`` too. Its
    last row then says done, and it ran fewer steps than another one.
    """
    longest = max((trial.steps_run for trial in trials), default=0)
    return tuple(
        dataclasses.replace(trial, outcome=None, reason=UNKNOWN)
        if trial.id in cut_ids and trial.steps_run < longest
        else trial
        for trial in trials
    )
