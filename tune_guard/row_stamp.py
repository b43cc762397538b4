"""The guard's five values in a row of results: what the worker and Ray's driver write.

Every row has all five from the first on, because a CSV keeps the first row's columns.
They lie flat in it: to flatten a row costs Ray's loggers more than five plain keys.
"""

from __future__ import annotations

from typing import Any

from tune_guard.record import BLAME, DETAIL, REASON, STATUS, STEP, Status, StopRecord
from tune_guard.strict_json import to_json

RUNNING = {DETAIL: "", STATUS: str(Status.RUNNING), BLAME: "", STEP: None, REASON: ""}
"""No number: Ray keeps statistics of each, and writes it to TensorBoard row by row."""

WARNED = {**RUNNING, STATUS: str(Status.WARNED)}


def to_row(record: StopRecord) -> dict[str, Any]:
    """Return the five values of a record as loggers take them: the detail as JSON."""
    values = record.metadata()
    return {**values, DETAIL: to_json(values[DETAIL])}
