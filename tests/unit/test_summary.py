from __future__ import annotations

from typing import Any

import pytest

from tune_guard.curve import Curve
from tune_guard.peers import Course
from tune_guard.schedule import Schedule
from tune_guard.summary import Summary

STORED = {
    Curve: "_mean _recent _top best count early first_step held last last_step middles"
    " pending start tops warm width",
    Schedule: "count fell_step first_step last last_step level level_count level_step"
    " longest_level lowest peak peak_step trough",
    Course: "best first jumps last pairs reached stride",
}
"""Every kind of summary with its values, in the order in which they are stored."""


@pytest.mark.parametrize("kind", STORED)
def test_the_stored_format_stays(kind: type[Summary]) -> None:
    """States of earlier versions lie in people's experiments."""
    assert list(kind._stored) == STORED[kind].split()


@pytest.mark.parametrize("kind", STORED)
@pytest.mark.parametrize("damage", [None, "text", {}, [], [1], "first", "longer"])
def test_damage_leaves_a_summary_as_it_was(kind: type[Summary], damage: Any) -> None:
    """A rule's own state must not reach half into the monitor's."""
    one = kind()
    before = one.state()
    damaged = {"first": ["x", *before[1:]], "longer": [*before, 1]}
    wrong = damaged.get(damage, damage) if isinstance(damage, str) else damage
    with pytest.raises(ValueError, match="must"):
        one.restore(wrong)
    assert one.state() == before
