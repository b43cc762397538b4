"""The health rules, one a module: a trigger, its parameters, and its holds."""

from __future__ import annotations

from tune_guard.rules.amp_scale_collapse import AmpScaleCollapse
from tune_guard.rules.behind import Behind
from tune_guard.rules.divergence import Divergence
from tune_guard.rules.gpu_fault import GpuFault
from tune_guard.rules.gradient_explosion import GradientExplosion
from tune_guard.rules.lr_floor import LearningRateFloor
from tune_guard.rules.no_progress import NoProgress
from tune_guard.rules.non_finite import NonFinite
from tune_guard.rules.plateau import Plateau
from tune_guard.rules.relapse import Relapse
from tune_guard.rules.slow_step import SlowStep
from tune_guard.rules.stalled import Stalled
from tune_guard.rules.thermal_throttle import ThermalThrottle

__all__ = [
    "AmpScaleCollapse",
    "Behind",
    "Divergence",
    "GpuFault",
    "GradientExplosion",
    "LearningRateFloor",
    "NoProgress",
    "NonFinite",
    "Plateau",
    "Relapse",
    "SlowStep",
    "Stalled",
    "ThermalThrottle",
]
