"""The listener that tells people: events in, messages out."""

from __future__ import annotations

import time

from tune_guard.events import Event
from tune_guard.exceptions import ConfigError
from tune_guard.notices import Notices
from tune_guard.notify.config import Settings, read_settings
from tune_guard.notify.digest import split
from tune_guard.notify.judge import Judge
from tune_guard.notify.outbox import Outbox
from tune_guard.notify.sender import Clock, Sender


class Alerts:
    """Turns events into messages and delivers them, each service in its thread.

    Args:
        settings: Where to, on what, in which language.

        clock: For tests.

    Raises:
        ConfigError: If no service is named.
    """

    def __init__(self, settings: Settings, clock: Clock | None = None) -> None:
        if not settings.services:
            msg = "TUNE_GUARD_ALERTS names no service."
            raise ConfigError(msg)
        notices = Notices()
        marks = [service.mark for service in settings.services]
        self._outbox = Outbox(settings.folder, marks, notices)
        self._judge = Judge(settings.worth, self._outbox.claim)
        self._senders = [
            Sender(
                service,
                self._outbox,
                folder=settings.folder,
                language=settings.language,
                notices=notices,
                clock=clock or Clock(),
            )
            for service in settings.services
        ]
        if self._outbox.adopt():
            self._wake()

    def handle(self, event: Event) -> None:
        """Take one event: what is worth a message is on disk when this returns."""
        alerts = self._judge.consider(event)
        for alert in alerts:
            for part in split(alert):
                self._outbox.add(part)
        if alerts:
            self._wake()

    def close(self, within_s: float) -> None:
        """Deliver what can be delivered in time; the rest waits on disk."""
        end = time.monotonic() + within_s
        for alert in self._judge.leave():
            self._outbox.add(alert)
        for sender in self._senders:
            sender.finish(end)
        for sender in self._senders:
            sender.join()
        self._outbox.close()

    def _wake(self) -> None:
        for sender in self._senders:
            sender.wake()


def from_environment() -> Alerts:
    """Return the listener that the environment asks for.

    Raises:
        ConfigError: If a setting cannot be meant.
    """
    return Alerts(read_settings())
