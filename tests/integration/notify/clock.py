"""A clock that a test moves: pauses end when it gets there, never by waiting."""

from __future__ import annotations

import threading
from collections.abc import Callable

from tune_guard.notify.sender import Clock

START = 1_700_000_000.0

FOREVER_S = 1e9


class VirtualClock:
    """Time stands still until it is moved, and while any thread has work to do."""

    def __init__(self, now: float = START) -> None:
        self._now = now
        self._pauses: dict[int, tuple[float, threading.Event]] = {}
        self._threads: set[int] = set()
        self._changed = threading.Condition()

    def time(self) -> float:
        """Return seconds since 1970."""
        return self._now

    def pause(self, event: threading.Event, seconds: float) -> bool:
        """Return when so many seconds have been moved on, or the event is set."""
        me, target = threading.get_ident(), self._now + seconds
        with self._changed:
            self._threads.add(me)
            self._pauses[me] = (target, event)
            self._changed.notify_all()
            while self._now < target and not event.is_set():
                self._changed.wait(0.01)
            del self._pauses[me]
        return event.is_set()

    def advance(self, seconds: float) -> None:
        """Move the time on, once no thread has work to do: requests take no time."""
        with self._changed:
            while self._is_busy():
                self._changed.wait(0.01)
            self._now += seconds
            self._changed.notify_all()

    def run_until(self, done: Callable[[], bool], most_s: float = 86_400.0) -> bool:
        """Move on from pause to pause until something holds."""
        end = self._now + most_s
        while not done():
            with self._changed:
                due = self._next()
                if due is None:
                    self._changed.wait(0.01)
                elif due > end:
                    return False
                else:
                    self._now = due
                    self._changed.notify_all()
        return True

    def _next(self) -> float | None:
        """Return when the first pause ends; None while a thread has work to do."""
        if self._is_busy():
            return None
        due = min((target for target, _ in self._pauses.values()), default=self._now)
        return due if self._now < due < self._now + FOREVER_S else None

    def _is_busy(self) -> bool:
        alive = {thread.ident for thread in threading.enumerate()}
        at_work = (self._threads & alive) - self._pauses.keys()
        due = (target <= self._now for target, _ in self._pauses.values())
        woken = (event.is_set() for _, event in self._pauses.values())
        return bool(at_work) or any(due) or any(woken)

    def as_clock(self) -> Clock:
        """Return what a sender takes."""
        return Clock(time=self.time, pause=self.pause)
