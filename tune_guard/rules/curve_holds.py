"""Why a metric that looks lost may be healthy: holds of the rules on its curve."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tune_guard.observation import Observation
from tune_guard.rules.base import Context
from tune_guard.rules.holding import check_not_negative
from tune_guard.rules.holds import Hold
from tune_guard.rules.loss_holds import LossLevels
from tune_guard.rules.windows import NOISY, steady_by_name, stretch

_PERCENT = 100.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RisingAgain(Hold):
    """Stands while the metric gets better: what recovers is not lost.

    Its level in the newest quarter of the trial lies above that of the quarter
    before. Too short a history to say so holds as well.
    """

    id: ClassVar[str] = "rising"

    def stands(self, observation: Observation, context: Context) -> bool:  # noqa: ARG002
        """Return whether the newest quarter is the better one."""
        if isinstance(context, LossLevels):
            return False
        quarters = context.curve.quarters()
        return not quarters or quarters[3] > quarters[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class RareReward(Hold):
    """Stands on rewards that come in rare jumps: between two, nothing moves.

    The middle half of the newer half of the history has one and the same level,
    and the best reading lies more than ``jump_ratio`` of its size above it. Only
    on noisy metrics: an accuracy that collapsed to one class is as still.

    Args:
        jump_ratio: Share of the larger of the level's and the first reading's
            size that makes a jump.
    """

    id: ClassVar[str] = "rare_reward"
    jump_ratio: float = 0.01

    def __post_init__(self) -> None:
        check_not_negative(self, "jump_ratio")

    def stands(self, observation: Observation, context: Context) -> bool:  # noqa: ARG002
        """Return whether the metric jumps from a level that does not move."""
        curve = context.curve
        quarters = curve.quarters()
        if isinstance(context, LossLevels) or not quarters or curve.best is None:
            return False
        if stretch(context) != NOISY:
            return False
        newer = sorted(curve.levels[len(curve.levels) // 2 :])
        if newer[len(newer) // 4] != newer[3 * len(newer) // 4]:
            return False
        size = max(abs(quarters[3]), abs(curve.early[0]))
        return curve.best - quarters[3] > self.jump_ratio * size


@dataclass(frozen=True, slots=True, kw_only=True)
class RateRamp(Hold):
    """Stands while the learning rate ramps up, and for twice as long after it.

    The rate is highest at the ramp's end, where a loss overshoots and comes back.
    Only reported rates count.
    """

    id: ClassVar[str] = "lr_ramp"

    def stands(self, observation: Observation, context: Context) -> bool:
        """Return whether the ramp, or the time after it, still lasts."""
        schedule = context.schedule
        if schedule.first_step is None:
            return False
        return observation.step < schedule.first_step + 3 * schedule.warmup_steps


@dataclass(frozen=True, slots=True, kw_only=True)
class RateRestarted(Hold):
    """Stands while the learning rate is up again: a warm restart costs a level.

    A schedule that restarts or cycles gives up what it held and comes back to it,
    mostly to better, when the rate is low again. Only reported rates count.

    Args:
        factor: Times the lowest rate to which it has fallen that the rate must
            exceed.
    """

    id: ClassVar[str] = "lr_restart"
    factor: float = 2.0

    def __post_init__(self) -> None:
        check_not_negative(self, "factor")

    def stands(self, observation: Observation, context: Context) -> bool:  # noqa: ARG002
        """Return whether the rate has risen since it was lowest."""
        last, trough = context.schedule.last, context.schedule.trough
        return last is not None and trough is not None and last > self.factor * trough


@dataclass(frozen=True, slots=True, kw_only=True)
class NothingYet(Hold):
    """Stands while the level is exactly 0: a reward that was not found yet."""

    id: ClassVar[str] = "nothing_yet"

    def stands(self, observation: Observation, context: Context) -> bool:  # noqa: ARG002
        """Return whether the metric lies at 0 in the newest quarter of the trial."""
        quarters = context.curve.quarters()
        return not quarters or quarters[3] == 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class NearCeiling(Hold):
    """Stands near the highest score that there is: what is solved has no way up.

    A classifier that is right from its first evaluation on, 0.991 and then 0.993,
    has not moved by a thousandth. The ceiling is 1, or 100 for percentages. At the
    ceiling itself the hold stands by that alone; below it, the score must move, as
    the answer of a model that names one class never does, however often right.
    A reward's ceiling is unknown, but one above 0 that lies still at its best is
    there: 1,000 of 1,000 steps upright, or every episode a success.

    Args:
        gap_ratio: Share of the ceiling that a score may lie below it.

    Source: of 5,860 recorded trials it spares 12 that ``no_progress`` would cut: 11
        at the most that their task gives, and one stuck at a reward of 100.
    """

    id: ClassVar[str] = "near_ceiling"
    gap_ratio: float = 0.1

    def __post_init__(self) -> None:
        check_not_negative(self, "gap_ratio")

    def stands(self, observation: Observation, context: Context) -> bool:  # noqa: ARG002
        """Return whether the metric is a score that lies near its ceiling."""
        best, quarters = context.curve.best, context.curve.quarters()
        if context.mode != "max" or not quarters or best is None:
            return False
        if steady_by_name(context.metric) is False:
            return best == quarters[3] > 0.0
        ceiling = 1.0 if best <= 1.0 else _PERCENT
        if best > ceiling or quarters[3] < (1.0 - self.gap_ratio) * ceiling:
            return False
        if best == ceiling == quarters[3]:
            return True
        levels = context.curve.levels
        newer = levels[3 * len(levels) // 4 :]
        return min(newer) < max(newer)
