"""The guard for Optuna: a pruner around any other, which says why it cut."""

from __future__ import annotations

from tune_guard.optuna.pruner import GuardPruner
from tune_guard.optuna.requeue import ATTEMPT, RETRY_OF
from tune_guard.optuna.stale import StaleTrialCallback
from tune_guard.worker.faults import HardwareFault

__all__ = ["ATTEMPT", "RETRY_OF", "GuardPruner", "HardwareFault", "StaleTrialCallback"]
