"""Why a healthy trial may look sick: what keeps a trigger from cutting."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tune_guard.observation import Observation
from tune_guard.rules.base import Context


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """Base of every hold: stateless, judged only once its rule has triggered."""

    id: ClassVar[str]

    def stands(self, observation: Observation, context: Context) -> bool:
        """Return whether the trigger must not cut now."""
        raise NotImplementedError
