"""Why a trial without gain may be healthy: holds of the plateau and the LR floor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tune_guard.observation import Observation
from tune_guard.rules.base import Context
from tune_guard.rules.forecast import trend
from tune_guard.rules.holding import Evidence, check_not_negative
from tune_guard.rules.holds import Hold


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress(Evidence):
    """A context that also holds what a progress rule has seen of its stream.

    Args:
        bad: Evaluations in a row without a gain.

        target: Score that the trial is to reach, or None.
    """

    bad: int = 0
    target: float | None = None

    def growth(self, step: int) -> float:
        """Return how many times as old as now the trial may get: 2 when unknown."""
        budget = self.budget_steps
        return 2.0 if budget is None else budget / (step + 1)

    def evaluations_since(self, step: int) -> float:
        """Return about how many evaluations there were since ``step``."""
        curve = self.curve
        span = curve.last_step - curve.first_step
        since = curve.last_step - step
        return since * (curve.count - 1) / span if span > 0 else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class NotLearned(Hold):
    """Stands while the trial has hardly left its start: a slow start is no plateau.

    A trial that never learns is a case for the rule ``no_progress``.

    Args:
        gain_ratio: Share of the first reading's size that the best must have
            gained; or three times the noise, where that is more.
    """

    id: ClassVar[str] = "not_learned"
    gain_ratio: float = 0.05

    def __post_init__(self) -> None:
        check_not_negative(self, "gain_ratio")

    def stands(self, observation: Observation, context: Context) -> bool:  # noqa: ARG002
        """Return whether the best reading is no better than a slow start."""
        first, best = context.curve.first, context.curve.best
        if first is None or best is None:
            return True
        seen = trend(context.curve)
        noise = 0.0 if seen is None else seen.noise
        return best - first <= max(self.gain_ratio * abs(first), 3 * noise)


@dataclass(frozen=True, slots=True, kw_only=True)
class RateFalling(Hold):
    """Stands while the learning rate falls or has just fallen.

    A decay releases gain, so it is no time to judge. Only reported rates count:
    a drop that is still to come is not foreseen, and without rates the hold
    never stands.

    Args:
        evaluations: For how many evaluations after a fall it stands.

        spent_ratio: At this share of the peak or less, the decay is spent and
            the hold ends.
    """

    id: ClassVar[str] = "lr_falling"
    evaluations: int = 10
    spent_ratio: float = 0.01

    def __post_init__(self) -> None:
        check_not_negative(self, "evaluations")
        check_not_negative(self, "spent_ratio")

    def stands(self, observation: Observation, context: Context) -> bool:  # noqa: ARG002
        """Return whether the rate fell within the last evaluations."""
        schedule = context.schedule
        fell, peak = schedule.fell_step, schedule.peak
        if not isinstance(context, Progress) or fell is None or peak is None:
            return False
        if schedule.level <= self.spent_ratio * peak:
            return False
        return context.evaluations_since(fell) < self.evaluations


@dataclass(frozen=True, slots=True, kw_only=True)
class StillGaining(Hold):
    """Stands while a forecast promises a gain by the end.

    The forecast is the optimistic bound of the slope of the scores over the
    logarithm of time (:mod:`tune_guard.rules.forecast`), carried to the budget's
    end, or to twice the trial's age when no budget is known.

    Args:
        gain_ratio: Share of the level that counts as a gain; or the noise, where
            that is more.
    """

    id: ClassVar[str] = "still_gaining"
    gain_ratio: float = 0.01

    def __post_init__(self) -> None:
        check_not_negative(self, "gain_ratio")

    def stands(self, observation: Observation, context: Context) -> bool:
        """Return whether the optimistic gain is worth the wait."""
        if not isinstance(context, Progress):
            return False
        seen = trend(context.curve)
        if seen is None:
            return False
        needed = max(self.gain_ratio * abs(seen.level), seen.noise)
        return seen.gain(context.growth(observation.step)) >= needed > 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelRising(Hold):
    """Stands while the level rises, though no single reading is a new best.

    The level of the newest quarter of the trial lies above that of one of the
    two quarters before. Too short a history to say so holds as well.
    """

    id: ClassVar[str] = "level_rising"

    def stands(self, observation: Observation, context: Context) -> bool:  # noqa: ARG002
        """Return whether the newest quarter is not the lowest of three."""
        quarters = context.curve.quarters()
        return not quarters or quarters[3] > min(quarters[1:3])


@dataclass(frozen=True, slots=True, kw_only=True)
class Young(Hold):
    """Stands while the dry spell is short for the trial's age.

    Training gains per *doubling* of its length, so what counts as long grows
    with it: patience is at least ``age_ratio`` of the evaluations so far.

    Args:
        age_ratio: Share of the evaluations so far; 0 switches the hold off.
    """

    id: ClassVar[str] = "young"
    age_ratio: float = 0.25

    def __post_init__(self) -> None:
        check_not_negative(self, "age_ratio")

    def stands(self, observation: Observation, context: Context) -> bool:  # noqa: ARG002
        """Return whether the dry spell is within the share."""
        if not isinstance(context, Progress):
            return False
        return context.bad < self.age_ratio * context.curve.count


@dataclass(frozen=True, slots=True, kw_only=True)
class ReachesTarget(Hold):
    """Stands while a forecast reaches the target by the end.

    The same forecast as :class:`StillGaining`, and one standard deviation of the
    noise. Never stands without a target.
    """

    id: ClassVar[str] = "reaches_target"

    def stands(self, observation: Observation, context: Context) -> bool:
        """Return whether the optimistic end lies at the target or beyond."""
        if not isinstance(context, Progress) or context.target is None:
            return False
        seen = trend(context.curve)
        if seen is None:
            return False
        gain = seen.gain(context.growth(observation.step))
        return seen.level + gain + seen.noise >= context.target
