from __future__ import annotations

import math

import pytest

from tune_guard.sweeps.risk import binomial_tail, fewest, p_value


def test_the_binomial_tail_is_that_of_the_tables() -> None:
    """At most 2 of 10 at one in four: 0.5256."""
    assert binomial_tail(2, 10, 0.25) == pytest.approx(0.5256, abs=1e-4)


def test_losses_of_zero_and_one_use_the_exact_tail() -> None:
    """One kill in 100 sweeps, against a rate of 5%."""
    losses = [1.0] + [0.0] * 99
    assert p_value(losses, 0.05) == pytest.approx(binomial_tail(1, 100, 0.05))


def test_losses_between_use_the_smaller_bound() -> None:
    """Half a kill in 100 sweeps: Hoeffding's tight form, not Bentkus's e times."""
    losses = [0.5] + [0.0] * 99
    mean, limit = 0.005, 0.05
    entropy = mean * math.log(mean / limit)
    entropy += (1 - mean) * math.log((1 - mean) / (1 - limit))
    assert p_value(losses, limit) == pytest.approx(math.exp(-100 * entropy))


def test_a_mean_at_the_limit_or_above_refutes_nothing() -> None:
    """The p-value is 1, or close to it."""
    assert p_value([0.1] * 50, 0.1) == 1.0
    assert p_value([0.5] * 50, 0.1) == 1.0
    assert p_value([], 0.1) == 1.0


@pytest.mark.parametrize(("limit", "confidence"), [(0.01, 0.9), (0.05, 0.95)])
def test_the_fewest_sweeps_are_just_enough(limit: float, confidence: float) -> None:
    """One fewer without a single kill refutes nothing."""
    count = fewest(limit, confidence)
    assert p_value([0.0] * count, limit) <= 1 - confidence
    assert p_value([0.0] * (count - 1), limit) > 1 - confidence
