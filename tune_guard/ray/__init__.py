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

from tune_guard.ray.callback import GuardCallback
from tune_guard.ray.combine import combine
from tune_guard.ray.searcher import GuardSearcher
from tune_guard.ray.stopper import GuardStopper

__all__ = ["GuardCallback", "GuardSearcher", "GuardStopper", "combine"]
