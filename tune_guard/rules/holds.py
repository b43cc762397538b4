"""Why a healthy trial may look sick: what keeps a trigger from cutting."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, ClassVar

from tune_guard.observation import Observation
from tune_guard.rules.base import Context
from tune_guard.rules.windows import budget_readings


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """Base of every hold: stateless, judged only once its rule has triggered."""

    id: ClassVar[str]

    def stands(self, observation: Observation, context: Context) -> bool:
        """Return whether the trigger must not cut now."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True, kw_only=True)
class RisingAgain(Hold):
    """Stands while the metric gets better: what recovers is not lost.

    Its level in the newest quarter of the trial lies above that of either
    quarter before. Too short a history to say so holds as well.
    """

    id: ClassVar[str] = "rising"

    def stands(self, observation: Observation, context: Context) -> bool:  # noqa: ARG002
        """Return whether the newest quarter is the better one."""
        if isinstance(context, LossLevels):
            return False
        quarters = context.curve.quarters()
        return not quarters or quarters[3] > min(quarters[1:3])


@dataclass(frozen=True, slots=True, kw_only=True)
class RareReward(Hold):
    """Stands on rewards that come in rare jumps: between two, nothing moves.

    The middle half of the newer half of the history has one and the same level,
    and the best reading lies more than ``jump_ratio`` of its size above it.

    Args:
        jump_ratio: Share of the larger of the level's and the first reading's
            size that makes a jump.
    """

    id: ClassVar[str] = "rare_reward"
    jump_ratio: float = 0.01

    def stands(self, observation: Observation, context: Context) -> bool:  # noqa: ARG002
        """Return whether the metric jumps from a level that does not move."""
        curve = context.curve
        quarters = curve.quarters()
        if isinstance(context, LossLevels) or not quarters or curve.best is None:
            return False
        newer = sorted(curve.middles[len(curve.middles) // 2 :])
        if newer[len(newer) // 4] != newer[3 * len(newer) // 4]:
            return False
        size = max(abs(quarters[3]), abs(curve.early[0]))
        return curve.best - quarters[3] > self.jump_ratio * size


@dataclass(frozen=True, slots=True, kw_only=True)
class NothingYet(Hold):
    """Stands while the level is exactly 0: a reward that was not found yet."""

    id: ClassVar[str] = "nothing_yet"

    def stands(self, observation: Observation, context: Context) -> bool:  # noqa: ARG002
        """Return whether the metric lies at 0 in the newest quarter of the trial."""
        quarters = context.curve.quarters()
        return not quarters or quarters[3] == 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TooEarly(Hold):
    """Stands until a share of the budget has been seen.

    Args:
        budget_ratio: That share, of the readings that a full trial gives.
    """

    id: ClassVar[str] = "too_early"
    budget_ratio: float = 0.2

    def stands(self, observation: Observation, context: Context) -> bool:  # noqa: ARG002
        """Return whether fewer readings than the share have been seen."""
        return context.curve.count < self.budget_ratio * budget_readings(context)


@dataclass(frozen=True, slots=True, kw_only=True)
class LossLevels(Context):
    """A context that also holds the levels of a loss that has just risen.

    Args:
        start: Its level at the start.

        lowest: The lowest level that it held since.

        risen: The level that it has risen to.
    """

    start: float
    lowest: float
    risen: float

    @classmethod
    def of(cls, context: Context, **levels: Any) -> LossLevels:
        """Return ``context`` with the levels beside it."""
        names = (f.name for f in dataclasses.fields(Context))
        return cls(**{name: getattr(context, name) for name in names}, **levels)


@dataclass(frozen=True, slots=True, kw_only=True)
class GainKept(Hold):
    """Stands while a loss that rose has kept most of what it had gained.

    A model that fits its data takes the loss from 1 to 0.000001; a bounce to
    0.0001 is a hundredfold rise and no harm.

    Args:
        gain_ratio: Share of the fall from its start to its lowest level that the
            loss must have given back for the hold to end.
    """

    id: ClassVar[str] = "gain_kept"
    gain_ratio: float = 0.5

    def stands(self, observation: Observation, context: Context) -> bool:  # noqa: ARG002
        """Return whether less than the share was given back."""
        if not isinstance(context, LossLevels):
            return False
        gain = context.start - context.lowest
        return context.risen - context.lowest < self.gain_ratio * gain
