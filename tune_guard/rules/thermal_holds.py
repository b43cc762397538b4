"""Why a hot GPU may do no harm: holds of the thermal throttle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tune_guard.observation import Observation
from tune_guard.rules.base import Context
from tune_guard.rules.holding import Evidence, check_not_negative
from tune_guard.rules.holds import Hold


@dataclass(frozen=True, slots=True, kw_only=True)
class Speeds(Evidence):
    """A context that also holds how fast the machine was while it was cool.

    Args:
        clock_mhz: Typical clock of the GPU; None when it was never reported.

        step_time_s: Typical time of a step; None likewise.
    """

    clock_mhz: float | None
    step_time_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuIdle(Hold):
    """Stands while the GPU is known to have little to do.

    Args:
        utilization_ratio: Share of its time at which it counts as busy.
    """

    id: ClassVar[str] = "gpu_idle"
    utilization_ratio: float = 0.5

    def __post_init__(self) -> None:
        check_not_negative(self, "utilization_ratio")

    def stands(self, observation: Observation, context: Context) -> bool:  # noqa: ARG002
        """Return whether the utilization was reported and is low."""
        busy = observation.gpu_utilization_ratio
        return busy is not None and busy <= self.utilization_ratio


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeedKept(Hold):
    """Stands while nothing shows that the heat costs speed.

    The clock or the step time must be worse than it was while the GPU was cool.
    What was not reported says nothing; where neither was, the hold never stands.

    Args:
        clock_ratio: Share of the cool clock at or under which speed is lost.

        step_time_ratio: Times the cool step time from which on speed is lost.
    """

    id: ClassVar[str] = "speed_kept"
    clock_ratio: float = 0.85
    step_time_ratio: float = 1.33

    def __post_init__(self) -> None:
        check_not_negative(self, "clock_ratio")
        check_not_negative(self, "step_time_ratio")

    def stands(self, observation: Observation, context: Context) -> bool:
        """Return whether all that is known runs as fast as when it was cool."""
        if not isinstance(context, Speeds):
            return False
        clock, took = observation.gpu_clock_mhz, observation.step_time_s
        lost = []
        if clock is not None and context.clock_mhz is not None:
            lost.append(clock <= self.clock_ratio * context.clock_mhz)
        if took is not None and context.step_time_s is not None:
            lost.append(took >= self.step_time_ratio * context.step_time_s)
        return bool(lost) and not any(lost)
