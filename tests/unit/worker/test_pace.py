from __future__ import annotations

from collections.abc import Iterator

import pytest

from tune_guard.worker.pace import Pace


class Clock:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now


@pytest.fixture
def clock() -> Clock:
    """Return a clock that stands still."""
    return Clock()


def test_a_step_lasts_from_check_to_check(clock: Clock) -> None:
    """The first has no beginning."""
    pace = Pace(clock)
    times = []
    for seconds in (5.0, 0.5, 0.25):
        clock.now += seconds
        times.append(pace.step()[0])
    assert times == [None, 0.5, 0.25]


def test_a_break_is_no_step(clock: Clock) -> None:
    """An evaluation between two steps belongs to neither."""
    pace = Pace(clock)
    pace.step()
    clock.now += 60.0
    pace.interrupt()
    clock.now += 0.5
    assert pace.step()[0] is None
    clock.now += 0.5
    assert pace.step()[0] == 0.5


def test_waiting_for_data_is_part_of_the_step(clock: Clock) -> None:
    """All batches of a step count, and begin anew with the next."""
    pace = Pace(clock)

    def batches() -> Iterator[int]:
        for number in range(3):
            clock.now += 0.5
            yield number

    waited = []
    for number in pace.timed(batches()):
        clock.now += 1.0
        if number != 1:
            waited.append(pace.step()[1])
    assert waited == [0.5, 1.0]


def test_the_total_grows_from_the_beginning(clock: Clock) -> None:
    """Breaks included."""
    pace = Pace(clock)
    clock.now += 7.0
    assert pace.total_s() == 7.0
