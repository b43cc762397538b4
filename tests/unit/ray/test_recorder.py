"""How trials ended, on record once: in the last row, the file, the next snapshot."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.ray.fake_trials import POLICY, FakeTrial, file_of, hooks
from tune_guard.ray import GuardCallback, GuardStopper
from tune_guard.ray.rows import record_in, stamp_of


def test_a_trial_is_recorded_once(trial: FakeTrial) -> None:
    """A later hook does not replace what the first has said."""
    callback = GuardCallback(POLICY)
    callback.on_trial_start(**hooks([trial], trial))
    trial.run_metadata.last_result = {"loss": 0.5, "training_iteration": 1}
    trial.run_metadata.last_result["done"] = True
    callback.on_trial_complete(**hooks([trial], trial))
    text = file_of(trial).read_text()
    trial.status = "TERMINATED"
    trial.run_metadata.last_result = {"loss": 0.5, "training_iteration": 2}
    callback.on_trial_complete(**hooks([trial], trial))
    callback.on_step_end(**hooks([trial]))
    callback.on_experiment_end(trials=[trial])
    assert file_of(trial).read_text() == text
    assert '"outcome": "completed"' in text


def test_the_record_of_a_trial_that_none_judged_names_the_objective(
    trial: FakeTrial,
) -> None:
    """Else a report of a sweep without a stopper would have to be told."""
    callback = GuardCallback(POLICY)
    trial.run_metadata.last_result = {"loss": 0.5, "done": True}
    callback.on_trial_complete(**hooks([trial], trial))
    record = record_in(trial.run_metadata.last_result)
    assert record is not None
    assert (record.objective, record.mode) == ("loss", "min")


def test_the_record_is_in_the_next_snapshot(trial: FakeTrial) -> None:
    """Ray caches a trial's state until it is told that it changed."""
    callback = GuardCallback(POLICY)
    trial.run_metadata.last_result = {"loss": 0.5, "done": True}
    callback.on_trial_complete(**hooks([trial], trial))
    assert trial.run_metadata.snapshots_outdated == 1
    record = record_in(trial.run_metadata.last_result)
    assert record is not None
    assert trial.evaluated_params == {"lr": 0.1, "tune_guard/reason": "completed"}


def test_the_monitor_is_let_go_with_the_trial(trial: FakeTrial) -> None:
    """Ray keeps the last row of every trial to the end of the sweep."""
    stopper, callback = GuardStopper(POLICY), GuardCallback(POLICY)
    row: dict[str, Any] = {"loss": 0.5, "training_iteration": 1}
    stopper("t", row)
    trial.run_metadata.last_result = row
    Path(trial.error_file).write_text("Failure # 1\nKeyError: 'a'\n")
    callback.on_trial_error(**hooks([trial], trial))
    stamp = stamp_of(row)
    assert stamp is not None
    assert (stamp.monitor, stamp.ended) == (None, True)
    assert stamp["reason"] == "error:KeyError"


class OnlyItsEnds(list[Any]):
    """A list that may be looked at from its ends, but not walked through."""

    def __iter__(self) -> Iterator[Any]:
        """Fail: ten thousand trials at every step are too many."""
        pytest.fail("all trials were looked at")


def test_a_step_in_which_nothing_ended_looks_at_two_trials(trial: FakeTrial) -> None:
    """Ray calls it after every result."""
    callback = GuardCallback(POLICY)
    callback.on_step_begin(**hooks([]))
    callback.on_trial_start(**hooks([trial], trial))
    trials = OnlyItsEnds([trial] * 10_000)
    for _ in range(3):
        callback.on_step_begin(**hooks(trials))
        callback.on_step_end(**hooks(trials))


def test_trials_that_had_ended_before_a_restore_are_left_alone(
    trial: FakeTrial,
) -> None:
    """Their records are there; this session knows nothing about their ends."""
    callback = GuardCallback(POLICY)
    trial.status = "TERMINATED"
    callback.on_step_begin(**hooks([trial]))
    callback.on_step_end(**hooks([trial]))
    assert not file_of(trial).exists()
