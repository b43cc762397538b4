"""Why a metric that looks lost may be healthy: holds of the rules on its curve."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tune_guard.observation import Observation
from tune_guard.rules.base import Context
from tune_guard.rules.holding import Evidence, check_not_negative
from tune_guard.rules.holds import Hold
from tune_guard.rules.windows import NOISY, steady_by_name, stretch

_PERCENT = 100.0
_RECENT = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class LossLevels(Evidence):
    """A context that also holds the levels of a loss that has just risen.

    Args:
        start: Its level at the start.

        lowest: The lowest level that it held since.

        risen: The level that it has risen to.

        readings: Values of it so far.

        in_row: Values in a row, up to now, that were as high.

        came_back_in_row: Most values in a row that were as high and came back.

        beside_metric: Whether the metric is another stream than this loss.
    """

    start: float
    lowest: float
    risen: float
    readings: int
    in_row: int
    came_back_in_row: int
    beside_metric: bool


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


@dataclass(frozen=True, slots=True, kw_only=True)
class TooEarly(Hold):
    """Stands in the first part of a trial, where a loss that overshot comes back.

    One that has been too high for most of the trial's life does not come back.

    Args:
        budget_ratio: Share of the budget that it lasts.

        readings: Values of the loss that it lasts where no budget is known.

        in_row: High values in a row that end it at the earliest.

        in_row_ratio: Share of all values so far that must be high, in a row up to
            now, to end it.

    Source: of 252 recorded tiny trainings, 17 whose loss ran away within the first
        eighth came back and set their best later, six of them among the best 30%
        of their kind; past a fifth, four came back, none of these among the best.
        Ending it for a loss that was high for half of its life cuts one more trial
        before its best, none among the best 30%.
    """

    id: ClassVar[str] = "too_early"
    budget_ratio: float = 0.2
    readings: int = 200
    in_row: int = 10
    in_row_ratio: float = 0.5

    def __post_init__(self) -> None:
        for name in ("budget_ratio", "readings", "in_row", "in_row_ratio"):
            check_not_negative(self, name)

    def stands(self, observation: Observation, context: Context) -> bool:
        """Return whether the first part still lasts."""
        if isinstance(context, LossLevels):
            readings = context.readings
            if context.in_row >= max(self.in_row, self.in_row_ratio * readings):
                return False
        elif stretch(context) == NOISY:
            return False
        else:
            readings = context.curve.count
        if context.budget_steps is None:
            return readings < self.readings
        return observation.step < self.budget_ratio * context.budget_steps


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

    def __post_init__(self) -> None:
        check_not_negative(self, "gain_ratio")

    def stands(self, observation: Observation, context: Context) -> bool:  # noqa: ARG002
        """Return whether less than the share was given back."""
        if not isinstance(context, LossLevels):
            return False
        gain = context.start - context.lowest
        return context.risen - context.lowest < self.gain_ratio * gain


@dataclass(frozen=True, slots=True, kw_only=True)
class CameBack(Hold):
    """Stands while a loss was as high before for about as long, and came back.

    A loss around 0, of an actor or of a critic, has no ratio: it lies over any
    multiple of its median time and again. So does one with heavy tails. How long
    it stays there tells it from one that runs away.

    Args:
        factor: Times the longest such run that came back which the present one
            must exceed for the hold to end.

    Source: of 5,860 recorded trials it spares none that ``divergence`` would cut.
        Of 20 made-up losses each of 1,000 independent readings about 0, about 0.3
        times their spread, or log-normal with a sigma of 1.5, all were cut; with
        it 0, 1 and 0 are.
    """

    id: ClassVar[str] = "came_back"
    factor: float = 2.0

    def __post_init__(self) -> None:
        check_not_negative(self, "factor")

    def stands(self, observation: Observation, context: Context) -> bool:  # noqa: ARG002
        """Return whether such a run was seen to end."""
        if not isinstance(context, LossLevels):
            return False
        return context.in_row <= self.factor * context.came_back_in_row


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricKept(Hold):
    """Stands while the metric beside the loss still reaches its best level.

    What matters is the metric. In reinforcement learning a loss grows with the
    rewards that the policy finds, one near 0 swings by many times its size, and a
    harder stage of a curriculum raises it: none of these is harm. The metric must
    be reported with the loss, and one of its last five readings must come near the
    best level that it held, or beat it where it never left its start.

    Args:
        gain_ratio: Share of the way from its start to the best level that it held
            which the metric may have given back.

    Source: of 5,860 recorded trials it spares none that ``divergence`` would cut.
    """

    id: ClassVar[str] = "metric_kept"
    gain_ratio: float = 0.2

    def __post_init__(self) -> None:
        check_not_negative(self, "gain_ratio")

    def stands(self, observation: Observation, context: Context) -> bool:
        """Return whether the metric shows that nothing is lost."""
        if not isinstance(context, LossLevels) or not context.beside_metric:
            return False
        curve = context.curve
        start, held, last = curve.start, curve.held, curve.last
        if observation.metric is None or start is None or held is None or last is None:
            return False
        recent = max(last, curve.top(-(-_RECENT // curve.width)))
        return recent > held or recent - start > (1.0 - self.gain_ratio) * (
            held - start
        )
