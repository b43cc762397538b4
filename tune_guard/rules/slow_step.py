"""Placeholder of the rule slow_step until its module lands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tune_guard.observation import Observation
from tune_guard.rules.base import Context, Detector, Rule
from tune_guard.verdict import Blame, Finding, Tier


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowStep(Rule):
    """slow_step."""

    id: ClassVar[str] = "slow_step"
    tier: ClassVar[Tier] = Tier.FATAL
    blame: ClassVar[Blame] = Blame.INFRASTRUCTURE


    def start(self, context: Context) -> Detector:
        return _Detector(self, context)


class _Detector(Detector):
    __slots__ = ()

    def update(self, observation: Observation) -> Finding | None:
        return None
