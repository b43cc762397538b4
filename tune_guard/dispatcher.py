"""A thread for one listener: events go in at once and are told when they can be."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from queue import SimpleQueue
from threading import Lock
from typing import Protocol

from tune_guard.events import Event
from tune_guard.notices import Notices

logger = logging.getLogger("tune_guard")

MOST_WAITING = 20_000
"""Events that wait at most for one listener; later ones are counted and dropped."""


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

        exit_within_s: How long :meth:`close` waits at most.
    """

    def __init__(
        self,
        make: Callable[[], Listener | None],
        *,
        exit_within_s: float = 5.0,
    ) -> None:
        self.dropped = 0
        self._make, self._within_s = make, exit_within_s
        self._listener: Listener | None = None
        # Putting into it neither blocks nor lets another thread run.
        self._waiting: SimpleQueue[tuple[Event | None, Lock | None]] = SimpleQueue()
        self._notices = Notices()
        self._thread = threading.Thread(
            target=self._run, name="tune_guard-listener", daemon=True
        )
        self._thread.start()

    def put(self, event: Event) -> None:
        """Take an event. Returns at once."""
        if self._waiting.qsize() >= MOST_WAITING:
            self.dropped += 1
        else:
            self._waiting.put((event, None))

    def wait(self, within_s: float) -> bool:
        """Wait until all events were told; return whether they were in time."""
        told = Lock()
        told.acquire()
        self._waiting.put((None, told))
        return told.acquire(timeout=within_s)

    def _run(self) -> None:
        listener = self._listener = self._make()
        while True:
            event, told = self._waiting.get()
            if listener is not None and event is not None:
                self._tell(listener, event)
            if told is not None:
                told.release()
            elif event is None:
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
        self.wait(self._within_s)
        self._waiting.put((None, None))
        if self.dropped:
            logger.warning("%d events were too many to be told.", self.dropped)
        try:
            if self._listener is not None:
                self._listener.close(max(0.0, end - time.monotonic()))
        except Exception:
            logger.debug("A listener could not be closed.", exc_info=True)
