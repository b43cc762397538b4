"""The callback on trials that Ray's controller is not there to move."""

from __future__ import annotations

import pickle
from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.ray.fake_trials import POLICY, FakeTrial, hooks
from tune_guard import ConfigError, Policy
from tune_guard.ray import GuardCallback


def test_a_missing_mode_is_an_error_at_construction() -> None:
    """As for the stopper."""
    with pytest.raises(ConfigError, match="`mode` must be"):
        GuardCallback(Policy.default("loss"))
    with pytest.raises(ConfigError, match=r"GuardCallback\(Policy"):
        GuardCallback(None)  # type: ignore[arg-type]


def test_no_hook_raises_into_the_sweep(caplog: Any) -> None:
    """Whatever a trial turns out to be."""
    callback = GuardCallback(POLICY)
    broken = SimpleNamespace(trial_id="t")
    callback.setup(time_budget_s=object())
    for name in ("start", "complete", "error"):
        getattr(callback, f"on_trial_{name}")(**hooks([broken], broken))
    row = {"done": True, "tune_guard/status": "running"}
    callback.on_trial_result(**hooks([broken], broken), result=row)
    callback.on_step_end(**hooks([broken]))
    callback.on_checkpoint(**hooks([broken], broken), checkpoint=None)
    callback.on_experiment_end(trials=[broken])
    assert caplog.messages
    assert all("the sweep goes on" in message for message in caplog.messages)


def test_it_is_pickled_without_its_trials(trial: FakeTrial) -> None:
    """Ray stores callbacks with the experiment."""
    callback = GuardCallback(POLICY)
    callback.on_trial_start(**hooks([trial], trial))
    again = pickle.loads(pickle.dumps(callback))  # noqa: S301 - our own
    assert again._policy == POLICY
    assert not again._recorder._open
