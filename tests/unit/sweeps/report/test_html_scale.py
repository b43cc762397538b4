"""Scales and lines of the figures."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tune_guard.sweeps.report.html_scale import Scale, line, short, thinned

FINITE = st.floats(-1e12, 1e12)


@given(st.lists(FINITE, min_size=1, max_size=50))
def test_every_value_and_tick_lies_on_the_axis(values: list[float]) -> None:
    """From 0 to 1000, whatever the values."""
    scale = Scale.around(values)
    assert all(0 <= scale.at(value) <= 1000 for value in values)
    assert all(0 <= tick.at <= 100 for tick in scale.ticks())


def test_values_far_apart_are_shown_by_their_logarithm() -> None:
    """A loss from 0.001 to 10."""
    scale = Scale.around([0.001, 10.0])
    assert (scale.log, scale.at(0.1)) == (True, 500)
    assert [tick.text for tick in scale.ticks(5)] == ["0.001", "0.01", "0.1", "1", "10"]


def test_a_run_that_diverged_does_not_press_the_others_flat() -> None:
    """Of a hundred values the two furthest out are drawn at the edge."""
    scale = Scale.around([*range(100), 1e30], trim=0.02)
    assert (scale.high, scale.at(1e30)) == (98, 1000)


@given(st.lists(st.floats(), max_size=1000))
def test_a_line_keeps_its_ends_and_extremes_in_200_points(values: list[float]) -> None:
    """Whatever was reported, non-finite readings included."""
    found = thinned(range(len(values)), values)
    finite = [value for value in values if math.isfinite(value)]
    assert len(found) <= 200
    if finite:
        seen = [value for _, value in found]
        assert (min(seen), max(seen)) == (min(finite), max(finite))
        assert (seen[0], seen[-1]) == (finite[0], finite[-1])
    assert [step for step, _ in found] == sorted(step for step, _ in found)


def test_a_single_reading_is_a_dot() -> None:
    """A path without length, which round ends make visible."""
    assert line([(500, 250)]) == "M500 750h0"


@pytest.mark.parametrize(
    ("value", "text"),
    [(math.nan, "NaN"), (-math.inf, "-∞"), (123456.0, "1.23e5"), (-0.0, "-0")],
)
def test_short_numbers(value: float, text: str) -> None:
    """Few characters, never an error."""
    assert short(value) == text
