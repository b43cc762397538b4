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
from collections import deque
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Protocol

from tune_guard.events import Event, GuardError, SweepEnded, TrialEnded
from tune_guard.notices import Notices

logger = logging.getLogger("tune_guard")

MODULES = {
    "TUNE_GUARD_ALERTS": "tune_guard.notify.alerts",
    "TUNE_GUARD_PROMETHEUS": "tune_guard.export.prometheus",
    "TUNE_GUARD_TENSORBOARD": "tune_guard.export.tensorboard",
}
"""Which variable turns on which listener: a module with ``from_environment()``.
The alerts stand first, since they alone keep what must survive ``kill -9``."""

TAKE_SAMPLES = ("TUNE_GUARD_PROMETHEUS", "TUNE_GUARD_TENSORBOARD")
"""The listeners that make use of a :class:`~tune_guard.events.HealthSample`."""

MOST_WAITING = 20_000
"""Events that wait at most; later ones are counted and dropped."""

KEPT_WITHIN_S = 0.0005
"""How long the announcement of an end waits for it to be safe on the disk."""

EXIT_WITHIN_S = 5.0
"""How long a process that exits waits for what is still to be told."""


class Listener(Protocol):
    """Whoever is told. ``handle`` runs in a thread of its own, never twice at once."""

    def handle(self, event: Event) -> None:
        """Take one event."""

    def close(self, within_s: float) -> None:
        """Finish within so many seconds: the process exits."""


class Dispatcher:
    """Hands events to listeners in a thread of its own.

    Args:
        make: Makes the listeners, in that thread: what they import and open
            costs the caller nothing. They are told in this order.

        wants_samples: Whether any of them makes use of health samples.
    """

    def __init__(
        self, make: Callable[[], Sequence[Listener]], *, wants_samples: bool = True
    ) -> None:
        self.wants_samples = wants_samples
        self.dropped = 0
        self._make = make
        self._listeners: Sequence[Listener] = ()
        self._waiting: deque[Event] = deque()
        self._put = self._done = 0
        self._closing = False
        self._changed = threading.Condition()
        self._notices = Notices()
        self._thread = threading.Thread(
            target=self._run, name="tune_guard-listeners", daemon=True
        )
        self._thread.start()

    def put(self, event: Event) -> None:
        """Take an event. Returns at once, or after at most ``KEPT_WITHIN_S``."""
        with self._changed:
            if len(self._waiting) >= MOST_WAITING:
                self.dropped += 1
                return
            self._waiting.append(event)
            self._put += 1
            ticket = self._put
            self._changed.notify_all()
            if isinstance(event, (TrialEnded, SweepEnded)):
                self._changed.wait_for(lambda: self._done >= ticket, KEPT_WITHIN_S)

    def _run(self) -> None:
        self._listeners = self._make()
        while True:
            with self._changed:
                while not self._waiting:
                    if self._closing:
                        return
                    self._changed.wait()
                event = self._waiting.popleft()
            for listener in self._listeners:
                self._tell(listener, event)
            with self._changed:
                self._done += 1
                self._changed.notify_all()

    def _tell(self, listener: Listener, event: Event) -> None:
        try:
            listener.handle(event)
        except Exception as error:  # noqa: BLE001 - a listener must not end the others
            name = type(listener).__name__
            self._notices.once(
                f"listener:{name}:{type(error).__name__}",
                f"{name} could not take a {type(event).__name__} ({error!r}). The"
                " sweep and its records are not affected.",
            )

    def close(self, within_s: float = EXIT_WITHIN_S) -> None:
        """Tell what is waiting and let the listeners finish, within the time."""
        end = time.monotonic() + within_s
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join(within_s)
        if self.dropped:
            logger.warning("%d events were too many to be told.", self.dropped)
        for listener in self._listeners:
            try:
                listener.close(max(0.0, end - time.monotonic()))
            except Exception:
                logger.debug("A listener could not be closed.", exc_info=True)


_dispatcher: Dispatcher | None = None
_decided = False
_deciding = threading.Lock()


def announce(event: Event) -> None:
    """Tell whoever listens. Never raises, never blocks.

    Args:
        event: What happened. A record is stored before it is announced.
    """
    if _decided and _dispatcher is None:
        return
    try:
        dispatcher = _dispatcher or _decide()
        if dispatcher is not None:
            dispatcher.put(event)
    except Exception:
        logger.debug("An event could not be announced.", exc_info=True)


def is_on() -> bool:
    """Return whether anybody listens: whether an event is worth making."""
    if not _decided:
        return any(map(_is_set, MODULES))
    return _dispatcher is not None


def wants_samples() -> bool:
    """Return whether it is worth making a ``HealthSample``. Never raises."""
    if not _decided:
        return any(map(_is_set, TAKE_SAMPLES))
    return _dispatcher is not None and _dispatcher.wants_samples


def _is_set(variable: str) -> bool:
    return bool(os.environ.get(variable, "").strip())


def _decide() -> Dispatcher | None:
    """Read the environment and start what it asks for, once."""
    global _dispatcher, _decided  # noqa: PLW0603 - one per process, by design
    with _deciding:
        if not _decided and any(map(_is_set, MODULES)):
            wants = any(map(_is_set, TAKE_SAMPLES))
            _dispatcher = Dispatcher(_configured, wants_samples=wants)
            Notices.observers.append(_notice)
            _shut_at_exit()
        _decided = True
    return _dispatcher


def _shut_at_exit() -> None:
    if multiprocessing.parent_process() is None:
        atexit.register(shut)
    else:
        # Such a process ends without its exit handlers, but runs its finalizers.
        multiprocessing.util.Finalize(None, shut, exitpriority=0)


def _configured() -> list[Listener]:
    listeners: list[Listener] = []
    for variable in filter(_is_set, MODULES):
        try:
            listeners.append(import_module(MODULES[variable]).from_environment())
        except Exception as error:  # noqa: BLE001 - said once; the sweep goes on
            logger.warning("%s is set, but has no effect: %s", variable, error)
    return listeners


def _notice(topic: str, message: str) -> None:
    announce(GuardError(topic=topic, message=message))


def shut() -> None:
    """Tell what is waiting, and from then on listen no more. For the exit."""
    global _dispatcher
    dispatcher, _dispatcher = _dispatcher, None
    if dispatcher is not None:
        Notices.observers.remove(_notice)
        dispatcher.close()


def _forget() -> None:
    """Start anew in a forked process: its parent's threads are not in it."""
    global _dispatcher, _decided, _deciding
    _dispatcher, _decided, _deciding = None, False, threading.Lock()
    Notices.observers.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
