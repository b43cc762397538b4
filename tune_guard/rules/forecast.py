"""What a trial may still gain: a robust trend over its summarised scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, log, sqrt
from statistics import median

from tune_guard.curve import Curve

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


def trend(curve: Curve) -> Trend | None:
    """Return the trend of the newer half of a curve, or None below six buckets.

    Example:
        >>> curve = Curve()
        >>> for step in range(40):
        ...     curve.add(2.0 - (step + 1) ** -0.5, step)
        >>> found = trend(curve)
        >>> found is not None and 0.05 < found.gain(2.0) < 0.1
        True
    """
    middles = curve.middles
    half = min(len(middles) // 2, len(middles) - _FEWEST)
    if half < 0:
        return None
    times = [log(_time(i, curve.width)) for i in range(half, len(middles))]
    return _fit(times, middles[half:], log(curve.count))


def _time(bucket: int, width: int) -> float:
    """Return the reading that a bucket's middle stands for, counted from 1.

    A middle is a median of the last five readings, so it lags by two.
    """
    return bucket * width + 0.5 * (width + 1) - min(2.0, 0.5 * bucket)


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
