"""Where a worker's reports go: to an engine, or nowhere."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from typing import Any, Protocol

from tune_guard.evidence.bundle import Place
from tune_guard.evidence.settings import Evidence
from tune_guard.record import StopRecord
from tune_guard.worker.faults import HardwareFault


class Session(Protocol):
    """The engine around a training loop, as far as a guard needs it."""

    trial_id: str
    """Names the trial in records."""

    first_step: int
    """Number of the first report."""

    def send(self, row: Mapping[str, Any], step: int, **extra: Any) -> None:
        """Pass a report on."""

    def end(self, record: StopRecord, row: Mapping[str, Any], step: int | None) -> None:
        """End the trial for the record's reason.

        Does not return where the engine can end it from within the loop.

        Args:
            record: Why.

            row: The last report; it holds the metric.

            step: Its step; None for a stop between two reports.
        """

    def place(self, evidence: Evidence, name: str) -> Place | None:
        """Return where a bundle of this name goes; None where there is no place.

        May raise whatever the engine does.
        """


class PlainSession:
    """A loop of its own, without an engine: it ends itself by the verdict."""

    trial_id = ""
    first_step = 0

    def send(self, row: Mapping[str, Any], step: int, **extra: Any) -> None:
        """Pass nothing on."""

    def end(self, record: StopRecord, row: Mapping[str, Any], step: int | None) -> None:
        """End nothing."""

    def place(self, evidence: Evidence, name: str) -> Place | None:  # noqa: ARG002
        """Return None: without an engine, evidence names its folder itself."""
        return None


def sentence(record: StopRecord) -> str:
    """Say why a trial is ended, and where it ran if the machine is to blame."""
    return f"{record.reason} at step {record.step}: {record.message}"


def fault(record: StopRecord) -> HardwareFault:
    """Return the error that makes an engine try the trial again elsewhere."""
    where = [record.host or socket.gethostname(), record.gpu_uuid]
    text = f"{sentence(record)} [{' '.join(filter(None, where))}]"
    return HardwareFault(text, record)
