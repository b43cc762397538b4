"""The region of the space that kills."""

from __future__ import annotations

import random

import pytest

from tune_guard.notify.region import Region, find_region


def rows(name: str, *values: object) -> list[dict[str, object]]:
    """Return hyperparameters with one name."""
    return [{name: value} for value in values]


def test_high_values_that_kill_are_found() -> None:
    """The bound is the smallest value among the killed."""
    found = find_region(rows("lr", 5, 6, 7, 8), rows("lr", *range(-8, 5)))
    assert found == Region(
        param="lr",
        relation="above",
        bound=5,
        killed_inside=4,
        killed=4,
        others_inside=0,
        others=13,
    )


def test_low_values_that_kill_are_found() -> None:
    """The other side of the axis."""
    found = find_region(rows("lr", 1, 2, 3, 4), rows("lr", *range(5, 18)))
    assert (found.relation, found.bound) == ("below", 4) if found else False


def test_a_choice_that_kills_is_found() -> None:
    """Texts and flags have values, no sides."""
    killed = rows("opt", "sgd", "sgd", "sgd", "sgd", "sgd", "adam")
    others = rows("opt", *["adam"] * 12)
    found = find_region(killed, others)
    assert (found.relation, found.bound) == ("is", "sgd") if found else False
    assert found is not None
    assert (found.killed_inside, found.others_inside) == (5, 0)


def test_the_clearest_of_several_hyperparameters_is_named() -> None:
    """Here the second one."""
    killed = [{"a": n % 2, "b": n + 10} for n in range(6)]
    others = [{"a": n % 2, "b": n} for n in range(10)]
    found = find_region(killed, others)
    assert found is not None
    assert found.param == "b"


@pytest.mark.parametrize("killed", [0, 1, 2])
def test_too_few_deaths_say_nothing(killed: int) -> None:
    """Three trials on each side at least."""
    assert find_region(rows("lr", *range(killed)), rows("lr", *range(9, 40))) is None


def test_chance_is_seldom_taken_for_a_region() -> None:
    """Ten of forty trials at random, eight hyperparameters: under one in twenty."""
    named = 0
    for seed in range(200):
        chance = random.Random(seed)
        trials = [{f"p{k}": chance.random() for k in range(8)} for _ in range(40)]
        named += find_region(trials[:10], trials[10:]) is not None
    assert named < 10


@pytest.mark.parametrize("value", [None, float("nan"), [1], {"a": 1}, "x", 1 << 80])
def test_odd_values_are_no_error(value: object) -> None:
    """Neither alone nor among numbers."""
    assert find_region(rows("x", value, 1, 2), rows("x", value, value, 3)) is None
    assert find_region([{}, {}, {}], rows("x", 1, 2, 3)) is None
