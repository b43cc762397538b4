"""Steps that take much longer than they used to: the machine, not the model."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import ClassVar

from tune_guard.observation import Observation
from tune_guard.rules.base import Context, Detector, Rule, portion
from tune_guard.statistics import RobustWindow
from tune_guard.verdict import Blame, Finding, Tier


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowStep(Rule):
    """Stop when steps take ``factor`` times as long as they typically did.

    A step is slow if it exceeds ``factor`` times the median of the last
    ``window`` steps that were not slow themselves, once there are
    ``min_history`` of them. The ``consecutive``-th slow step in a row stops the
    trial. The median leaves the first steps, which contain compilation, out of
    the baseline. Where ``data_time_s`` is reported and makes up the slow-down,
    the sentence names the data loader.

    The stop is blamed on the infrastructure: the trial is to be run again, and
    the search algorithm learns nothing from it. Without ``step_time_s`` in the
    reports the rule is inactive.

    Args:
        factor: Times the typical step time that make a step slow.

        window: Steps of which the median is taken.

        min_history: Steps before which none is slow.

        consecutive: Slow steps in a row that stop the trial.

    Raises:
        ConfigError: If a value cannot be meant.

    Source: of 532 recorded streams of step and iteration times (Megatron, RLlib,
        DeepCAVE) this cuts 3, at 6 to 19 times the typical time; 2 are machines
        that slowed down, 1 is a reinforcement-learning run whose updates begin
        after five iterations, for which ``min_history`` is to be raised. Daily
        temperature alone moves step times by 1 to 2% (The Llama 3 Herd of Models).

    Example:
        >>> from tune_guard import Monitor, Policy
        >>> rule = SlowStep(consecutive=2)
        >>> monitor = Monitor(Policy(metric="loss", mode="min", rules=(rule,)))
        >>> times = [79.0, 0.1, 0.1, 0.1, 0.1, 0.1, 0.3, 0.3]
        >>> reports = [{"loss": 1.0, "step_time_s": s} for s in times]
        >>> [monitor.observe(i, report).stop for i, report in enumerate(reports)][5:]
        [False, False, True]
    """

    id: ClassVar[str] = "slow_step"
    tier: ClassVar[Tier] = Tier.FATAL
    blame: ClassVar[Blame] = Blame.INFRASTRUCTURE
    needs: ClassVar[tuple[str, ...]] = ("step_time_s",)

    factor: float = 2.0
    window: int = 20
    min_history: int = 5
    consecutive: int = 5

    def __post_init__(self) -> None:
        self.require_number("factor", 1.0, "2 is the default.")
        self.require_count("min_history", 1, "5 is the default.")
        advice = "The median needs `min_history` steps."
        self.require_count("window", self.min_history, advice)
        self.require_count("consecutive", 1, "1 stops at the first slow step.")

    def start(self, context: Context) -> Detector:
        """Return a fresh detector for one trial."""
        return _SlowStepDetector(self, context)


class _SlowStepDetector(Detector):
    __slots__ = ("data_times", "slow_in_row", "slow_since", "step_times")

    machine_bound = True

    def __init__(self, rule: SlowStep, context: Context) -> None:
        super().__init__(rule, context)
        self.step_times = RobustWindow(rule.window)
        self.data_times = RobustWindow(rule.window)
        self.slow_in_row = 0
        self.slow_since: int | None = None

    def update(self, observation: Observation) -> Finding | None:
        took = observation.step_time_s
        if took is None or not 0.0 < took < inf:
            return None
        data = observation.data_time_s
        if data is not None and not 0.0 <= data < inf:
            data = None
        if not self._is_slow(took):
            self._accept(took, data)
            return None
        if self.slow_in_row == 0:
            self.slow_since = observation.step
        self.slow_in_row += 1
        if self.slow_in_row < self.rule.consecutive:
            return None
        return self._found(took, data, observation)

    def margin(self) -> float | None:
        return portion(self.slow_in_row, self.rule.consecutive)

    def _is_slow(self, took: float) -> bool:
        if len(self.step_times) < self.rule.min_history:
            return False
        limit: float = self.rule.factor * self.step_times.median
        return took > limit

    def _accept(self, took: float, data: float | None) -> None:
        self.slow_in_row = 0
        self.step_times.add(took)
        if data is not None:
            self.data_times.add(data)

    def _found(
        self, took: float, data: float | None, observation: Observation
    ) -> Finding:
        typical = self.step_times.median
        key = self.context.name_of("step_time_s")
        return self.finding(
            observation,
            metric=key,
            value=took,
            threshold=self.rule.factor * typical,
            message=(
                f"{key} = {took:.4g} s at step {observation.step},"
                f" {took / typical:.1f} times the typical {typical:.4g} s, for"
                f" {self.slow_in_row} steps in a row since step {self.slow_since}."
                f" {self._advice(took - typical, data)}"
            ),
        )

    def _advice(self, excess: float, data: float | None) -> str:
        """Name the data loader if it accounts for most of the ``excess``."""
        usual = self.data_times.median if len(self.data_times) else 0.0
        if data is None or data - usual < 0.5 * excess:
            return (
                "Look for other jobs on the machine, or a throttled GPU. Where the"
                " training itself grows (larger inputs, layers unfrozen), set"
                ' actions={"slow_step": "warn"}.'
            )
        key = self.context.name_of("data_time_s")
        return (
            f"The data loader is stalled: {key} = {data:.4g} s of it, where"
            f" {usual:.4g} s are typical. Look at the storage, or add workers."
        )
