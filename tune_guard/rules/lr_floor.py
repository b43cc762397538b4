"""A learning-rate schedule that has ended while the metric is short of its target."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import ClassVar

from tune_guard.observation import Observation
from tune_guard.rules.base import Context, Detector, Rule, portion
from tune_guard.rules.holding import check_holds, first_standing
from tune_guard.rules.holds import Hold
from tune_guard.rules.progress_holds import Progress, ReachesTarget
from tune_guard.verdict import Blame, Finding, Tier


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningRateFloor(Rule):
    """Stop a trial whose learning rate has run out short of its target.

    Counts results whose largest group learning rate lies at or under ``floor``,
    once it has been above it: a ramp that starts at 0 and a frozen group are no
    floor. Results during warm-up are not counted. The ``consecutive``-th in a
    row stops the trial if its best metric has not reached ``target``.

    Without ``floor``, the floor is where the schedule has visibly ended: the
    lowest level since the peak, at most half of it, held for at least
    ``consecutive`` results, a quarter of all, and twice as long as any level
    before. So neither a stair nor the last steps of a cosine are a floor.

    Without ``target`` the learning rate alone decides.

    Args:
        target: Value of the metric that a good trial reaches; in its mode.

        floor: Learning rate that counts as run out; None to find it.

        consecutive: Results in a row at the floor that stop the trial.

        holds: What may keep the rule from cutting.

    Raises:
        ConfigError: If a value cannot be meant, or neither ``target`` nor
            ``floor`` is given.

    Source: fairseq ends a run at ``--stop-min-lr`` likewise, by rate alone.

    Example:
        >>> from tune_guard import Monitor, Policy
        >>> rule = LearningRateFloor(target=0.9, floor=1e-5, consecutive=2)
        >>> monitor = Monitor(Policy(metric="accuracy", mode="max", rules=(rule,)))
        >>> rates = [1e-3, 1e-5, 1e-5]
        >>> reports = [{"accuracy": 0.5, "lr": lr} for lr in rates]
        >>> [monitor.observe(i, report).stop for i, report in enumerate(reports)]
        [False, False, True]
    """

    id: ClassVar[str] = "lr_floor"
    tier: ClassVar[Tier] = Tier.PROGRESS
    blame: ClassVar[Blame] = Blame.CONFIG
    needs: ClassVar[tuple[str, ...]] = ("lr",)

    target: float | None = None
    floor: float | None = None
    consecutive: int = 10
    holds: tuple[Hold, ...] = (ReachesTarget(),)

    def __post_init__(self) -> None:
        if self.target is not None:
            self.require_number("target", float("-inf"), "Use a value of the metric.")
        if self.floor is not None:
            self.require_number("floor", 0.0, "Leave it out to find the floor.")
        advice = "Give the value that a good trial reaches, or a `floor`."
        given = self.target is not None or self.floor is not None
        self.require(given, "target", "given where `floor` is not", advice)
        self.require_count("consecutive", 1, "1 stops at the first at the floor.")
        object.__setattr__(self, "holds", check_holds(self.id, self.holds))

    def start(self, context: Context) -> Detector:
        """Return a fresh detector for one trial."""
        return _FloorDetector(self, context)


class _FloorDetector(Detector):
    __slots__ = (
        "at_floor",
        "counted",
        "since",
        "was_above",
    )

    def __init__(self, rule: LearningRateFloor, context: Context) -> None:
        super().__init__(rule, context)
        self.was_above = False
        self.at_floor = 0
        self.since: int | None = None
        self.counted: int | None = None

    def update(self, observation: Observation) -> Finding | None:
        lr = observation.lr
        if lr is None or not isfinite(lr):
            return None
        if not self._has_ended(lr, observation) or not self._is_short():
            return None
        return self._found(lr, observation)

    def margin(self) -> float | None:
        return portion(self.at_floor, self.rule.consecutive)

    def _has_ended(self, lr: float, observation: Observation) -> bool:
        floor = self.rule.floor
        if floor is None:
            return self._has_settled(observation)
        if lr > floor:
            self.was_above, self.at_floor = True, 0
        elif self.was_above and not observation.warming:
            self._count(observation.step)
        consecutive: int = self.rule.consecutive
        return self.at_floor >= consecutive

    def _has_settled(self, observation: Observation) -> bool:
        schedule = self.context.schedule
        self.since, self.at_floor = schedule.level_step, schedule.level_count
        return not observation.warming and schedule.settled(self.rule.consecutive)

    def _count(self, step: int) -> None:
        """Count a step once, however often it reported its learning rate."""
        if self.at_floor == 0:
            self.since = step
        elif step == self.counted:
            return
        self.counted = step
        self.at_floor += 1

    def _is_short(self) -> bool:
        """Whether the best reading has not reached the target; unknown is no."""
        target, best = self.rule.target, self.context.curve.best
        if target is None:
            return True
        return best is not None and best < self.context.sign * target

    def _found(self, lr: float, observation: Observation) -> Finding:
        context, rule = self.context, self.rule
        key = context.name_of("lr")
        floor = context.schedule.level if rule.floor is None else rule.floor
        short = ""
        if rule.target is not None:
            best = context.sign * (context.curve.best or 0.0)
            short = f"; {context.metric} is {best:.6g} at best, not {rule.target:.6g}"
        return self.finding(
            observation,
            metric=key,
            value=lr,
            threshold=floor,
            message=(
                f"{key} has been at its floor of {floor:.6g} for {self.at_floor}"
                f" results, steps {self.since}-{observation.step}{short}. Decay later,"
                " or to a higher floor, or raise the peak learning rate."
            ),
            holds=self._holds(observation),
        )

    def _holds(self, observation: Observation) -> tuple[str, ...]:
        context, target = self.context, self.rule.target
        score = None if target is None else context.sign * target
        progress = Progress.of(context, target=score)
        return first_standing(self.rule.holds, observation, progress)
