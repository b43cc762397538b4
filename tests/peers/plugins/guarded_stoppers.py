"""Pytest plugin: every controller that Ray's tests make has a GuardStopper.

It is combined with the test's own stopper, if there is one, at the only place where
every run passes. How many guards were made, how often they were asked, and how many
trials they cut goes to the file ``GUARDED_ASKED``.
"""

from __future__ import annotations

import inspect
import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from ray.tune.execution.tune_controller import TuneController

from tune_guard import Policy
from tune_guard.ray import GuardStopper, combine

POLICY = Policy.default("episode_reward_mean", "max")
"""On what Ray's own trainable of these tests reports."""

COUNTS = Counter({"guards made": 0, "times asked": 0, "trials cut": 0})


@pytest.hookimpl
def pytest_configure() -> None:
    """Give every controller the guard, and count what it does."""
    begin, ask = TuneController.__init__, GuardStopper.__call__
    signature = inspect.signature(begin)

    def guarded(self: TuneController, *args: Any, **kwargs: Any) -> None:
        bound = signature.bind(self, *args, **kwargs)
        own = bound.arguments.get("stopper")
        guard = GuardStopper(POLICY)
        bound.arguments["stopper"] = combine(guard, own) if own else guard
        COUNTS["guards made"] += 1
        begin(*bound.args, **bound.kwargs)

    def counted(self: GuardStopper, *args: Any) -> bool:
        cut = ask(self, *args)
        COUNTS["times asked"] += 1
        COUNTS["trials cut"] += cut
        return cut

    TuneController.__init__ = guarded
    GuardStopper.__call__ = counted


@pytest.hookimpl
def pytest_sessionfinish() -> None:
    """Write the counts down."""
    Path(os.environ["GUARDED_ASKED"]).write_text(json.dumps(COUNTS), encoding="utf-8")
