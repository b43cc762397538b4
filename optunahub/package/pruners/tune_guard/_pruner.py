"""The guard of the ``tune-guard`` package, as the registry hands it out."""

from __future__ import annotations


try:
    from tune_guard import Policy
    from tune_guard.optuna import GuardPruner
    from tune_guard.optuna import HardwareFault
except ImportError as error:
    raise ImportError(
        "This pruner is part of tune_guard. Install it: pip install 'tune-guard[optuna]'"
    ) from error


__all__ = ["GuardPruner", "HardwareFault", "Policy"]
