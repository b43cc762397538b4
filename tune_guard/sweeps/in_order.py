"""Work through many sweeps, on one core or several, holding few at a time."""

from __future__ import annotations

import contextlib
import multiprocessing
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

_Item = TypeVar("_Item")
_Found = TypeVar("_Found")


def in_order(
    work: Callable[[_Item], _Found], items: Iterable[_Item], jobs: int = 1
) -> Iterator[_Found]:
    """Yield the work's results in the items' order.

    Items are taken as they are needed: with one job one at a time, with more, one
    a process and one that waits for it.

    Args:
        work: What to do with an item; a function that can be pickled.

        items: What to work through.

        jobs: Processes to use.

    Example:
        >>> list(in_order(len, ["a", "bb"]))
        [1, 2]
    """
    if jobs <= 1:
        yield from map(work, items)
        return
    places = _Places(2 * jobs)
    with (
        multiprocessing.get_context("spawn").Pool(jobs) as pool,
        contextlib.closing(places),
    ):
        for found in pool.imap(work, places.filled(items)):
            places.free()
            yield found


class _Places:
    """Keeps a pool, which takes all it can get, from taking every item at once."""

    def __init__(self, count: int) -> None:
        self._places = threading.Semaphore(count)
        self._closed = False

    def filled(self, items: Iterable[_Item]) -> Iterator[_Item]:
        """Yield the items, each once there is a place for it."""
        items = iter(items)
        while True:
            self._places.acquire()
            if self._closed:
                return
            try:
                item = next(items)
            except StopIteration:
                return
            yield item

    def free(self) -> None:
        """Give a place back."""
        self._places.release()

    def close(self) -> None:
        """Let whoever waits for a place go home: the pool joins its thread."""
        self._closed = True
        self._places.release()
