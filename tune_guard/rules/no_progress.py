"""A trial that never left the level it started from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tune_guard.observation import Observation
from tune_guard.rules.base import Context, Detector, Rule
from tune_guard.rules.curve_holds import (
    NearCeiling,
    NothingYet,
    RateRamp,
    RisingAgain,
)
from tune_guard.rules.holding import check_holds, first_standing
from tune_guard.rules.holds import Hold
from tune_guard.rules.windows import buckets
from tune_guard.verdict import Blame, Finding, Tier

_LEAST_HISTORY = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class NoProgress(Rule):
    """Stop a trial that is stuck at the trivial level: no gain ever, and flat now.

    Fires when the best reading is no better than the first one by more than
    ``tolerance`` of the metric's size, and the metric moves by no more than that
    over the last ``window_ratio`` of the budget. A classifier that answers one
    class, a policy that always falls at once.

    Args:
        tolerance: Share of the metric's size (the larger of the first reading's
            and the present level's) that counts as no movement.

        window_ratio: For which share of the budget it must be flat; at least 5
            readings, and there must be more than those.

        holds: What may keep the rule from cutting; the first that stands is
            named in the warning.

    Raises:
        ConfigError: If a value cannot be meant.

    Source: replay of 268 recorded sweeps (5,860 trials run to their end). This rule
        alone saves 1.2% of all reports, 2.9% on hyperparameter sets, and 46% of the
        reports of sick losses and accuracies; it cuts none of the best 30% (1,650
        trials) before its own best. A ``tolerance`` of 0.001 saves 32% of them.
        Without a known budget: 1.0% and 2.4% saved, none cut.

    Example:
        >>> from tune_guard import Monitor, Policy
        >>> rules = (NoProgress(),)
        >>> policy = Policy(metric="acc", mode="max", rules=rules, budget_steps=20)
        >>> monitor = Monitor(policy)
        >>> [monitor.observe(i, {"acc": 0.1}).stop for i in range(10)].index(True)
        9
    """

    id: ClassVar[str] = "no_progress"
    tier: ClassVar[Tier] = Tier.PROGRESS
    blame: ClassVar[Blame] = Blame.CONFIG

    tolerance: float = 0.003
    window_ratio: float = 0.1
    holds: tuple[Hold, ...] = (NothingYet(), RisingAgain(), NearCeiling(), RateRamp())

    def __post_init__(self) -> None:
        self.require_number("tolerance", 0.0, "0 means exactly no movement.")
        self.require_number("window_ratio", 0.0, "0.1 is a tenth of the budget.")
        object.__setattr__(self, "holds", check_holds(self.id, self.holds))

    def start(self, context: Context) -> Detector:
        """Return a fresh detector for one trial."""
        return _NoProgressDetector(self, context)


class _NoProgressDetector(Detector):
    __slots__ = ("warned",)

    def __init__(self, rule: NoProgress, context: Context) -> None:
        super().__init__(rule, context)
        self.warned = False

    def update(self, observation: Observation) -> Finding | None:
        curve = self.context.curve
        if observation.metric is None or curve.pending or curve.count < _LEAST_HISTORY:
            return None
        first, last, best = curve.early[0], curve.last, curve.best
        if last is None or best is None:
            return None
        # The last reading's size is near the level's whenever the trial is flat.
        rule = self.rule
        still = rule.tolerance * max(abs(first), abs(last))
        if best - first > still:
            self.warned = False
            return None
        window = buckets(self.context, rule.window_ratio)
        if not window or curve.top(window) - curve.low(window) > still:
            return None
        return self._found(observation, first, last)

    def _found(
        self, observation: Observation, first: float, last: float
    ) -> Finding | None:
        context = self.context
        holds = first_standing(self.rule.holds, observation, context)
        if holds and self.warned:
            return None
        self.warned = bool(holds)
        value, start = context.sign * last, context.sign * first
        key = context.name_of("metric")
        return self.finding(
            observation,
            metric=key,
            value=value,
            threshold=start,
            message=(
                f"{key} = {value:.6g} at step {observation.step} was never better than"
                f" at its start ({start:.6g} at step {context.curve.first_step}) and no"
                " longer moves. Change the learning rate, check the initialisation, or"
                " look for inputs that saturate the model."
            ),
            holds=holds,
        )
