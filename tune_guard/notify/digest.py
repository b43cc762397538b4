"""Many alerts, one message: as many as fit, each trial by its id."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tune_guard.notify.alert import Alert, Kind
from tune_guard.notify.paragraphs import paragraph
from tune_guard.notify.service import Service
from tune_guard.notify.texts import LANGUAGES, WORDS, Language, harmless

MOST_MERGED = 2000
"""Alerts in one message at most."""

A_FEW = 50

BREATH_S = 0.0002

IDS_PER_ALERT = 20
"""An alert on more trials is split, so that a small message holds it too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Digest:
    """One message.

    Args:
        count: How many of the waiting alerts it holds, the first ones.

        full: Whether more of them would not have fitted.
    """

    title: str
    body: str
    count: int
    full: bool


def split(alert: Alert) -> list[Alert]:
    """Return an alert on many trials as several on few, the facts in each."""
    size = IDS_PER_ALERT
    if len(alert.trials) <= size:
        return [alert]
    whole = alert.stored()
    return [
        Alert.restored({**whole, "trials": alert.trials[at : at + size]})
        for at in range(0, len(alert.trials), size)
    ]


def compose(
    alerts: Sequence[Alert], service: Service, language: Language = "en"
) -> Digest:
    """Put the first of the alerts into one message, as many as it holds.

    Args:
        alerts: What is waiting, the oldest first; at least one.

        service: Says how large a message may be, and which word it must hold.

        language: ``en`` or ``zh``.
    """
    waiting = alerts[:MOST_MERGED]

    def texts(count: int) -> tuple[str, str]:
        return _texts(waiting[:count], service.keyword, language)

    count = _most_that_fit(
        len(waiting), service.most_bytes, lambda n: service.size(*texts(n))
    )
    title, body = texts(count)
    while service.size(title, body) > service.most_bytes and len(body) > 1:
        body = body[: len(body) * 3 // 4] + "…"
    return Digest(title=title, body=body, count=count, full=count < len(alerts))


def readable(alert: Alert) -> Alert:
    """Return the alert, without its facts where no words can be made of them.

    It may come from a file that another version wrote, or a hand.
    """
    try:
        for language in LANGUAGES:
            paragraph([alert], language)
    except Exception:  # noqa: BLE001 - what came from a file may hold anything
        return replace(alert, facts={}, step=None)
    return alert


def _most_that_fit(count: int, most_bytes: int, size: Callable[[int], int]) -> int:
    """Return how many fit, 1 at least, in a few tries around a first guess.

    Between two tries other threads may run: it is a training's interpreter.
    """
    if size(count) <= most_bytes or count == 1:
        return count
    few = min(count, A_FEW)
    each = max(1, (size(few) - size(1)) // max(1, few - 1))
    guess = (most_bytes - size(1)) // each
    low, high = 1, min(count - 1, guess + guess // 4 + 1)
    middle = max(1, min(high, guess - guess // 8))
    while low < high:
        time.sleep(BREATH_S)
        if size(middle) <= most_bytes:
            low = middle
        else:
            high = max(low, middle - 1)
        middle = (low + high + 1) // 2
    return low


def _texts(
    alerts: Sequence[Alert], keyword: str, language: Language
) -> tuple[str, str]:
    groups: dict[tuple[str, Kind, str], list[Alert]] = {}
    for alert in alerts:
        groups.setdefault((alert.sweep, alert.kind, alert.reason), []).append(alert)
    sweeps = [harmless(name) for name in dict.fromkeys(a.sweep for a in alerts) if name]
    title = "tune_guard · " + sweeps[0] if sweeps else "tune_guard"
    if len(sweeps) > 1:
        title += f" + {len(sweeps) - 1}"
    if len(alerts) > 1:
        words = WORDS[language]["part"]
        title = words.format(title=title, count=len(alerts))
    paragraphs = []
    for (sweep, _, _), group in groups.items():
        lines = paragraph(group, language)
        if len(sweeps) > 1:
            lines[0] = f"{harmless(sweep)}: {lines[0]}"
        paragraphs.append("\n".join(lines))
    body = "\n\n".join([*paragraphs, _times(alerts)])
    if keyword and keyword not in title + body:
        title = f"{keyword} · {title}"
    return title, body


def _times(alerts: Sequence[Alert]) -> str:
    times = sorted(harmless(alert.time) for alert in alerts)
    return times[0] if times[0] == times[-1] else f"{times[0]} – {times[-1]}"
