"""The thread that delivers to one service: merging, waiting, trying again."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tune_guard.notices import Notices
from tune_guard.notify.digest import MOST_MERGED, compose
from tune_guard.notify.outbox import Outbox
from tune_guard.notify.pace import Pace
from tune_guard.notify.service import Delivery, Service
from tune_guard.notify.texts import Language

WITHIN_S = 10.0
"""How long one request may take."""

MERGE_S = 10.0
"""After a message, the next one waits so long for company."""

BREATH_S = 0.5
"""Between two full messages. Feishu takes five a second."""

FIRST_WAIT_S = 2.0
LONGEST_WAIT_S = 300.0
"""A service that gives no answer is asked again after 2, 4, 8 ... 300 seconds."""

PROBE_S = 3600.0
"""A service that refuses is asked again an hour later: somebody may have changed
its settings."""

MOST_FAILURES = 48
"""After so many in a row, messages wait for the next process."""


@dataclass(frozen=True, slots=True)
class Clock:
    """The two things that a sender asks of time; tests have a faster one.

    Args:
        time: Seconds since 1970.

        pause: Wait for an event for so many seconds at most.
    """

    time: Callable[[], float] = time.time
    pause: Callable[[threading.Event, float], object] = threading.Event.wait


class Sender:
    """Delivers what waits for one service.

    Args:
        service: Where to.

        outbox: What waits.

        folder: Where the processes of a user keep a service's limit together.

        language: Of the messages.

        notices: Where trouble is named, once.

        clock: Tests have a faster one.
    """

    def __init__(
        self,
        service: Service,
        outbox: Outbox,
        *,
        folder: Path,
        language: Language,
        notices: Notices,
        clock: Clock,
    ) -> None:
        self._service, self._outbox = service, outbox
        self._language, self._notices = language, notices
        self._clock = clock
        self._pace = Pace(folder / f"{service.mark}.pace", service.limit, clock.time)
        self._merge_until = self._retry_at = 0.0
        self._failures = 0
        self._woken, self._closing = threading.Event(), threading.Event()
        self._never = threading.Event()
        self._end: float | None = None
        self._thread = threading.Thread(
            target=self._run, name=f"tune_guard-{service.mark}", daemon=True
        )
        self._thread.start()

    def wake(self) -> None:
        """Say that something waits."""
        self._woken.set()

    def finish(self, end: float) -> None:
        """Deliver what can be delivered until ``end`` (monotonic), then stop."""
        self._end = end
        self._closing.set()
        self._woken.set()

    def join(self) -> None:
        """Wait for the thread, until the end that was set."""
        if self._end is not None:
            self._thread.join(max(0.0, self._end - time.monotonic()))

    def _run(self) -> None:
        while self._failures < MOST_FAILURES:
            self._clock.pause(self._woken, threading.TIMEOUT_MAX)
            self._woken.clear()
            while self._outbox.waiting(self._service.mark, 1):
                if not self._step():
                    return
            if self._closing.is_set():
                return

    def _step(self) -> bool:
        """Wait, or send one message; False when this process sends no more."""
        wait = self._wait_s()
        if wait <= 0.0:
            wait = self._pace.reserve()
        if wait > 0.0:
            if self._end is not None and wait > self._end - time.monotonic():
                return False
            closing = self._closing.is_set()
            self._clock.pause(self._never if closing else self._closing, wait)
            return True
        alerts = self._outbox.waiting(self._service.mark, MOST_MERGED)
        digest = compose(alerts, self._service, self._language)
        within_s = self._within_s()
        if within_s <= 0.0:
            return False
        delivery = self._service.send(digest.title, digest.body, within_s)
        if delivery.status == "sent":
            self._outbox.settle(self._service.mark, digest.count)
            self._failures = 0
            gap = BREATH_S if digest.full else MERGE_S
            self._merge_until = self._clock.time() + gap
            return True
        self._failed(delivery)
        return self._failures < MOST_FAILURES

    def _wait_s(self) -> float:
        until = self._retry_at
        if not self._closing.is_set():
            until = max(until, self._merge_until)
        return until - self._clock.time()

    def _within_s(self) -> float:
        if self._end is None:
            return WITHIN_S
        return min(WITHIN_S, self._end - time.monotonic())

    def _failed(self, delivery: Delivery) -> None:
        """Note a failure once, and choose when to try again."""
        self._failures += 1
        wait = delivery.wait_s
        if wait is not None and wait > 0.0:
            self._pace.silence(wait)
        if wait is None:
            tries = min(self._failures - 1, 16)
            wait = min(FIRST_WAIT_S * 2**tries, LONGEST_WAIT_S)
        if delivery.status == "refused":
            wait = max(wait, PROBE_S)
        self._retry_at = self._clock.time() + wait
        self._outbox.note(self._service.mark, delivery.message)
        said = delivery.message.rstrip(".")
        self._notices.once(
            f"alerts:{self._service.mark}:{delivery.code or delivery.message}",
            f"An alert to {self._service.name} was not delivered: {said}."
            " It is kept and tried again; `tune-guard alerts` shows what waits.",
        )
