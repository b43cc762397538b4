"""A GPU that is too hot to run at its speed."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import ClassVar

from tune_guard.observation import Observation
from tune_guard.rules.base import Context, Detector, Rule, portion
from tune_guard.rules.holding import check_holds, first_standing
from tune_guard.rules.holds import Hold
from tune_guard.rules.thermal_holds import GpuIdle, SpeedKept, Speeds
from tune_guard.statistics import RobustWindow
from tune_guard.verdict import Blame, Finding, Tier

THERMAL_BITS = 0x20 | 0x40
"""NVML's SW and HW thermal slowdown. Power cap, idle and clock settings are none."""

_HALF = 0.5
_REPORTS = 5
_BASELINE = 20
_MIN_BASELINE = 3
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class ThermalThrottle(Rule):
    """Stop when heat has throttled the GPU for long, and speed is lost to it.

    Reads ``gpu_reasons``, NVML's bits at the moment of the report, or
    ``gpu_thermal_ratio``, the share of the time since the last report in which a
    thermal bit was set. Only SW (0x20) and HW (0x40) thermal slowdown count.

    Where reports carry ``time_s``, it keeps a running share of throttled time
    whose half-life is ``window_s``, and triggers at one half: throttled without
    a break, that is after ``window_s``. Single bits stand for a third of
    ``window_s`` at most, so that it takes three of them. Without ``time_s``, or
    with ``consecutive``, it counts throttled reports in a row.

    Holds keep it from cutting while the GPU is idle, or its clock and the step
    time are as good as they were while it was cool. ``holds=()`` gives the plain
    rule. The stop is blamed on the infrastructure: the trial is to be run again.
    Without telemetry in the reports the rule is inactive.

    Args:
        window_s: Half-life of the share of throttled time, in seconds.

        consecutive: Throttled reports in a row that stop the trial, whatever
            time they span; None for ``window_s``, or 5 where no time is reported.

        holds: What may keep the rule from cutting.

    Raises:
        ConfigError: If a value cannot be meant.

    Source: DCGM and gpud count no power cap as a fault, either; single slowdown
        events come with clock changes, so gpud asks for 6 in 10 minutes and NVRx
        for a step 1.33 times as long (score 0.75). Temperature alone is no
        proxy: its limit differs by model.

    Example:
        >>> from tune_guard import Monitor, Policy
        >>> rule = ThermalThrottle(consecutive=2)
        >>> monitor = Monitor(Policy(metric="loss", mode="min", rules=(rule,)))
        >>> reports = [{"loss": 1.0, "gpu_reasons": bits} for bits in (4, 32, 64)]
        >>> [monitor.observe(i, report).stop for i, report in enumerate(reports)]
        [False, False, True]
    """

    id: ClassVar[str] = "thermal_throttle"
    tier: ClassVar[Tier] = Tier.FATAL
    blame: ClassVar[Blame] = Blame.INFRASTRUCTURE
    needs: ClassVar[tuple[str, ...]] = ("gpu_reasons", "gpu_thermal_ratio")

    window_s: float = 60.0
    consecutive: int | None = None
    holds: tuple[Hold, ...] = (GpuIdle(), SpeedKept())

    def __post_init__(self) -> None:
        self.require_number("window_s", 1.0, "60 is the default.")
        if self.consecutive is not None:
            self.require_count("consecutive", 1, "Leave it out to judge by time.")
        object.__setattr__(self, "holds", check_holds(self.id, self.holds))

    def start(self, context: Context) -> Detector:
        """Return a fresh detector for one trial."""
        return _ThermalDetector(self, context)


