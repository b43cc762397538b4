"""Forecast: an optimistic line through the newer half of a curve."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable

import pytest

from tune_guard.curve import Curve
from tune_guard.rules.forecast import Trend, trend


def trend_of(scores: Iterable[float]) -> Trend:
    """Return the trend of scores at the steps from 0 on."""
    curve = Curve()
    for step, score in enumerate(scores):
        curve.add(score, step)
    found = trend(curve)
    assert found is not None
    return found


def test_too_few_scores_have_no_trend() -> None:
    """Six are the fewest."""
    curve = Curve()
    for step in range(5):
        curve.add(1.0, step)
        assert trend(curve) is None
    curve.add(1.0, 5)
    assert trend(curve) is not None


@pytest.mark.parametrize("count", [20, 64, 65, 500])
def test_a_line_over_the_logarithm_of_time_is_found(count: int) -> None:
    """However much the curve is thinned."""
    found = trend_of(0.3 * math.log(i + 1) for i in range(count))
    assert found.gain(math.e) == pytest.approx(0.3, rel=0.05)
    assert found.level == pytest.approx(0.3 * math.log(count), rel=0.1)


def test_a_flat_noisy_curve_promises_less_than_its_noise() -> None:
    """Over the time until it is twice as old."""
    rng = random.Random(1)
    found = trend_of(rng.gauss(1.0, 0.1) for _ in range(60))
    assert 0.0 <= found.gain(2.0) < 0.1


def test_a_falling_curve_promises_nothing() -> None:
    """A gain is never negative."""
    assert trend_of(-0.1 * i for i in range(30)).gain(2.0) == 0.0


def test_no_time_left_promises_nothing() -> None:
    """Also past the budget."""
    found = trend_of(float(i) for i in range(30))
    assert (found.gain(1.0), found.gain(0.5)) == (0.0, 0.0)
    assert found.gain(2.0) > 0.0


def test_one_wild_score_moves_nothing() -> None:
    """Slopes and level are medians."""
    scores = [1.0] * 40
    scores[30] = 1e9
    found = trend_of(scores)
    assert (found.level, found.gain(2.0), found.noise) == (1.0, 0.0, 0.0)
