"""What is exported as metrics: counts and the newest health of each GPU."""

from __future__ import annotations

import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeGuard

from tune_guard.events import (
    Event,
    GuardError,
    HealthSample,
    SweepEnded,
    SweepStarted,
    TrialEnded,
    TrialStarted,
)

MOST_REASONS = 100
"""Reasons that have a series of their own; further ones count as ``other``."""

MOST_GPUS = 1024

LONGEST_LABEL = 120

FORGET_GPU_S = 600.0
"""A GPU that was not heard of for so long is not exported: its trials have ended."""

FAILURES = frozenset(
    {
        "diagnosis",
        "gradients",
        "listener",
        "outbox",
        "prune",
        "ranks",
        "report",
        "rule",
        "state",
        "storage",
        "withdraw",
    }
)
"""Topics of notices that say that the guard itself could not do its work. Others
are advice, on a missing metric for instance."""

FAULT_RULES = ("gpu_fault", "slow_step", "stalled", "thermal_throttle")
"""Reasons with blame ``infrastructure``: counted from zero, so that a server sees
the first fault as an increase."""

OTHER = "other"

End = tuple[str, str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuHealth:
    """The newest telemetry of one GPU.

    Args:
        values: By the name of the signal; finite numbers only.

        at: When it came, seconds since 1970.
    """

    uuid: str
    host: str
    values: Mapping[str, float]
    at: float


@dataclass(slots=True)
class Snapshot:
    """Everything that one scrape shows, at one moment.

    Args:
        ended: Trials by outcome, reason and blame.

        lost: Attempts that the machine broke and that were tried again, by reason.

        spent_s: Compute by outcome, reason and blame.

        saved_s: Compute that cuts spared, by reason.

        errors: Failures of the guard itself, by kind.
    """

    sweeps_started: int = 0
    sweeps_running: int = 0
    trials_started: int = 0
    ended: Counter[End] = field(default_factory=Counter)
    lost: Counter[str] = field(default_factory=Counter)
    spent_s: dict[End, float] = field(default_factory=dict)
    saved_s: dict[str, float] = field(default_factory=dict)
    errors: Counter[str] = field(default_factory=Counter)
    gpus: list[GpuHealth] = field(default_factory=list)


class Tally:
    """Counts events. One per process; read from any thread.

    Args:
        clock: Seconds since 1970.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._now = Snapshot()
        self._running: set[str] = set()
        self._reasons: set[str] = set()
        self._gpus: dict[str, GpuHealth] = {}
        for rule in FAULT_RULES:
            self._now.ended["guard", rule, "infrastructure"] = 0
            self._now.lost[rule] = 0

    def handle(self, event: Event) -> None:
        """Count one event."""
        with self._lock:
            if isinstance(event, HealthSample):
                self._sample(event)
            elif isinstance(event, TrialEnded):
                self._end(event)
            elif isinstance(event, TrialStarted):
                self._now.trials_started += 1
            elif isinstance(event, GuardError):
                self._error(event)
            elif isinstance(event, SweepStarted):
                self._now.sweeps_started += 1
                self._running.add(event.sweep)
            elif isinstance(event, SweepEnded):
                self._running.discard(event.sweep)

    def snapshot(self) -> Snapshot:
        """Return a copy of everything."""
        with self._lock:
            now, old = self._now, self._clock() - FORGET_GPU_S
            return Snapshot(
                sweeps_started=now.sweeps_started,
                sweeps_running=len(self._running),
                trials_started=now.trials_started,
                ended=now.ended.copy(),
                lost=now.lost.copy(),
                spent_s=dict(now.spent_s),
                saved_s=dict(now.saved_s),
                errors=now.errors.copy(),
                gpus=[gpu for gpu in self._gpus.values() if gpu.at > old],
            )

    def _end(self, event: TrialEnded) -> None:
        record, now = event.record, self._now
        reason = self._reason(record.reason)
        end = (str(record.outcome), reason, str(record.blame or ""))
        if event.final:
            now.ended[end] += 1
            if _is_amount(event.saved_s):
                now.saved_s[reason] = now.saved_s.get(reason, 0.0) + event.saved_s
        else:
            now.lost[reason] += 1
        if _is_amount(event.time_s):
            now.spent_s[end] = now.spent_s.get(end, 0.0) + event.time_s

    def _reason(self, reason: str) -> str:
        """Bound the number of series: reasons may come from foreign rules."""
        label = reason[:LONGEST_LABEL]
        if label in self._reasons or len(self._reasons) < MOST_REASONS:
            self._reasons.add(label)
            return label
        return OTHER

    def _error(self, event: GuardError) -> None:
        kind = event.topic.partition(":")[0]
        if kind in FAILURES:
            self._now.errors[kind] += 1

    def _sample(self, event: HealthSample) -> None:
        uuid = event.gpu_uuid[:LONGEST_LABEL]
        known = uuid in self._gpus or len(self._gpus) < MOST_GPUS
        if not uuid or not known:
            return
        values = {n: float(v) for n, v in event.gpu.items() if math.isfinite(v)}
        self._gpus[uuid] = GpuHealth(
            uuid=uuid,
            host=event.host[:LONGEST_LABEL],
            values=values,
            at=self._clock(),
        )


def _is_amount(seconds: float | None) -> TypeGuard[float]:
    return seconds is not None and math.isfinite(seconds) and seconds >= 0.0
