"""Why a loss that has risen may be healthy: holds of ``divergence``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tune_guard.observation import Observation
from tune_guard.rules.base import Context
from tune_guard.rules.holding import Evidence, check_not_negative
from tune_guard.rules.holds import Hold
from tune_guard.rules.windows import NOISY, stretch

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
