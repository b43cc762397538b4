"""What keeps a finding from cutting beside its rule's own holds."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING

from tune_guard.verdict import Finding, Level, Tier

if TYPE_CHECKING:
    from tune_guard.policy import Policy

_NO_OBJECTION = frozenset({"action", "holdout"})


def tempered(
    found: Finding, policy: Policy, trial_id: str, *, warming: bool
) -> Finding:
    """Lower a finding to a warning where an action, warm-up or the holdout says so.

    Args:
        found: What a rule found.

        policy: What its rules may do.

        trial_id: Chooses the holdout.

        warming: Whether the step is one of warm-up.
    """
    if found.level is not Level.STOP:
        return found
    held = ""
    if policy.action(found.rule) == "warn":
        held = "action"
    elif found.tier is not Tier.FATAL and warming:
        held = "warmup"
    elif found.tier is not Tier.FATAL and is_held_out(policy, trial_id):
        held = "holdout"
    return replace(found, level=Level.WARN, holds=(held,)) if held else found


def is_held_out(policy: Policy, trial_id: str) -> bool:
    """Whether a trial runs on when condemned, to measure false kills."""
    if not policy.holdout:
        return False
    name = f"holdout:{trial_id}".encode(errors="replace")
    digest = hashlib.sha256(name).digest()
    return int.from_bytes(digest[:8]) / 2**64 < policy.holdout


def is_against(found: Finding) -> bool:
    """Whether the rule has cause to cut, also where it is not let."""
    return _NO_OBJECTION.issuperset(found.holds)


def spared_by(found: Finding) -> str:
    """Return ``rule@step:why`` where only an action or the holdout spared a trial."""
    spares = found.level is Level.WARN and found.holds and found.holds[0]
    return f"{found.rule}@{found.step}:{spares}" if spares in _NO_OBJECTION else ""
