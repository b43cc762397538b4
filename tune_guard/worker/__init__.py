"""Inside the training process: what only the worker can see, at every step."""

from __future__ import annotations

from tune_guard.worker.faults import HardwareFault
from tune_guard.worker.guard import TrialGuard

__all__ = ["HardwareFault", "TrialGuard"]
