"""A circuit breaker for hyperparameter sweeps.

Cut sick trials of Ray Tune and Optuna early, say why, and leave healthy trials
alone. The names below load on first use, so that importing the package costs
neither ray, optuna, torch nor pandas.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tune_guard.evidence import Evidence
    from tune_guard.exceptions import ConfigError, SourceError, TuneGuardError
    from tune_guard.monitor import Monitor
    from tune_guard.observation import Keys, Observation
    from tune_guard.policy import Policy
    from tune_guard.record import Outcome, Status, StopRecord
    from tune_guard.space import Space
    from tune_guard.sweeps import Sweep, load_sweep
    from tune_guard.verdict import Blame, Finding, Level, Tier, Verdict
    from tune_guard.worker import TrialGuard

_HOMES = {
    "Blame": "verdict",
    "ConfigError": "exceptions",
    "Evidence": "evidence",
    "Finding": "verdict",
    "Keys": "observation",
    "Level": "verdict",
    "Monitor": "monitor",
    "Observation": "observation",
    "Outcome": "record",
    "Policy": "policy",
    "SourceError": "exceptions",
    "Space": "space",
    "Status": "record",
    "StopRecord": "record",
    "Sweep": "sweeps",
    "Tier": "verdict",
    "TrialGuard": "worker",
    "TuneGuardError": "exceptions",
    "Verdict": "verdict",
    "load_sweep": "sweeps",
}

__all__ = [
    "Blame",
    "ConfigError",
    "Evidence",
    "Finding",
    "Keys",
    "Level",
    "Monitor",
    "Observation",
    "Outcome",
    "Policy",
    "SourceError",
    "Space",
    "Status",
    "StopRecord",
    "Sweep",
    "Tier",
    "TrialGuard",
    "TuneGuardError",
    "Verdict",
    "load_sweep",
]


def __getattr__(name: str) -> Any:
    """Load a public name on first use, and serve ``__version__``."""
    if name == "__version__":
        from tune_guard.record import version

        return version()
    if name not in _HOMES:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    return getattr(importlib.import_module(f"tune_guard.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
