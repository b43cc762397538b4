"""Many sweeps are worked through in order, and few are held at a time."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tune_guard.sweeps.in_order import in_order


def counted(taken: list[int], count: int) -> Iterator[int]:
    """Yield numbers and note which were taken."""
    for number in range(count):
        taken.append(number)
        yield number


def test_one_job_takes_an_item_when_it_is_asked_for() -> None:
    """The second item is not there before the first was dealt with."""
    taken: list[int] = []
    found = in_order(abs, counted(taken, 3))
    next(found)
    assert taken == [0]


def test_several_jobs_take_no_more_than_there_is_room_for() -> None:
    """Two jobs: four places, and one more for each result that was taken."""
    taken: list[int] = []
    found = in_order(abs, counted(taken, 50), jobs=2)
    assert next(found) == 0
    assert len(taken) <= 6
    assert list(found) == list(range(1, 50))


def test_whoever_stops_early_leaves_no_process_behind() -> None:
    """Closing the iterator ends the pool, though items are left."""
    found = in_order(abs, counted([], 50), jobs=2)
    assert next(found) == 0
    found.close()  # type: ignore[attr-defined]


def test_an_error_of_the_source_reaches_the_caller() -> None:
    """It is raised where the result would have come."""

    def broken() -> Iterator[int]:
        yield 1
        raise OSError

    found = in_order(abs, broken(), jobs=2)
    assert next(found) == 1
    with pytest.raises(OSError):  # noqa: PT011 - it has no text
        next(found)
