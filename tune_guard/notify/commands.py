"""``tune-guard alerts``: what waits to be delivered, and whether it can be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tune_guard.notify.alert import Alert, Kind
from tune_guard.notify.config import Settings, read_settings
from tune_guard.notify.digest import compose
from tune_guard.notify.outbox_files import left_behind
from tune_guard.notify.sender import WITHIN_S
from tune_guard.notify.texts import harmless


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """What became of one test message.

    Args:
        service: Name of the service; holds no secret.

        arrived: Whether the service itself said that it took the message.

        said: Why not, and what to do.
    """

    service: str
    arrived: bool
    said: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """Alerts of one kind that wait in one file for one service.

    Args:
        service: Mark of the service; holds no secret.

        alive: Whether the process that made them is running and will send them.
            Else the next process that sends to the service does.

        why: Why they were not taken yet, where that is known.
    """

    file: Path
    alive: bool
    service: str
    kind: str
    sweep: str
    reason: str
    count: int
    trials: tuple[str, ...]
    why: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "file": str(self.file),
            "alive": self.alive,
            "service": self.service,
            "kind": self.kind,
            "sweep": self.sweep,
            "reason": self.reason,
            "count": self.count,
            "trials": list(self.trials),
            "why": self.why,
        }


def send_test(environment: Mapping[str, str] | None = None) -> list[Tried]:
    """Send a test message to each service that the environment names.

    Args:
        environment: Variables; those of the process when None.

    Raises:
        ConfigError: If a setting cannot be meant.
    """
    settings = read_settings(environment)
    alert = Alert(kind=Kind.TEST)
    tried = []
    for service in settings.services:
        digest = compose([alert], service, settings.language)
        delivery = service.send(digest.title, digest.body, WITHIN_S)
        if delivery.status == "retry" and delivery.wait_s == 0.0:
            # The service's clock was taken over: say so, and try with it.
            again = service.send(digest.title, digest.body, WITHIN_S)
            said = delivery.message if again.status == "sent" else again.message
            arrived = again.status == "sent"
        else:
            said, arrived = delivery.message, delivery.status == "sent"
        tried.append(Tried(service=service.name, arrived=arrived, said=said))
    return tried


def waiting(settings: Settings) -> list[Waiting]:
    """Return what waits on disk. Changes nothing."""
    found = []
    for file, alive, entries in left_behind(settings.folder):
        groups: dict[tuple[str, str, str, str], list[Any]] = {}
        for entry in entries:
            alert = entry.alert
            for mark in entry.marks:
                key = (mark, str(alert.kind), alert.sweep, alert.reason)
                groups.setdefault(key, []).append(entry)
        for (mark, kind, sweep, reason), group in groups.items():
            trials = [trial for entry in group for trial in entry.alert.trials]
            found.append(
                Waiting(
                    file=file,
                    alive=alive,
                    service=mark,
                    kind=kind,
                    sweep=sweep,
                    reason=reason,
                    count=len(group),
                    trials=tuple(trials),
                    why=group[-1].why.get(mark, ""),
                )
            )
    return found


def as_lines(found: list[Waiting], settings: Settings) -> list[str]:
    """Put what waits into lines for a person."""
    names = {service.mark: service.name for service in settings.services}
    lines = []
    totals = Counter(item.service for item in found for _ in range(item.count))
    for mark, total in totals.items():
        lines.append(f"{names.get(mark, mark)}: {total} waiting")
        for item in found:
            if item.service == mark:
                lines += _lines_of(item)
    if any(not item.alive for item in found):
        lines.append(
            "What dead processes left is sent by the next one that announces to the"
            " same service."
        )
    return lines


def _lines_of(item: Waiting) -> list[str]:
    what = " ".join(filter(None, [item.kind, harmless(item.reason)]))
    sweep = harmless(item.sweep) or "-"
    state = "its process is running" if item.alive else "its process has ended"
    lines = [f"  {sweep}: {item.count} x {what} ({state})"]
    if item.trials:
        lines.append(f"    trials: {', '.join(map(harmless, item.trials))}")
    if item.why:
        lines.append(f"    last answer: {harmless(item.why)}")
    return lines
