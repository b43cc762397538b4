"""The one place through which the engines tell the world: ``announce(event)``.

Who listens is decided by the environment, once per process, at the first event:
``TUNE_GUARD_ALERTS`` (chat messages), ``TUNE_GUARD_PROMETHEUS`` (metrics) and
``TUNE_GUARD_TENSORBOARD`` (event files). With none of them set, an announcement
costs two comparisons.
"""

from __future__ import annotations

import atexit
import logging
import multiprocessing.util
import os
import threading
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from queue import SimpleQueue
from threading import Lock
from typing import Protocol

from tune_guard.events import Event, GuardError, HealthSample, SweepEnded, TrialEnded
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind of listener.

    Args:
        variable: Turns it on.

        module: Has ``from_environment()``, which makes it.

        takes_samples: Whether it makes use of a
            :class:`~tune_guard.events.HealthSample`.

        keeps: Whether it keeps on disk, safe from ``kill -9``, what is worth a
            message by itself.

        exit_within_s: How long a process that exits waits for it at most.
    """

    variable: str
    module: str
    takes_samples: bool
    keeps: bool = False
    exit_within_s: float = 5.0

    @property
    def is_set(self) -> bool:
        """Whether its variable is set."""
        return bool(os.environ.get(self.variable, "").strip())

    def make(self) -> Listener | None:
        """Return the listener; None, said once, where its setting has no meaning."""
        try:
            listener: Listener = import_module(self.module).from_environment()
        except Exception as error:  # noqa: BLE001 - said once; the sweep goes on
            logger.warning("%s is set, but has no effect: %s", self.variable, error)
            return None
        return listener


KINDS = (
    Kind(
        variable="TUNE_GUARD_PROMETHEUS",
        module="tune_guard.export.prometheus",
        takes_samples=True,
    ),
    Kind(
        variable="TUNE_GUARD_TENSORBOARD",
        module="tune_guard.export.tensorboard",
        takes_samples=True,
        # It writes to files only, but imports torch where that is installed.
        exit_within_s=20.0,
    ),
    Kind(
        variable="TUNE_GUARD_ALERTS",
        module="tune_guard.notify.alerts",
        takes_samples=False,
        keeps=True,
    ),
)


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


_told: tuple[tuple[Kind, Dispatcher], ...] = ()
_decided = False
_deciding = threading.Lock()


def announce(event: Event) -> None:
    """Tell whoever listens. Never raises, never blocks.

    Args:
        event: What happened. A record is stored before it is announced.
    """
    if _decided and not _told:
        return
    try:
        is_sample = isinstance(event, HealthSample)
        for kind, dispatcher in _told or _decide():
            if kind.takes_samples or not is_sample:
                dispatcher.put(event)
    except Exception:
        logger.debug("An event could not be announced.", exc_info=True)


def is_on() -> bool:
    """Return whether anybody listens: whether an event is worth making."""
    return bool(_told) if _decided else any(kind.is_set for kind in KINDS)


def wants_samples() -> bool:
    """Return whether a :class:`~tune_guard.events.HealthSample` is worth making."""
    if not _decided:
        return any(kind.is_set and kind.takes_samples for kind in KINDS)
    return any(kind.takes_samples for kind, _ in _told)


def _decide() -> tuple[tuple[Kind, Dispatcher], ...]:
    """Read the environment and start what it asks for, once."""
    global _told, _decided  # noqa: PLW0603 - one per process, by design
    with _deciding:
        if not _decided:
            _told = tuple((kind, _start(kind)) for kind in KINDS if kind.is_set)
            if _told:
                Notices.observers.append(_notice)
                _shut_at_exit()
        _decided = True
    return _told


def _start(kind: Kind) -> Dispatcher:
    within_s = kind.exit_within_s
    return Dispatcher(kind.make, keeps=kind.keeps, exit_within_s=within_s)


def _shut_at_exit() -> None:
    if multiprocessing.parent_process() is None:
        # Torch may be imported as late as while `shut` waits. By then this module
        # could not be, and finalizers would run when half of torch is gone.
        import_module("concurrent.futures.thread")
        weakref.finalize(shut, str)
        atexit.register(shut)
    else:
        # Such a process ends without its exit handlers, but runs its finalizers.
        multiprocessing.util.Finalize(None, shut, exitpriority=0)


def _notice(topic: str, message: str) -> None:
    announce(GuardError(topic=topic, message=message))


def shut() -> None:
    """Tell what is waiting, and from then on listen no more. For the exit."""
    global _told
    told, _told = _told, ()
    if told:
        Notices.observers.remove(_notice)
    for _, dispatcher in told:
        dispatcher.close()


def _forget() -> None:
    """Start anew in a forked process: its parent's threads are not in it."""
    global _told, _decided, _deciding
    _told, _decided, _deciding = (), False, threading.Lock()
    Notices.observers.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
