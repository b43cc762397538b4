"""How near each rule came, and what held it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.evidence.support import RULES, Silent, long_stream
from tune_guard import Monitor, Policy
from tune_guard.evidence.gauges import SIGNS, gauges_of
from tune_guard.evidence.trace import Trace, stretches
from tune_guard.rules import GradientExplosion, NonFinite, Plateau
from tune_guard.rules.registry import builtin_rules
from tune_guard.verdict import Level


def traced(policy: Policy, reports: list[dict[str, Any]]) -> Trace:
    """Return the trace over all reports, or up to the stop."""
    trace = Trace(Monitor(policy, notices=Silent()))
    for step, report in enumerate(reports):
        if trace.observe(step, report).stop:
            break
    return trace


@pytest.mark.parametrize("rule_id", sorted(builtin_rules()))
def test_every_built_in_rule_has_numbers(rule_id: str) -> None:
    """Unless a single sign decides."""
    if rule_id in SIGNS:
        pytest.skip("a single sign decides")
    rules = [rule for rule in RULES if rule.id == rule_id]
    policy = Policy("loss", "min", rules=rules, actions={"*": "warn"})
    learned_and_lost = [{"loss": 1 / (i + 1) if i < 200 else 0.9} for i in range(400)]
    streams = [learned_and_lost, *map(long_stream, range(3))]
    found = [traced(policy, stream).rules[rule_id] for stream in streams]
    assert any(rule.gauges for rule in found)
    for rule in found:
        for points in rule.gauges.values():
            assert all(point.share >= 0.0 for point in points)
        for one in rule.fired:
            at = [
                p.share for ps in rule.gauges.values() for p in ps if p.step == one.last
            ]
            assert max(at) >= 1.0


@pytest.mark.parametrize("rule_id", ["plateau", "slow_step", "amp_scale_collapse"])
def test_a_counting_rule_fires_at_a_share_of_one(rule_id: str) -> None:
    """The number at the first trigger is the limit, and was below it before."""
    rules = [rule for rule in RULES if rule.id == rule_id]
    policy = Policy("score", "min", rules=rules, actions={"*": "warn"})
    rule = traced(policy, long_stream(0)).rules[rule_id]
    first = rule.fired[0].first
    before = [max(p.share for p in ps if p.step < first) for ps in rule.gauges.values()]
    at = [p.share for ps in rule.gauges.values() for p in ps if p.step == first]
    assert max(at) >= 1.0
    assert before[0] < 1.0


def test_a_near_miss_is_seen() -> None:
    """Eight of ten evaluations without a gain, at step 8."""
    policy = Policy("loss", "min", rules=(Plateau(patience=10, holds=()),))
    trace = traced(policy, [{"loss": 1.0}] * 9 + [{"loss": 0.5}] * 3)
    point = trace.rules["plateau"].closest()["without a gain"]
    assert (point.step, point.value, point.limit, point.share) == (8, 8.0, 10.0, 0.8)
    assert not trace.verdict.stop


def test_the_limit_moves_with_the_norm() -> None:
    """A norm is held against ten times its own median."""
    policy = Policy("loss", "min", rules=(GradientExplosion(),))
    trace = traced(policy, [{"loss": 1.0, "grad_norm": 2.0}] * 60)
    last = trace.rules["gradient_explosion"].gauges["norm"][-1]
    assert (last.value, last.limit) == (2.0, 20.0)


def test_holds_are_told_by_stretches() -> None:
    """Warm-up holds a plateau until it ends."""
    rules = (Plateau(patience=2, holds=()),)
    policy = Policy("loss", "min", rules=rules, actions={"*": "warn"})
    found = traced(policy, [{"loss": 1.0}] * 6).rules["plateau"].fired
    assert [tuple(one) for one in stretches(found)] == [
        (2, 5, Level.WARN, ("action",), 4)
    ]


def test_a_repeated_step_counts_once() -> None:
    """What is no observation leaves no point."""
    trace = Trace(
        Monitor(Policy("loss", "min", rules=(NonFinite(),)), notices=Silent())
    )
    for step in (0, 0, 1):
        trace.observe(step, {"loss": 1.0})
    assert trace.count == 2


def test_a_rule_of_another_package_tells_its_own_numbers() -> None:
    """Its detector may have ``gauges``; one that fails costs its numbers only."""

    class Foreign:
        rule = NonFinite()

        def gauges(self, observation: Any) -> Any:
            return [("count", 1.0, 2.0, 0.5)] if observation else 1 / 0

    detector: Any = Foreign()
    assert gauges_of(detector, True) == [("count", 1.0, 2.0, 0.5)]  # type: ignore[arg-type]
    assert gauges_of(detector, 0) == []  # type: ignore[arg-type]
