"""Schedule: what reported learning rates show, and nothing more."""

from __future__ import annotations

import math
from collections.abc import Iterable

from tune_guard.schedule import Schedule


def schedule_of(rates: Iterable[float]) -> Schedule:
    """Return the summary of one rate for each step."""
    schedule = Schedule()
    for step, lr in enumerate(rates):
        schedule.add(step, lr)
    return schedule


def test_a_constant_rate_is_one_level_and_never_fell() -> None:
    """Rounding noise is no change."""
    schedule = schedule_of([0.1, 0.1, 0.1 + 1e-12, 0.1])
    assert (schedule.level_count, schedule.level_step) == (4, 0)
    assert schedule.fell_step is None


def test_a_drop_begins_a_level() -> None:
    """The longest level before it is remembered."""
    schedule = schedule_of([0.1] * 5 + [0.01] * 3)
    assert (schedule.fell_step, schedule.level_step, schedule.level_count) == (5, 5, 3)
    assert (schedule.longest_level, schedule.lowest, schedule.peak) == (5, 0.01, 0.1)


def test_what_came_before_the_peak_is_no_low() -> None:
    """A ramp from 0, its first level five steps long."""
    schedule = schedule_of([0.0] * 5 + [0.05, 0.1, 0.08])
    assert (schedule.lowest, schedule.longest_level) == (0.08, 1)
    assert schedule.warmup_steps == 6


def test_a_creeping_decay_is_no_level() -> None:
    """Each step is within rounding of the last, but not of the level's start."""
    schedule = schedule_of(0.1 * (1 - 4e-7) ** i for i in range(100))
    assert schedule.level_count < 10


def test_several_rates_of_one_step_count_once() -> None:
    """Signals between reports belong to the step of the last report."""
    schedule = schedule_of([0.1, 0.01])
    for _ in range(10):
        schedule.add(1, 0.01)
    assert (schedule.count, schedule.level_count) == (2, 1)


def test_a_rate_that_was_always_zero_has_not_settled() -> None:
    """It has not decayed."""
    assert not schedule_of([0.0] * 100).settled(10)


def test_the_last_flat_steps_of_a_long_cosine_have_not_settled() -> None:
    """However close they are to each other."""
    steps = 20_000
    schedule = Schedule()
    for i in range(steps):
        schedule.add(i, 0.1 + 0.9 * (1 + math.cos(math.pi * i / (steps - 1))) / 2)
        assert not schedule.settled(10)


def test_a_state_restores_equal() -> None:
    """Value by value, and later rates are seen alike."""
    one = schedule_of([0.0, 0.1, 0.1, 0.05])
    other = Schedule()
    other.restore(one.state())
    one.add(4, 0.01)
    other.add(4, 0.01)
    assert other.state() == one.state()
