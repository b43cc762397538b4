"""What the property tests draw: curves, reports of any shape, and their judging."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.streams import INF, NAN
from tune_guard import Monitor, Policy
from tune_guard.observation import SIGNALS
from tune_guard.rules.base import Rule
from tune_guard.rules.registry import builtin_rules
from tune_guard.verdict import Finding

RULES: dict[str, Rule] = {
    rule_id: kind(**{"target": 0.01} if rule_id == "lr_floor" else {})
    for rule_id, kind in builtin_rules().items()
}
"""Every rule with its default parameters."""

any_float = st.floats(allow_nan=True, allow_infinity=True) | st.sampled_from(
    [NAN, INF, -INF, 0.0, -0.0, 5e-324, 1.7976931348623157e308, -1.7976931348623157e308]
)
eighths = st.integers(-800, 800).map(lambda n: n / 8)
"""Numbers whose sums, differences and doubles are exact."""

curves = st.lists(eighths, min_size=1, max_size=120)
rough_curves = st.lists(any_float, min_size=1, max_size=80)


@st.composite
def phased_curves(draw: st.DrawFn) -> list[float]:
    """Draw a positive curve of a few stretches, each falling, flat or rising."""
    curve, level = [], 64.0
    for _ in range(draw(st.integers(1, 5))):
        drift = draw(st.sampled_from([0.75, 0.9375, 1.0, 1.0625, 1.5]))
        jitter = draw(st.sampled_from([0.0, 0.03125, 0.25]))
        for sign in draw(
            st.lists(st.sampled_from([-1, 0, 1]), min_size=2, max_size=40)
        ):
            level = min(max(level * drift, 2.0**-20), 2.0**20)
            curve.append(level * (1.0 + sign * jitter))
    return curve


scalars = st.none() | st.booleans() | st.integers() | any_float | st.text(max_size=8)


def _nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    keys = st.text(max_size=5)
    lists = st.lists(inner, max_size=3)
    return scalars | lists | st.dictionaries(keys, inner, max_size=3)


json_values = _nested(_nested(scalars))
signal_keys = st.sampled_from([*SIGNALS, "score", " score", "a/b", "a", "b", "epoch"])
reports = st.dictionaries(signal_keys | st.text(max_size=5), json_values, max_size=8)


def monitor_of(*rules: Rule, **fields: Any) -> Monitor:
    """Return a monitor under rules that only warn, so that it sees every step."""
    policy = {"metric": "score", "mode": "min", "actions": {"*": "warn"}, **fields}
    return Monitor(Policy(rules=rules, **policy))


def found_by(monitor: Monitor, rows: list[dict[str, Any]]) -> list[Finding]:
    """Return all findings of a stream; a rule that failed in it fails the test."""
    verdicts = [monitor.observe(step, row) for step, row in enumerate(rows)]
    failed = [m for topic, m in monitor.notices.messages.items() if "rule:" in topic]
    assert failed == []
    return [found for verdict in verdicts for found in verdict.findings]


def cut_step(rule: Rule, curve: list[float], **fields: Any) -> float:
    """Return the step at which a rule cuts a curve of the metric, or infinity."""
    monitor = monitor_of(rule, **{"actions": {}, **fields})
    for step, value in enumerate(curve):
        if monitor.observe(step, {"score": value}).stop:
            return step
    return INF


def shown(findings: list[Finding]) -> list[tuple[str, int, tuple[str, ...]]]:
    """Return what does not depend on the unit of the numbers."""
    return [(found.rule, found.step, found.holds) for found in findings]
