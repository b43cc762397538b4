from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.property.strategies import RULES, json_values, reports
from tune_guard import Monitor, Policy
from tune_guard.record import StopRecord
from tune_guard.verdict import Verdict

POLICY = Policy(
    metric="score",
    mode="max",
    rules=tuple(RULES.values()),
    fresh_key="epoch",
    ignore_where={"a/b": True},
    warmup_steps=3,
)
numbers = st.integers(-3, 40) | st.integers() | st.floats()
steps = st.none() | numbers | st.text(max_size=3)
acts = st.tuples(
    st.sampled_from(["observe"] * 8 + ["attempt", "changed", "keyframe", "restart"]),
    steps,
    reports,
)


@settings(max_examples=150)
@given(script=st.lists(acts, max_size=30))
def test_whatever_is_reported_nothing_is_raised(
    script: list[tuple[str, Any, dict[str, Any]]],
) -> None:
    """Reports of any shape, retries, checkpoints and restarts in any order."""
    monitor = Monitor(POLICY)
    for act, step, report in script:
        if act == "observe":
            assert isinstance(monitor.observe(step, report), Verdict)
        elif act == "keyframe":
            monitor.keyframe()
        elif act == "restart":
            stored = json.dumps(monitor.state(), allow_nan=False)
            monitor = Monitor(POLICY, notices=monitor.notices)
            monitor.restore(json.loads(stored))
        else:
            start = step if isinstance(step, int) else 0
            monitor.begin_attempt(start, config_changed=act == "changed")
        json.dumps(monitor.record().metadata(), allow_nan=False)
    topics = monitor.notices.messages
    assert not [t for t in topics if t.startswith(("rule:", "state", "report:"))]


@settings(max_examples=100)
@given(rows=st.lists(reports, max_size=20))
def test_a_verdict_to_stop_stays(rows: list[dict[str, Any]]) -> None:
    """The first one is returned for every later report."""
    monitor = Monitor(POLICY)
    first: Verdict | None = None
    for step, row in enumerate(rows):
        verdict = monitor.observe(step, row)
        assert first is None or verdict is first
        first = verdict if verdict.stop else first


@settings(max_examples=100)
@given(
    rows=st.lists(reports, max_size=10),
    path=st.lists(st.integers(0, 20), min_size=1, max_size=4),
    value=json_values,
)
def test_a_state_damaged_anywhere_never_stops_the_judging(
    rows: list[dict[str, Any]], path: list[int], value: Any
) -> None:
    """Any value put into any place of a stored state."""
    saved = Monitor(POLICY)
    for step, row in enumerate(rows):
        saved.observe(step, row)
    saved.keyframe()
    state = json.loads(json.dumps(saved.state(), allow_nan=False))
    _damage(state, path, value)
    monitor = Monitor(POLICY)
    monitor.restore(state)
    monitor.begin_attempt(5)
    for step, row in enumerate(rows, start=5):
        monitor.observe(step, row)
    assert StopRecord.from_metadata(monitor.record().metadata()) is not None


def _damage(state: Any, path: list[int], value: Any) -> None:
    """Walk into nested containers along ``path`` and replace what lies there."""
    place = state
    for i, turn in enumerate(path):
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        if not keys:
            return
        key = keys[turn % len(keys)]
        inner = place[key]
        if i == len(path) - 1 or not isinstance(inner, (dict, list)):
            place[key] = value
            return
        place = inner
