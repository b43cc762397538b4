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
import weakref
from dataclasses import dataclass
from importlib import import_module

from tune_guard.dispatcher import Dispatcher, Listener
from tune_guard.events import Event, GuardError, HealthSample
from tune_guard.notices import Notices

logger = logging.getLogger("tune_guard")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind of listener.

    Args:
        variable: Turns it on.

        module: Has ``from_environment()``, which makes it.

        takes_samples: Whether it makes use of a
            :class:`~tune_guard.events.HealthSample`.

        exit_within_s: How long a process that exits waits for it at most.
    """

    variable: str
    module: str
    takes_samples: bool
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
    ),
)


_told: tuple[tuple[Kind, Dispatcher], ...] = ()
_decided = False
_seemed_on = True
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
    global _seemed_on  # noqa: PLW0603 - one per process, by design
    _seemed_on = bool(_told) if _decided else any(kind.is_set for kind in KINDS)
    return _seemed_on


def wants_samples() -> bool:
    """Return whether a :class:`~tune_guard.events.HealthSample` is worth making.

    This is asked at every report, and the environment is slow to read: where
    nobody listened when :func:`is_on` was asked last, at a trial's start, nobody
    does now.
    """
    if not _decided:
        return _seemed_on and any(kind.is_set and kind.takes_samples for kind in KINDS)
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
    return Dispatcher(kind.make, exit_within_s=kind.exit_within_s)


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
    global _told, _decided, _seemed_on, _deciding
    _told, _decided, _seemed_on, _deciding = (), False, True, threading.Lock()
    Notices.observers.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
