"""A level that a trial once held and can no longer reach."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tune_guard.curve import Curve
from tune_guard.observation import Observation
from tune_guard.rules.base import Context, Detector, Rule
from tune_guard.rules.holds import Hold, RareReward, RisingAgain, TooEarly
from tune_guard.rules.progress_holds import check_holds, first_standing
from tune_guard.rules.windows import buckets, stretch
from tune_guard.verdict import Blame, Finding, Tier


@dataclass(frozen=True, slots=True, kw_only=True)
class Relapse(Rule):
    """Stop a trial that has lost a level it once held, beyond the reach of noise.

    The level held is the best median of five readings in a row. It is out of
    reach when even a reading that beats the best recent one by ``margin`` times
    the recent noise would not come up to it, where the noise is what the best
    recent reading lies above the middle one. This needs no model of the noise,
    and a metric that still sets new levels cannot meet it.

    Recent means one of two windows: ``long_ratio`` of the budget; or
    ``short_ratio``, where the trial had learned clearly: its gain from the start
    to the level held is at least ``clear_gain`` times the noise.

    Args:
        long_ratio: Share of the budget of the long window on a noisy stream; a
            third of it on a steady one (:mod:`tune_guard.rules.windows`).

        short_ratio: Share of the budget of the short window.

        margin: By how many times the noise the level must be out of reach.

        clear_gain: How many times the noise the gain must be, for the short
            window to count.

        holds: What may keep the rule from cutting; the first that stands is
            named in the warning.

    Raises:
        ConfigError: If a value cannot be meant.

    Example:
        >>> from tune_guard import Monitor, Policy
        >>> rules = (Relapse(),)
        >>> policy = Policy(metric="acc", mode="max", rules=rules, budget_steps=100)
        >>> monitor = Monitor(policy)
        >>> lost = [0.01 * i for i in range(50)] + [0.1] * 40
        >>> stops = [monitor.observe(i, {"acc": x}).stop for i, x in enumerate(lost)]
        >>> stops.index(True)
        59
    """

    id: ClassVar[str] = "relapse"
    tier: ClassVar[Tier] = Tier.PROGRESS
    blame: ClassVar[Blame] = Blame.CONFIG

    long_ratio: float = 0.25
    short_ratio: float = 0.05
    margin: float = 2.0
    clear_gain: float = 32.0
    holds: tuple[Hold, ...] = (TooEarly(), RisingAgain(), RareReward())

    def __post_init__(self) -> None:
        for name in ("long_ratio", "short_ratio"):
            self.require_number(name, 0.0, "0.1 is a tenth of the budget.")
        self.require_number("margin", 0.0, "0 takes the best recent reading as it is.")
        self.require_number("clear_gain", 0.0, "0 lets every gain count as clear.")
        object.__setattr__(self, "holds", check_holds(self.id, self.holds))

    def start(self, context: Context) -> Detector:
        """Return a fresh detector for one trial."""
        return _RelapseDetector(self, context)


class _RelapseDetector(Detector):
    __slots__ = ("warned",)

    def __init__(self, rule: Relapse, context: Context) -> None:
        super().__init__(rule, context)
        self.warned = False

    def update(self, observation: Observation) -> Finding | None:
        curve = self.context.curve
        held, last = curve.held, curve.last
        if observation.metric is None or curve.pending or held is None or last is None:
            return None
        if last >= held:
            self.warned = False
            return None
        lost = self._lost(curve, held)
        return None if lost is None else self._found(observation, held, lost)

    def _lost(self, curve: Curve, held: float) -> float | None:
        """Return the best recent reading when the level held is out of its reach."""
        rule, context = self.rule, self.context
        window = buckets(context, rule.short_ratio)
        if window:
            top = curve.top(window)
            noise = top - curve.middle(window)
            gain = held - (held if curve.start is None else curve.start)
            clear = gain >= rule.clear_gain * noise
            if clear and top + rule.margin * noise < held:
                return top
            if top >= held:
                return None
        window = buckets(context, rule.long_ratio * stretch(context))
        if window:
            top = curve.top(window)
            noise = top - curve.middle(window)
            if top + rule.margin * noise < held:
                return top
        return None

    def _found(
        self, observation: Observation, held: float, top: float
    ) -> Finding | None:
        context = self.context
        holds = first_standing(self.rule.holds, observation, context)
        if holds and self.warned:
            return None
        self.warned = bool(holds)
        value, level = context.sign * top, context.sign * held
        key = context.name_of("metric")
        return self.finding(
            observation,
            metric=key,
            value=value,
            threshold=level,
            message=(
                f"{key} once held {level:.6g} and no longer comes near it: its best"
                f" recent reading up to step {observation.step} is {value:.6g}. Lower"
                " the learning rate or its later part, or keep the best checkpoint and"
                " train for fewer steps."
            ),
            holds=holds,
        )
