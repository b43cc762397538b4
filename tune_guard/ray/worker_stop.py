"""A stop that was decided on the worker, between two rows: taken over as it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tune_guard.monitor import Monitor
from tune_guard.ray.rows import Stamp, record_in
from tune_guard.record import STATUS, Outcome, StopRecord


def told_by_worker(result: Mapping[str, Any]) -> StopRecord | None:
    """Return the record that a TrialGuard put into a row; None for any other row.

    What this process stamped itself is no news.
    """
    if isinstance(result.get(STATUS), Stamp):
        return None
    record = record_in(result)
    return record if record and record.outcome is Outcome.GUARD else None


def completed(record: StopRecord, trial_id: str, monitor: Monitor) -> StopRecord:
    """Return the record with what only the driver knows of the trial."""
    known = monitor.record()
    return replace(
        record,
        trial=trial_id,
        attempt=monitor.attempt,
        best_value=known.best_value,
        best_step=known.best_step,
        warnings=tuple(dict.fromkeys((*known.warnings, *record.warnings))),
        spared=known.spared or record.spared,
    )
