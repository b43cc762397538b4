"""A robot's limit, kept by all processes of a user together."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tune_guard.notify.service import Limit

SLACK_S = 15.0
"""Added to the window: a message counts where it arrives, which may be later than
it left, by as long as a request may take."""

LONGEST_SILENCE_S = 3600.0
"""A silence is believed to end within this. A clock that was set back must not stop
all messages for ever."""


@dataclass(slots=True)
class _Log:
    """When messages left, and before when none may leave."""

    left: list[float] = field(default_factory=list)
    silent_until: float = 0.0


class Pace:
    """Says when the next message may leave.

    The times lie in a file under a lock, since a robot counts the messages of all
    processes. Where the file does not work, this process counts for itself.

    Args:
        path: The file.

        limit: What the service takes.

        clock: Seconds since 1970.
    """

    def __init__(self, path: Path, limit: Limit, clock: Callable[[], float]) -> None:
        self._path, self._limit, self._clock = path, limit, clock
        self._own = _Log()

    def reserve(self) -> float:
        """Count a message that leaves now, or return the seconds to wait for that."""
        with self._log() as log:
            now, limit = self._clock(), self._limit
            window_s = limit.per_s + SLACK_S
            recent = [min(t, now) for t in log.left if now - t < window_s]
            log.left = sorted(recent)
            log.silent_until = min(log.silent_until, now + LONGEST_SILENCE_S)
            if log.silent_until > now:
                return log.silent_until - now
            if len(recent) >= limit.count:
                return log.left[-limit.count] + window_s - now
            log.left.append(now)
            return 0.0

    def silence(self, seconds: float) -> None:
        """Let no process send for so long: the service asked for it."""
        with self._log() as log:
            log.silent_until = self._clock() + seconds

    @contextmanager
    def _log(self) -> Iterator[_Log]:
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW
            file = os.open(self._path, flags, 0o600)
        except OSError:
            yield self._own
            return
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            self._own = self._read(file)
            yield self._own
            data = json.dumps([self._own.left, self._own.silent_until]).encode()
            os.pwrite(file, data, 0)
            os.ftruncate(file, len(data))
        finally:
            os.close(file)

    def _read(self, file: int) -> _Log:
        raw = os.pread(file, 64 * 1024, 0)
        if not raw:
            return _Log()
        try:
            left, silent_until = json.loads(raw)
            return _Log([float(t) for t in left], float(silent_until))
        except (TypeError, ValueError):
            # Torn by a process that died: count as if the limit were reached.
            return _Log([self._clock()] * self._limit.count)
