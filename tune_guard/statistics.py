"""Running statistics in bounded memory."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from math import nan


class RobustWindow:
    """Median of the last ``size`` accepted values.

    Holds the values in order of arrival and, beside them, sorted: adding one is
    a binary search and a shift of at most ``size`` numbers.

    Args:
        size: Values that are kept.

        values: The first of them, oldest first.

    Example:
        >>> window = RobustWindow(3)
        >>> for value in (1.0, 9.0, 2.0, 3.0):
        ...     window.add(value)
        >>> window.median
        3.0
    """

    __slots__ = ("_size", "_sorted", "median", "values")

    def __init__(self, size: int, values: list[float] | None = None) -> None:
        self.values: deque[float] = deque(maxlen=size)
        self._size = size
        self._sorted: list[float] = []
        self.median = nan
        """The mean of the middle two for an even count; NaN while it is empty."""
        for value in values or ():
            self.add(value)

    def __len__(self) -> int:
        return len(self.values)

    def add(self, value: float) -> None:
        """Take in one finite value; the oldest leaves when the window is full."""
        values, ordered = self.values, self._sorted
        if len(ordered) == self._size:
            del ordered[bisect_left(ordered, values[0])]
        values.append(value)
        insort(ordered, value)
        middle = len(ordered) // 2
        if len(ordered) % 2:
            self.median = ordered[middle]
        else:
            self.median = 0.5 * ordered[middle - 1] + 0.5 * ordered[middle]
