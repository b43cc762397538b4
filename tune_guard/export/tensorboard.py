"""The listener for TensorBoard: reasons as text and columns, health as curves.

``TUNE_GUARD_TENSORBOARD`` is a folder. Each trial becomes a run in it,
``<sweep>/<trial>``, for every engine alike: Ray's own logger leaves out text and
numbers that are not finite, and Optuna has none.
"""

from __future__ import annotations

import hashlib
import math
import os
import re
import time
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tune_guard.events import Event, HealthSample, TrialEnded
from tune_guard.exceptions import ConfigError
from tune_guard.record import BLAME, REASON, STEP, StopRecord
from tune_guard.strict_json import plain

if TYPE_CHECKING:
    from tensorboardX.event_file_writer import EventsWriter

OUTCOME = "tune_guard/outcome"

MOST_OPEN = 64
"""Runs that are open at once; the one that was written to longest ago is closed,
and opened again when its trial goes on."""

LONGEST_NAME = 100
LONGEST_VALUE = 500

FLUSH_S = 10.0

_UNSAFE = re.compile(r"[^A-Za-z0-9._=,+-]+")


class TensorBoard:
    """Writes event files for TensorBoard.

    Args:
        folder: Where the runs lie. Made when it is first needed.

    Raises:
        ConfigError: If tensorboardX is not installed.
    """

    def __init__(self, folder: Path) -> None:
        try:
            import tensorboardX  # noqa: F401 - whether it is there is said now
        except ImportError as error:
            msg = (
                "TensorBoard needs tensorboardX. Install it with:"
                " pip install 'tune-guard[tensorboard]'"
            )
            raise ConfigError(msg) from error
        self._folder = folder
        self._open: OrderedDict[Path, _Run] = OrderedDict()

    def handle(self, event: Event) -> None:
        """Write one event."""
        if isinstance(event, HealthSample):
            self._sample(event)
        elif isinstance(event, TrialEnded) and event.final:
            self._end(event)

    def close(self, within_s: float) -> None:
        """Close every run."""
        del within_s
        while self._open:
            self._open.popitem()[1].close()

    def _sample(self, event: HealthSample) -> None:
        run = self._run(event.sweep, event.trial)
        for rule, margin in event.margins.items():
            run.scalar(f"tune_guard/margin/{rule}", margin, event.step)
        for signal, value in event.gpu.items():
            name = signal.removeprefix("gpu_")
            run.scalar(f"tune_guard/gpu/{name}", value, event.step)
        run.flush_now_and_then()

    def _end(self, event: TrialEnded) -> None:
        from tensorboardX.summary import hparams, text

        record = event.record
        run, step = self._run(event.sweep, event.trial), max(record.step, 0)
        columns = {name: _column(value) for name, value in event.params.items()}
        columns |= {
            REASON: record.reason or str(record.outcome),
            OUTCOME: str(record.outcome),
            BLAME: str(record.blame or ""),
        }
        metrics = _metrics(record, event.time_s)
        try:
            run.write(text(REASON, _as_text(record)), step)
            for summary in hparams(columns, metrics):
                run.write(summary, step)
            for name, value in metrics.items():
                run.scalar(name, value, step)
        finally:
            self._open.pop(run.folder).close()

    def _run(self, sweep: str, trial: str) -> _Run:
        folder = self._folder / file_name(sweep) / file_name(trial)
        if folder not in self._open:
            while len(self._open) >= MOST_OPEN:
                self._open.popitem(last=False)[1].close()
            self._open[folder] = _Run(folder)
        self._open.move_to_end(folder)
        return self._open[folder]


class _Run:
    """One event file, written in the listener's own thread.

    The library's usual writer has a thread and a queue of its own for each run,
    and keeps each one until the process exits.
    """

    def __init__(self, folder: Path) -> None:
        from tensorboardX.event_file_writer import EventsWriter

        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        # The file's name has the second in it, and a run may be opened twice in one.
        suffix = f".{os.getpid()}.{time.monotonic_ns()}"
        self._writer: EventsWriter = EventsWriter(str(folder / "events"), suffix)
        self._flushed_at = time.monotonic()

    def write(self, summary: Any, step: int) -> None:
        """Write a summary of the library's own making."""
        from tensorboardX.proto.event_pb2 import Event as Record

        record = Record(summary=summary, step=step, wall_time=time.time())
        self._writer.write_event(record)

    def scalar(self, name: str, value: float, step: int) -> None:
        """Write a number, if it is one."""
        from tensorboardX.summary import scalar

        if math.isfinite(value):
            self.write(scalar(name, value), step)

    def flush_now_and_then(self) -> None:
        """Let a reader see what was written."""
        if time.monotonic() - self._flushed_at >= FLUSH_S:
            self._writer.flush()
            self._flushed_at = time.monotonic()

    def close(self) -> None:
        """Write everything and close the file."""
        self._writer.close()


def from_environment() -> TensorBoard:
    """Return the listener that the environment asks for.

    Raises:
        ConfigError: If tensorboardX is not installed.
    """
    return TensorBoard(Path(os.environ["TUNE_GUARD_TENSORBOARD"]).expanduser())


def file_name(name: str) -> str:
    """Return a name that is one part of a path, and no other name's.

    Example:
        >>> file_name("train_1"), file_name("../x").startswith("_x-")
        ('train_1', True)
    """
    safe = _UNSAFE.sub("_", name).strip(".")[:LONGEST_NAME]
    if safe == name and safe:
        return safe
    digest = hashlib.sha256(name.encode(errors="replace")).hexdigest()[:8]
    return f"{safe.replace('..', '')}-{digest}"


def _as_text(record: StopRecord) -> str:
    """Put a record into a block of code, in which Markdown means nothing."""
    facts: Mapping[str, Any] = {
        "reason": record.reason or str(record.outcome),
        "outcome": str(record.outcome),
        "blame": record.blame,
        "step": record.step if record.step >= 0 else None,
        record.metric or "value": record.value,
        "threshold": record.threshold,
        "best_value": record.best_value,
        "host": record.host,
        "gpu": record.gpu_uuid,
        "warnings": ", ".join(record.warnings),
    }
    lines = [f"{k}: {plain(v)}" for k, v in facts.items() if v not in (None, "")]
    lines += [record.message] if record.message else []
    return "\n".join(f"    {' '.join(line.split())}" for line in lines)


def _column(value: Any) -> bool | float | str:
    """Return a hyperparameter as HParams shows it: a flag, a number or a text."""
    value = plain(value)
    if isinstance(value, (bool, int, float)):
        return value
    return str(value)[:LONGEST_VALUE]


def _metrics(record: StopRecord, time_s: float | None) -> dict[str, float]:
    found = {
        STEP: float(record.step) if record.step >= 0 else None,
        "tune_guard/best_value": record.best_value,
        "tune_guard/time_s": time_s,
    }
    return {k: v for k, v in found.items() if v is not None and math.isfinite(v)}
