"""Sweeps afterwards: read them, rank them, compare why their trials ended."""

from __future__ import annotations

from tune_guard.sweeps.curves import Curve, Curves
from tune_guard.sweeps.readers import load_sweep, load_sweeps
from tune_guard.sweeps.sweep import (
    INTERRUPTED,
    UNKNOWN,
    Problem,
    Sweep,
    Trial,
)

__all__ = [
    "INTERRUPTED",
    "UNKNOWN",
    "Curve",
    "Curves",
    "Problem",
    "Sweep",
    "Trial",
    "load_sweep",
    "load_sweeps",
]
