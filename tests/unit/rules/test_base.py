"""What a detector stores, and what it must say for that."""

from __future__ import annotations

import pytest

from tune_guard.exceptions import ConfigError
from tune_guard.rules.base import Context, Detector
from tune_guard.rules.no_progress import NoProgress

CONTEXT = Context(metric="loss", mode="min")


class Counting(Detector):
    """State of its own, and a value that follows from the rule."""

    __slots__ = ("_limit", "count")

    def __init__(self) -> None:
        super().__init__(NoProgress(), CONTEXT)
        self._limit, self.count = 3, 0


class CountingTwice(Counting):
    """More state, below that of another detector."""

    __slots__ = ("again",)

    def __init__(self) -> None:
        super().__init__()
        self.again = 0


def test_the_state_is_that_of_the_class_and_of_those_above_it() -> None:
    """A detector made from another one must not lose the other's part."""
    seen = CountingTwice()
    seen.count, seen.again = 5, 7
    assert seen.state() == [5, 7]
    fresh = CountingTwice()
    fresh.restore(seen.state())
    assert (fresh.count, fresh.again) == (5, 7)


def test_a_detector_that_names_no_state_is_refused_where_it_is_written() -> None:
    """What lies in no slot would be lost with the next restart, unseen."""
    with pytest.raises(ConfigError, match=r"`.*Forgetful` must name its state") as told:

        class Forgetful(Detector):
            def __init__(self) -> None:
                super().__init__(NoProgress(), CONTEXT)
                self.count = 0

    assert "__slots__" in str(told.value)


def test_one_slot_may_be_named_by_itself() -> None:
    """As Python itself takes it."""

    class Single(Detector):
        __slots__ = "count"  # noqa: PLC0205 - Python takes it

    assert Single._state_slots == ("count",)
