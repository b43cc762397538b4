"""Stored states that were edited: taken over whole, or not at all."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from tests.streams import eventful
from tests.unit.evidence.support import Silent, only, watched
from tune_guard import Monitor, StopRecord
from tune_guard.coercion import is_real, is_whole, to_largest, to_step
from tune_guard.curve import Curve
from tune_guard.evidence.coding import state_of
from tune_guard.peers import Peers
from tune_guard.record import DETAIL, REASON

POLICY = only("divergence")


def state() -> dict[str, Any]:
    """Return a monitor's state after forty reports, with a keyframe."""
    monitor = watched(POLICY, eventful(3)[:40])
    monitor.keyframe()
    return copy.deepcopy(monitor.state())


def restored(stored: Any) -> Monitor:
    """Return a monitor that was given a state and has gone on for a while."""
    monitor = Monitor(POLICY, trial_id="t1", notices=Silent())
    monitor.restore(stored)
    first = (monitor.last_step or 0) + 1
    for step in range(first, first + 200):
        monitor.observe(step, {"score": 1.0 / step, "loss": 1.0, "lr": 0.1})
    return monitor


def test_an_intact_state_is_taken_over() -> None:
    """What the damage below is measured against."""
    assert restored(state()).notices.messages.get("state") is None
    assert restored(state()).curve.count == 40 + 200


def _curve(stored: dict[str, Any], field: str, value: Any) -> None:
    names = [name for name in Curve.__slots__ if name != "recent_top"]
    stored["curve"][names.index(field)] = value


DAMAGE: dict[str, Callable[[dict[str, Any]], None]] = {
    "no count": lambda s: _curve(s, "count", None),
    "count beyond 64 bits": lambda s: _curve(s, "count", 10**400),
    "no width": lambda s: _curve(s, "width", 0),
    "pending for ever": lambda s: _curve(s, "pending", 5),
    "a list for a number": lambda s: _curve(s, "_mean", [1.0]),
    "more buckets than there are": lambda s: _curve(s, "tops", [1.0] * 65),
    "buckets of two lengths": lambda s: _curve(s, "middles", []),
    "a curve that is short": lambda s: s["curve"].pop(),
    "a list for a rate": lambda s: s["schedule"].__setitem__(3, [0.1]),
    "a rate beyond floats": lambda s: s["schedule"].__setitem__(3, 10**400),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_state_starts_anew(name: str) -> None:
    """Named once; nothing of it is left, and no report raises."""
    stored = state()
    DAMAGE[name](stored)
    monitor = restored(stored)
    assert "state" in monitor.notices.messages
    assert (monitor.curve.count, len(monitor.curve.tops)) == (200, 50)


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_keyframe_starts_anew(name: str) -> None:
    """It is looked at when the trial goes back to it."""
    stored = state()
    DAMAGE[name](stored["keyframes"][0])
    monitor = restored(stored)
    monitor.begin_attempt(150)
    assert monitor.curve.count == 0
    assert "state" in monitor.notices.messages


def test_a_keyframe_without_a_step_is_returned_to() -> None:
    """It counts as taken at the start."""
    stored = state()
    del stored["keyframes"][0]["last_step"]
    monitor = restored(stored)
    monitor.begin_attempt(150)
    assert monitor.attempt == 2


def test_a_damaged_rule_shows_no_margin() -> None:
    """The margins of the others are shown."""
    stored = state()
    stored["rules"]["plateau"][0] = "many"
    stored["rules"]["amp_scale_collapse"] = [None]
    monitor = Monitor(POLICY, trial_id="t1", notices=Silent())
    monitor.restore(stored)
    assert "amp_scale_collapse" not in monitor.margins()
    assert "divergence" in monitor.margins()


def test_a_state_nested_without_end_is_refused() -> None:
    """Before Python's own limit."""
    deep: Any = 1.0
    for _ in range(900):
        deep = [deep]
    with pytest.raises(ValueError, match="not nested deeper than 20 levels"):
        state_of({"curve": deep})


def test_infinitely_many_finished_trials_are_refused() -> None:
    """As any other damage to what finished trials had reached."""
    with pytest.raises(ValueError, match="damaged"):
        Peers().restore({"leaders": [], "finished": float("inf"), "ids": []})


def test_a_record_nested_without_end_is_read() -> None:
    """Its texts are texts, whatever was put there."""
    deep: Any = {}
    for _ in range(100_000):
        deep = {"a": deep}
    stored = {REASON: "plateau", DETAIL: {"message": deep, "warnings": [deep]}}
    record = StopRecord.from_metadata(stored)
    assert record is not None
    assert (record.reason, record.message) == ("plateau", "dict")


def test_steps_and_stored_numbers_fit_into_64_bits() -> None:
    """So that arrays, storages and floats can hold them."""
    odd = [10**400, -(10**19), 1e300, float("nan"), float("inf"), True, "x", None]
    assert [to_step(value) for value in odd] == [None] * len(odd)
    assert (to_step("7"), to_step(2.0), to_step(2**63 - 1)) == (7, 2, 2**63 - 1)
    assert [is_whole(v) for v in (0, 2**63 - 1, 2**63, True, 1.0)] == [
        *(True, True),
        *(False, False, False),
    ]
    assert [is_real(v) for v in (0.5, float("nan"), 3, 2**63, None, "x")] == [
        *(True, True, True),
        *(False, False, False),
    ]


def test_learning_rates_without_end_are_read_up_to_a_thousand() -> None:
    """A report may hold any object."""
    assert to_largest(range(10**12)) == 999.0
