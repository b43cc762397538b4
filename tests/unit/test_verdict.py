from __future__ import annotations

import json
from typing import Any

from tune_guard.verdict import HEALTHY, Blame, Finding, Level, Tier, Verdict, decide


def finding(rule: str, tier: Tier, level: Level = Level.STOP) -> Finding:
    """Return a finding of a rule at step 3."""
    fields: dict[str, Any] = {"metric": "loss", "value": 2.0, "threshold": 1.0}
    return Finding(
        rule=rule,
        step=3,
        tier=tier,
        blame=Blame.CONFIG,
        message=f"{rule} fired",
        level=level,
        **fields,
    )


def test_nothing_found_is_healthy() -> None:
    """The one healthy verdict has no cause."""
    assert decide([]) is HEALTHY
    assert (HEALTHY.stop, HEALTHY.cause, HEALTHY.reason) == (False, None, "")
    assert (HEALTHY.step, HEALTHY.blame, HEALTHY.message) == (-1, None, "")


def test_the_highest_tier_decides() -> None:
    """Fatal before stability before progress, whatever their order."""
    found = [finding("p", Tier.PROGRESS), finding("f", Tier.FATAL)]
    verdict = decide([*found, finding("s", Tier.STABILITY)])
    assert [f.rule for f in verdict.findings] == ["f", "s", "p"]
    assert (verdict.reason, verdict.step, verdict.message) == ("f", 3, "f fired")


def test_the_level_comes_before_the_tier() -> None:
    """A stop of a low tier decides over a warning of a high one."""
    verdict = decide(
        [finding("f", Tier.FATAL, Level.WARN), finding("p", Tier.PROGRESS)]
    )
    assert (verdict.level, verdict.reason) == (Level.STOP, "p")


def test_among_equals_the_policys_order_decides() -> None:
    """Two rules of one tier: the first of the policy is named."""
    verdict = decide([finding("a", Tier.FATAL), finding("b", Tier.FATAL)])
    assert verdict.reason == "a"


def test_warnings_alone_do_not_stop() -> None:
    """A verdict may have a cause and still not cut."""
    verdict = decide([finding("p", Tier.PROGRESS, Level.WARN)])
    assert (verdict.stop, verdict.level, verdict.reason) == (False, Level.WARN, "p")


def test_verdicts_compare_by_value() -> None:
    """The same findings make the same verdict, in another process too."""
    one, two = decide([finding("a", Tier.FATAL)]), decide([finding("a", Tier.FATAL)])
    assert one == two
    assert len({one, two}) == 1
    assert one != Verdict()


def test_levels_tiers_and_blames_are_stored_as_plain_values() -> None:
    """They are written into JSON as they are."""
    stored = json.dumps([Level.STOP, Tier.FATAL, Blame.INFRASTRUCTURE])
    assert stored == '[2, 2, "infrastructure"]'
