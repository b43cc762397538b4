"""Placeholder of the rule non_finite until its module lands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tune_guard.observation import Observation
from tune_guard.rules.base import Context, Detector, Rule
from tune_guard.verdict import Blame, Finding, Tier


@dataclass(frozen=True, slots=True, kw_only=True)
class NonFinite(Rule):
    """non_finite."""

    id: ClassVar[str] = "non_finite"
    tier: ClassVar[Tier] = Tier.FATAL
    blame: ClassVar[Blame] = Blame.CONFIG


    def start(self, context: Context) -> Detector:
        return _Detector(self, context)


class _Detector(Detector):
    __slots__ = ()

    def update(self, observation: Observation) -> Finding | None:
        return None
