"""Running statistics in bounded memory."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque


class RobustWindow:
    """Median of the last ``size`` accepted values.

    Holds the values in order of arrival and, beside them, sorted: adding one is
    a binary search and a shift of at most ``size`` numbers.

    Example:
        >>> window = RobustWindow(3)
        >>> for value in (1.0, 9.0, 2.0, 3.0):
        ...     window.add(value)
        >>> window.median()
        3.0
    """

    __slots__ = ("_size", "_sorted", "values")

    def __init__(self, size: int, values: list[float] | None = None) -> None:
        self.values: deque[float] = deque(values or (), size)
        self._size = size
        self._sorted = sorted(self.values)

    def __len__(self) -> int:
        return len(self.values)

    def add(self, value: float) -> None:
        """Take in one finite value; the oldest leaves when the window is full."""
        values, ordered = self.values, self._sorted
        if len(ordered) == self._size:
            del ordered[bisect_left(ordered, values[0])]
        values.append(value)
        insort(ordered, value)

    def median(self) -> float:
        """Return the median; the mean of the middle two for an even count."""
        ordered, middle = self._sorted, len(self._sorted) // 2
        if len(ordered) % 2:
            return ordered[middle]
        return 0.5 * ordered[middle - 1] + 0.5 * ordered[middle]
