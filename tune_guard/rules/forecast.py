"""What a trial may still gain: a robust trend over a bounded sample of its scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, log, sqrt
from statistics import median
from typing import Any

_SIZE = 48
_FEWEST = 6
_OPTIMISM = 1.0


@dataclass(frozen=True, slots=True)
class Trend:
    """The line of scores over the logarithm of time, and how sure it is.

    Args:
        level: Its value now.

        steepest: Its optimistic slope, per unit of the natural logarithm.

        noise: Standard deviation of the scores around it, robust.
    """

    level: float
    steepest: float
    noise: float

    def gain(self, growth: float) -> float:
        """Return the optimistic gain until the trial is ``growth`` times as old."""
        return max(0.0, self.steepest * log(max(growth, 1.0)))


class Sample:
    """A trial's scores, thinned evenly to at most 48.

    Example:
        >>> sample = Sample()
        >>> for score in range(100):
        ...     sample.add(float(score))
        >>> sample.count, sample.stride, sample.scores[:3]
        (100, 4, [0.0, 4.0, 8.0])
    """

    __slots__ = ("_trend", "_trend_count", "count", "scores", "stride")

    def __init__(self) -> None:
        self.count = 0
        self.stride = 1
        self.scores: list[float] = []
        self._trend: Trend | None = None
        self._trend_count = 0

    def add(self, score: float) -> None:
        """Take in one finite score; when full, every other one goes."""
        if self.count % self.stride == 0:
            self.scores.append(score)
            if len(self.scores) > _SIZE:
                del self.scores[1::2]
                self.stride *= 2
        self.count += 1

    def trend(self) -> Trend | None:
        """Return the trend of the newer half, or None below six scores."""
        if self._trend_count != self.count and len(self.scores) >= _FEWEST:
            half = min(len(self.scores) // 2, len(self.scores) - _FEWEST)
            times = [log(i * self.stride + 1) for i in range(half, len(self.scores))]
            self._trend = _fit(times, self.scores[half:], log(self.count))
            self._trend_count = self.count
        return self._trend

    def state(self) -> list[Any]:
        """Return the sample as plain values."""
        return [self.count, self.stride, list(self.scores)]

    def restore(self, state: list[Any]) -> None:
        """Take over what :meth:`state` returned."""
        self.count, self.stride, scores = state
        self.scores = list(scores)
        self._trend, self._trend_count = None, 0


def _fit(times: Sequence[float], scores: Sequence[float], now: float) -> Trend:
    """Fit a line by the median of all pairwise slopes.

    Source: P. K. Sen, Estimates of the regression coefficient based on Kendall's
    tau (1968): slope, and its confidence bound from the variance of tau.
    """
    n = len(times)
    slopes = sorted(
        (scores[j] - scores[i]) / (times[j] - times[i])
        for i in range(n)
        for j in range(i + 1, n)
    )
    slope = median(slopes)
    spread = _OPTIMISM * sqrt(n * (n - 1) * (2 * n + 5) / 18)
    steepest = slopes[min(len(slopes) - 1, ceil((len(slopes) + spread) / 2))]
    base = median([y - slope * x for x, y in zip(times, scores, strict=True)])
    rest = [abs(y - base - slope * x) for x, y in zip(times, scores, strict=True)]
    return Trend(base + slope * now, steepest, 1.4826 * median(rest))
