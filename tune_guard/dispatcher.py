"""A thread for one listener: events go in at once and are told when they can be."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from queue import SimpleQueue
from threading import Lock
from typing import Protocol

from tune_guard.events import Event, SweepEnded, TrialEnded
from tune_guard.notices import Notices
from tune_guard.verdict import Blame

logger = logging.getLogger("tune_guard")

MOST_WAITING = 20_000
"""Events that wait at most for one listener; later ones are counted and dropped."""

KEPT_WITHIN_S = 0.0005
"""How long the announcement of a machine's fault, or of a sweep's end, waits for it
to be safe on the disk. Any other event waits for nothing."""


class Listener(Protocol):
    """Whoever is told. Runs in a thread of its own, however slow it is."""

    def handle(self, event: Event) -> None:
        """Take one event."""

    def close(self, within_s: float) -> None:
        """Finish within so many seconds: the process exits."""


class Dispatcher:
    """Hands events to one listener, in a thread of its own.

    Args:
        make: Makes the listener, in that thread: what it imports and opens costs
            the caller nothing. None for a listener that cannot be.

        keeps: Whether an announcement that matters by itself waits, for a moment,
            until the listener has it.

        exit_within_s: How long :meth:`close` waits at most.
    """

    def __init__(
        self,
        make: Callable[[], Listener | None],
        *,
        keeps: bool = False,
        exit_within_s: float = 5.0,
    ) -> None:
        self.dropped = 0
        self._make, self._keeps, self._within_s = make, keeps, exit_within_s
        self._listener: Listener | None = None
        # Putting into it neither blocks nor lets another thread run.
        self._waiting: SimpleQueue[tuple[Event | None, Lock | None]] = SimpleQueue()
        self._notices = Notices()
        self._thread = threading.Thread(
            target=self._run, name="tune_guard-listener", daemon=True
        )
        self._thread.start()

    def put(self, event: Event) -> None:
        """Take an event. Returns at once, or after at most ``KEPT_WITHIN_S``."""
        if self._waiting.qsize() >= MOST_WAITING:
            self.dropped += 1
        elif self._keeps and _matters_by_itself(event):
            self._put_and_wait(event, KEPT_WITHIN_S)
        else:
            self._waiting.put((event, None))

    def _put_and_wait(self, event: Event | None, within_s: float) -> None:
        taken = Lock()
        taken.acquire()
        self._waiting.put((event, taken))
        taken.acquire(timeout=within_s)

    def _run(self) -> None:
        listener = self._listener = self._make()
        while True:
            event, taken = self._waiting.get()
            if listener is not None and event is not None:
                self._tell(listener, event)
            if taken is not None:
                taken.release()
            if event is None:
                return

    def _tell(self, listener: Listener, event: Event) -> None:
        try:
            listener.handle(event)
        except Exception as error:  # noqa: BLE001 - a listener's trouble is its own
            name = type(listener).__name__
            self._notices.once(
                f"listener:{name}:{type(error).__name__}",
                f"{name} could not take a {type(event).__name__} ({error!r}). The"
                " sweep and its records are not affected.",
            )

    def close(self) -> None:
        """Tell what is waiting and let the listener finish, within its time."""
        end = time.monotonic() + self._within_s
        self._put_and_wait(None, self._within_s)
        if self.dropped:
            logger.warning("%d events were too many to be told.", self.dropped)
        try:
            if self._listener is not None:
                self._listener.close(max(0.0, end - time.monotonic()))
        except Exception:
            logger.debug("A listener could not be closed.", exc_info=True)


def _matters_by_itself(event: Event) -> bool:
    if isinstance(event, TrialEnded):
        return event.record.blame is Blame.INFRASTRUCTURE
    return isinstance(event, SweepEnded)
