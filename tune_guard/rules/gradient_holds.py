"""Why high gradient norms may be healthy: holds of the gradient explosion."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tune_guard.observation import Observation
from tune_guard.rules.base import Context
from tune_guard.rules.holding import Evidence, check_not_negative
from tune_guard.rules.holds import Hold


@dataclass(frozen=True, slots=True, kw_only=True)
class Norms(Evidence):
    """A context that also holds what the rule has seen of the gradients.

    Args:
        norm: The newest gradient norm; ``high_water`` is the highest accepted.

        readings: Norms seen so far.

        give_back: Share of the loss's gain so far that is lost again; None when
            no loss was reported.
    """

    norm: float
    high_water: float
    readings: int
    give_back: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlySteps(Hold):
    """Stands in the first steps, where norms swing and recover.

    It ends after ``readings`` norms, or a fifth of the budget where that comes
    first, and not before three times the length of a learning-rate warm-up: at its end
    the rate is highest and norms overshoot.
    """

    id: ClassVar[str] = "early_steps"
    readings: int = 100

    def __post_init__(self) -> None:
        check_not_negative(self, "readings")

    def stands(self, observation: Observation, context: Context) -> bool:
        """Return whether the training is too young to judge its norms."""
        if not isinstance(context, Norms):
            return False
        schedule, step = context.schedule, observation.step
        if step - (schedule.first_step or 0) < 3 * schedule.warmup_steps:
            return True
        budget = context.budget_steps
        few = context.readings < self.readings
        return few and (budget is None or step < 0.2 * budget)


@dataclass(frozen=True, slots=True, kw_only=True)
class BelowHighWater(Hold):
    """Stands while the norm is at most ``factor`` times the highest accepted one.

    A model that fits its data closely has tiny norms; their growth back to what
    they once were is no explosion.
    """

    id: ClassVar[str] = "below_high_water"
    factor: float = 3.0

    def __post_init__(self) -> None:
        check_not_negative(self, "factor")

    def stands(self, observation: Observation, context: Context) -> bool:  # noqa: ARG002
        """Return whether such a norm was healthy before."""
        if not isinstance(context, Norms):
            return False
        return context.norm <= self.factor * context.high_water


@dataclass(frozen=True, slots=True, kw_only=True)
class LossKept(Hold):
    """Stands while the loss has not given back ``give_back`` of its gain.

    Norms may rise tenfold for good and training go on. Without a reported loss,
    the metric is taken; without both, nothing is known and the hold stands.
    """

    id: ClassVar[str] = "loss_kept"
    give_back: float = 0.5

    def __post_init__(self) -> None:
        check_not_negative(self, "give_back")

    def stands(self, observation: Observation, context: Context) -> bool:  # noqa: ARG002
        """Return whether most of the gain is still there."""
        if not isinstance(context, Norms):
            return False
        return context.give_back is None or context.give_back < self.give_back
