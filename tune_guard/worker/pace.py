"""How long steps take, and how long they wait for data."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any


class Pace:
    """Time the steps of a loop.

    A step lasts from one check to the next. What lies between two checks beside
    training, such as an evaluation or a checkpoint, is a break and no step.

    Args:
        clock: Gives seconds that only grow.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._began_s = clock()
        self._last_s: float | None = None
        self._data_s: float | None = None

    def total_s(self) -> float:
        """Return the seconds since the trial began in this process."""
        return self._clock() - self._began_s

    def step(self) -> tuple[float | None, float | None]:
        """Return the seconds of the step that ends now, and those spent on data."""
        now = self._clock()
        last, self._last_s = self._last_s, now
        data, self._data_s = self._data_s, None
        return (None if last is None else now - last), data

    def interrupt(self) -> None:
        """Say that something else than training happened since the last step."""
        self._last_s = self._data_s = None

    def waited(self, seconds: float) -> None:
        """Add seconds that the step waited for its data."""
        self._data_s = (self._data_s or 0.0) + seconds

    def timed(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Yield batches and time the waiting for each."""
        waiting = iter(batches)
        while True:
            began = self._clock()
            try:
                batch = next(waiting)
            except StopIteration:
                return
            self.waited(self._clock() - began)
            yield batch
