"""What a rule found and what a monitor decided: plain values, no behaviour."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Level(enum.IntEnum):
    """How bad it is. The highest level among the findings is the verdict's."""

    HEALTHY = 0
    WARN = 1
    STOP = 2


class Tier(enum.IntEnum):
    """Which rules speak first, and which are muted during warm-up.

    ``FATAL`` rules are always armed. ``STABILITY`` and ``PROGRESS`` rules watch
    during warm-up but cannot cut.
    """

    PROGRESS = 0
    STABILITY = 1
    FATAL = 2


class Blame(enum.StrEnum):
    """Whose fault a stop is; decides what the search algorithm is told."""

    CONFIG = "config"
    INFRASTRUCTURE = "infrastructure"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One rule's trigger at one step.

    Args:
        rule: Id of the rule, such as ``non_finite``.

        step: Step for which it holds.

        tier: Tier of the rule.

        blame: Whose fault it is.

        metric: Key of the report that the numbers come from.

        value: The number that crossed; NaN and infinities as they are.

        threshold: What it crossed, in the unit of ``value``; None where the
            trigger is no threshold.

        message: One sentence: what was seen, against what, over which steps,
            and what to try.

        level: ``STOP``, or ``WARN`` while a hold or warm-up stands against it.

        holds: Names of the holds that kept it from cutting.
    """

    rule: str
    step: int
    tier: Tier
    blame: Blame
    metric: str
    value: float
    threshold: float | None
    message: str
    level: Level = Level.STOP
    holds: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a monitor decided after one report.

    Args:
        level: The highest level among ``findings``; healthy when there are none.

        findings: All triggers of this step, the deciding one first.

    Example:
        >>> HEALTHY.stop, HEALTHY.reason
        (False, '')
    """

    level: Level = Level.HEALTHY
    findings: tuple[Finding, ...] = ()

    @property
    def stop(self) -> bool:
        """Whether the trial is to be cut."""
        return self.level is Level.STOP

    @property
    def cause(self) -> Finding | None:
        """The finding that decided, or None when the trial is healthy."""
        return self.findings[0] if self.findings else None

    @property
    def reason(self) -> str:
        """Id of the rule that decided, or an empty text."""
        return self.findings[0].rule if self.findings else ""

    @property
    def step(self) -> int:
        """Step for which the verdict holds, or -1 when the trial is healthy."""
        return self.findings[0].step if self.findings else -1

    @property
    def blame(self) -> Blame | None:
        """Whose fault it is, or None when the trial is healthy."""
        return self.findings[0].blame if self.findings else None

    @property
    def message(self) -> str:
        """The deciding finding's sentence, or an empty text."""
        return self.findings[0].message if self.findings else ""


HEALTHY = Verdict()


def decide(findings: list[Finding]) -> Verdict:
    """Order findings by level, then tier, and make the verdict of them."""
    if not findings:
        return HEALTHY
    findings.sort(key=lambda found: (found.level, found.tier), reverse=True)
    return Verdict(findings[0].level, tuple(findings))
