"""What a sweep's set-up contradicts or leaves out, seen from the callback."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tune_guard.ray import _engine
from tune_guard.ray.combine import guards_in
from tune_guard.ray.searcher import GuardSearcher

if TYPE_CHECKING:
    from tune_guard.notices import Notices
    from tune_guard.policy import Policy

_UNJUDGED = "unjudged"


def name_other_mode(policy: Policy, notices: Notices) -> None:
    """Say once that Ray Tune and the policy take the metric's mode differently."""
    modes = _engine.modes_of(_engine.controller(), policy.metric.strip())
    for other in sorted(modes - {policy.mode}):
        notices.once(
            "mode",
            f"The policy's mode is {policy.mode!r}, but Ray Tune has {other!r} for"
            f" `{policy.metric}`: the guard uses {policy.mode!r}, Ray Tune uses"
            f" {other!r}. Correct one of them.",
        )


def name_unjudged(notices: Notices) -> None:
    """Say once that no stopper judges the rows, where one came without a stamp.

    A list of stoppers in Ray ends a row at the first that says yes, so that also a
    guarded trial's last row may have none.
    """
    if _UNJUDGED in notices.messages:
        return
    if next(guards_in(_engine.stoppers_of(_engine.controller())), None) is None:
        notices.once(
            _UNJUDGED,
            "No GuardStopper judges this sweep: the ends of trials are recorded, and"
            " none is cut. Pass stop=GuardStopper(policy) to tune.RunConfig.",
        )


def name_bare_optuna_search(notices: Notices) -> None:
    """Say once that OptunaSearch will not be told of trials that end in NaN."""
    found = _engine.searchers_of(_engine.controller())
    wrapped = any(isinstance(one, GuardSearcher) for one in found)
    if type(found[-1]).__name__ == "OptunaSearch" and not wrapped:
        notices.once(
            "bare_search",
            "OptunaSearch is not wrapped: trials that end in NaN stay RUNNING in its"
            " study for ever. Pass search_alg=GuardSearcher(OptunaSearch(...)).",
        )