class _ThermalDetector(Detector):
    __slots__ = ("clocks", "hot_in_row", "hot_since", "last_time_s", "share", "steps")

    machine_bound = True

    def __init__(self, rule: ThermalThrottle, context: Context) -> None:
        super().__init__(rule, context)
        self.clocks = RobustWindow(_BASELINE)
        self.steps = RobustWindow(_BASELINE)
        self.hot_in_row = 0
        self.hot_since: int | None = None
        self.last_time_s: float | None = None
        self.share = 0.0

    def update(self, observation: Observation) -> Finding | None:
        ratio = observation.gpu_thermal_ratio
        heat = _bits_as_ratio(observation.gpu_reasons) if ratio is None else ratio
        if heat is None or not 0.0 <= heat <= 1.0:
            return None
        timed = self._pass_time(heat, observation.time_s, sampled=ratio is None)
        if heat < _HALF:
            self._accept(observation)
            self.hot_in_row = 0
            return None
        if self.hot_in_row == 0:
            self.hot_since = observation.step
        self.hot_in_row += 1
        return self._judge(observation, timed=timed)

    def margin(self) -> float | None:
        wanted = self.rule.consecutive
        if wanted is None and self.last_time_s is not None:
            return portion(self.share, _HALF)
        return portion(self.hot_in_row, wanted or _REPORTS)

    def _pass_time(self, heat: float, now: float | None, *, sampled: bool) -> bool:
        """Move the share towards ``heat``; return whether there is a time at all."""
        if now is None or not 0.0 <= now < inf:
            return False
        last, self.last_time_s = self.last_time_s, now
        if last is not None and now > last:
            window_s = self.rule.window_s
            passed = min(now - last, window_s / 3) if sampled else now - last
            kept: float = 2.0 ** (-passed / window_s)
            self.share = heat + (self.share - heat) * kept
        return True

    def _accept(self, observation: Observation) -> None:
        """Learn from a cool and busy GPU how fast it runs."""
        busy = observation.gpu_utilization_ratio
        if busy is not None and busy <= _HALF:
            return
        clock, took = observation.gpu_clock_mhz, observation.step_time_s
        if clock is not None and 0.0 < clock < inf:
            self.clocks.add(clock)
        if took is not None and 0.0 < took < inf:
            self.steps.add(took)

    def _judge(self, observation: Observation, *, timed: bool) -> Finding | None:
        wanted = self.rule.consecutive
        if wanted is None and timed:
            key, value, limit = "gpu_thermal_ratio", self.share, _HALF
        else:
            limit = float(wanted or _REPORTS)
            key, value = "gpu_reasons", float(self.hot_in_row)
        if value < limit - _ROUNDING:
            return None
        return self._found(key, value, limit, observation)

    def _found(
        self, key: str, value: float, limit: float, observation: Observation
    ) -> Finding:
        cool = Speeds.of(
            self.context,
            clock_mhz=_typical(self.clocks),
            step_time_s=_typical(self.steps),
        )
        return self.finding(
            observation,
            metric=self.context.name_of(key),
            value=value,
            threshold=limit,
            message=(
                f"Heat throttles the GPU: {self.hot_in_row} reports in a row, steps"
                f" {self.hot_since}-{observation.step}{_evidence(observation, cool)}."
                " Improve its cooling, or run the trial on another machine."
            ),
            holds=first_standing(self.rule.holds, observation, cool),
        )


def _bits_as_ratio(reasons: float | None) -> float | None:
    """Return 1.0 if a thermal bit is set, else 0.0; None when nothing is known."""
    if reasons is None or not 0.0 <= reasons < inf:
        return None
    return 1.0 if int(reasons) & THERMAL_BITS else 0.0


def _typical(window: RobustWindow) -> float | None:
    return window.median if len(window) >= _MIN_BASELINE else None


def _evidence(observation: Observation, cool: Speeds) -> str:
    """Return what is known of temperature, clock and step time, as a text."""
    parts = []
    if observation.gpu_temperature_celsius is not None:
        parts.append(f"{observation.gpu_temperature_celsius:.0f} °C")
    pairs = (
        ("clock", observation.gpu_clock_mhz, cool.clock_mhz, "MHz"),
        ("step time", observation.step_time_s, cool.step_time_s, "s"),
    )
    for name, now, before, unit in pairs:
        if now is not None:
            usual = "" if before is None else f" (cool: {before:.4g})"
            parts.append(f"{name} {now:.4g} {unit}{usual}")
    return "; " + ", ".join(parts) if parts else ""
