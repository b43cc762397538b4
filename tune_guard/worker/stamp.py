"""The guard's five values in a report that leaves the worker."""

from __future__ import annotations

from typing import Any

from tune_guard.record import KEYS, StopRecord
from tune_guard.strict_json import to_json

TOP = "tune_guard"
"""The nested key: flattened, its values are the keys of every record."""

_SHORT = {key: key.partition("/")[2] for key in KEYS}


def running(*, warned: bool) -> dict[str, Any]:
    """Return the values of a trial that runs on: the same columns from the first."""
    status = "warned" if warned else "running"
    return {"detail": "", "status": status, "blame": "", "step": -1, "reason": ""}


def of(record: StopRecord) -> dict[str, Any]:
    """Return the values of a record, its detail as strict JSON."""
    row = {_SHORT[key]: value for key, value in record.metadata().items()}
    row["detail"] = to_json(row["detail"])
    return row
