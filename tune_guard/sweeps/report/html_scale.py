"""Scales, ticks and lines of the report's figures, in thousandths of their size."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

SIZE = 1000
MOST_POINTS = 200
"""Points of a line; more would not be seen, and would make the file large."""

_LOG_FROM = 50
_FEW_DECADES = 3
_PLAIN = (1e-3, 1e5)
_FEW_DIGITS, _PLAIN_SHORT = 2, 1e-2
_STEPS = (1, 2, 2.5, 5, 10)


class Tick(NamedTuple):
    """One mark of an axis: where, in per cent of its length, and what it says."""

    at: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """From values to places on an axis.

    Args:
        low: Value at the start.

        high: Value at the end, larger than ``low``.

        log: Whether the axis is logarithmic; ``low`` is then above 0.

    Example:
        >>> scale = Scale(low=0, high=10)
        >>> scale.at(2.5), scale.at(99), [tick.text for tick in scale.ticks()]
        (250, 1000, ['0', '2', '4', '6', '8', '10'])
    """

    low: float
    high: float
    log: bool = False

    @classmethod
    def around(cls, values: Iterable[float], *, trim: float = 0.0) -> Scale:
        """Make a scale for values; logarithmic where positive and far apart.

        Args:
            values: What is to be shown; only the finite ones count.

            trim: Share of the values that may lie beyond either end.
        """
        ordered = sorted(value for value in values if math.isfinite(value))
        if not ordered:
            return cls(low=0.0, high=1.0)
        cut = int(trim * len(ordered))
        low, high = ordered[cut], ordered[-1 - cut]
        if low == high:
            margin = abs(low) / 10 or 1.0
            return cls(low=low - margin, high=high + margin)
        return cls(low=low, high=high, log=low > 0 and high / low > _LOG_FROM)

    def at(self, value: float) -> int:
        """Return the place of a value, from 0 to 1000; beyond the ends, the end."""
        if math.isnan(value):
            return 0
        value = min(max(value, self.low), self.high)
        low, high = self.low, self.high
        if self.log:
            low, high, value = math.log(low), math.log(high), math.log(value)
        return round(SIZE * (value - low) / (high - low))

    def ticks(self, most: int = 6) -> list[Tick]:
        """Return round values along the axis."""
        values = self._log_ticks(most) if self.log else self._even_ticks(most)
        return [Tick(self.at(value) / 10, short(value)) for value in values]

    def _even_ticks(self, most: int) -> list[float]:
        raw = (self.high - self.low) / most
        power = 10.0 ** math.floor(math.log10(raw))
        step = next(s * power for s in _STEPS if s * power >= raw * (1 - 1e-9))
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [round(i * step, 12) for i in range(first, last + 1)]

    def _log_ticks(self, most: int) -> list[float]:
        first = math.floor(math.log10(self.low))
        last = math.floor(math.log10(self.high) + 1e-9)
        step = max(1, math.ceil((last - first) / most))
        shown = (1, 2, 5) if last - first <= _FEW_DECADES else (1,)
        ticks = [
            digit * 10.0**power
            for power in range(first, last + 1, step)
            for digit in shown
        ]
        slack = 1 + 1e-9
        return [t for t in ticks if self.low / slack <= t <= self.high * slack]


def short(value: float, digits: int = 4) -> str:
    """Return a number in few characters.

    Args:
        value: The number.

        digits: Significant digits, at most.

    Example:
        >>> short(0.0), short(1500.0), short(1e-05), short(0.25), short(2e6)
        ('0', '1,500', '1e-5', '0.25', '2e6')
    """
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "∞" if value > 0 else "-∞"
    size = abs(value)
    smallest = _PLAIN[0] if digits > _FEW_DIGITS else _PLAIN_SHORT
    if value and not smallest <= size < _PLAIN[1]:
        mantissa, _, power = f"{value:.{min(digits - 1, 2)}e}".partition("e")
        mantissa = mantissa.rstrip("0").rstrip(".")
        return f"{mantissa}e{int(power)}"
    return f"{value:,.{digits}g}" if size < 10**digits else f"{value:,.0f}"


def thinned(
    steps: Sequence[float], values: Sequence[float], most: int = MOST_POINTS
) -> list[tuple[float, float]]:
    """Return a line in at most ``most`` points that keeps its ends and extremes.

    Non-finite readings are left out.

    Example:
        >>> line = thinned(range(1000), [0.0] * 500 + [9.0] + [0.0] * 499)
        >>> len(line) <= 200, max(value for _, value in line), line[-1]
        (True, 9.0, (999, 0.0))
    """
    points = [
        (step, value)
        for step, value in zip(steps, values, strict=True)
        if math.isfinite(value)
    ]
    if len(points) <= most:
        return points
    buckets = max(1, (most - 2) // 2)
    inner, kept = points[1:-1], [points[0]]
    for i in range(buckets):
        part = inner[i * len(inner) // buckets : (i + 1) * len(inner) // buckets]
        ends = {min(part, key=_value), max(part, key=_value)}
        kept += sorted(ends)
    return [*kept, points[-1]]


def _value(point: tuple[float, float]) -> float:
    return point[1]


def line(points: Iterable[tuple[int, int]]) -> str:
    """Return the path of a line; y counts upwards.

    Example:
        >>> line([(0, 0), (10, 500), (20, 400)])
        'M0 1000l10-500 10 100'
    """
    path, last = "", (0, 0)
    for x, y in points:
        here = (x, SIZE - y)
        if not path:
            path = f"M{here[0]} {here[1]}"
        elif here != last:
            across, down = here[0] - last[0], here[1] - last[1]
            path += ("l" if "l" not in path else " ") + str(across)
            path += str(down) if down < 0 else f" {down}"
        last = here
    # A line without length, with round ends, is a dot.
    return path if "l" in path or not path else path + "h0"
