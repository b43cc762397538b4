"""Ray Tune: cut sick trials, record why every trial ended, tell the searcher.

Example:
    >>> from ray import tune
    >>> from tune_guard import Policy
    >>> from tune_guard.ray import GuardCallback, GuardStopper
    >>> policy = Policy.default("val_loss", "min", warmup_steps=5)
    >>> run_config = tune.RunConfig(
    ...     stop=GuardStopper(policy), callbacks=[GuardCallback(policy)]
    ... )
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tune_guard.ray.callback import GuardCallback
from tune_guard.ray.combine import combine
from tune_guard.ray.searcher import GuardSearcher
from tune_guard.ray.stopper import GuardStopper
from tune_guard.ray.veto import GuardScheduler
from tune_guard.ray.watchdog import Watchdog

if TYPE_CHECKING:
    from tune_guard.ray.report_callback import GuardReportCallback

__all__ = [
    "GuardCallback",
    "GuardReportCallback",
    "GuardScheduler",
    "GuardSearcher",
    "GuardStopper",
    "Watchdog",
    "combine",
]


def __getattr__(name: str) -> Any:
    """Load what needs Ray Train on first use: a sweep may do without."""
    if name == "GuardReportCallback":
        from tune_guard.ray.report_callback import GuardReportCallback

        return GuardReportCallback
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)
