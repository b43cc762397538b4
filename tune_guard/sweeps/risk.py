"""Bounds on the mean of what lies between 0 and 1, whatever its distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence


def p_value(losses: Sequence[float], limit: float) -> float:
    """Return how surprising the losses are if their true mean were above ``limit``.

    For losses of 0 and 1 alone it is the binomial tail, which is exact. Else it is
    the smaller of Hoeffding's bound in its tight form and of Bentkus's.

    Args:
        losses: Independent draws, each from 0 to 1.

        limit: Mean to be refuted, above 0 and below 1.

    Returns:
        A p-value for "the mean is above the limit"; 1 without losses.

    Source: S. Bates, A. Angelopoulos, L. Lei, J. Malik, M. I. Jordan,
        Distribution-free, risk-controlling prediction sets, J. ACM 68 (2021),
        section 3.1 (arXiv:2101.02703).

    Example:
        >>> round(p_value([0.0] * 230, 0.01), 3)
        0.099
    """
    count = len(losses)
    if not count:
        return 1.0
    total = math.fsum(losses)
    hits = math.ceil(total - 1e-9)
    tail = binomial_tail(hits, count, limit)
    if all(loss in (0.0, 1.0) for loss in losses):
        return tail
    mean = min(total / count, limit)
    return min(1.0, math.exp(-count * _divergence(mean, limit)), math.e * tail)


def binomial_tail(hits: int, count: int, share: float) -> float:
    """Return the probability of at most ``hits`` of ``count`` at this share.

    Example:
        >>> round(binomial_tail(1, 2, 0.5), 6)
        0.75
    """
    terms = (
        math.lgamma(count + 1)
        - math.lgamma(k + 1)
        - math.lgamma(count - k + 1)
        + k * math.log(share)
        + (count - k) * math.log1p(-share)
        for k in range(min(hits, count) + 1)
    )
    return min(1.0, math.fsum(map(math.exp, terms)))


def fewest(limit: float, confidence: float) -> int:
    """Return how many draws without any loss refute a mean above ``limit``.

    Fewer cannot, whatever they are and whatever the method.

    Example:
        >>> fewest(0.01, 0.9), fewest(0.05, 0.9)
        (230, 45)
    """
    return math.ceil(math.log(1 - confidence) / math.log1p(-limit))


def _divergence(a: float, b: float) -> float:
    """Return the relative entropy of two coins."""
    first = a * math.log(a / b) if a else 0.0
    return first + (1 - a) * math.log((1 - a) / (1 - b))
