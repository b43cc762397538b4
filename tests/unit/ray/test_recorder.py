"""How trials ended, on record once: in the last row, the file, the next snapshot."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.ray.fake_trials import POLICY, FakeTrial, file_of, hooks
from tune_guard.notices import Notices
from tune_guard.ray import GuardCallback, GuardStopper
from tune_guard.ray.announcer import Announcer
from tune_guard.ray.recorder import Recorder
from tune_guard.ray.rows import Stamp, record_in, stamp_of
from tune_guard.record import STATUS, Outcome, StopRecord


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
    assert row["tune_guard/reason"] == "error:KeyError"


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


# ------------------------------------------------------------ the recorder alone


class Told(Announcer):
    """Remembers what it was told to announce."""

    def __init__(self) -> None:
        super().__init__(POLICY)
        self.ends: list[tuple[str, str]] = []
        self.overs: list[bool] = []

    def ended(self, trial: Any, record: StopRecord) -> None:
        """Note the trial and why it ended."""
        self.ends.append((trial.trial_id, record.reason or str(record.outcome)))

    def over(self, *, interrupted: bool) -> None:
        """Note whether the experiment was interrupted."""
        self.overs.append(interrupted)


@pytest.fixture
def told() -> Told:
    """Return who listens to the recorder."""
    return Told()


@pytest.fixture
def recorder(told: Told) -> Recorder:
    """Return a recorder on its own."""
    return Recorder(POLICY, told, Notices())


def test_an_interrupt_is_written_into_the_files_of_open_trials_alone(
    recorder: Recorder, told: Told, trial: Any
) -> None:
    """Nothing is announced to have ended, and the row stays as Ray restores it."""
    row = trial.run_metadata.last_result = {"loss": 0.5, "training_iteration": 3}
    recorder.begin(trial)
    recorder.record_interrupt()
    found = json.loads(file_of(trial).read_text())
    record = StopRecord.from_metadata(found)
    assert record is not None
    assert (record.outcome, record.reason) == (Outcome.INTERRUPTED, "interrupted")
    assert (found["final"], found["training_iteration"]) == (False, 3)
    assert (row, told.ends, told.overs) == (
        {"loss": 0.5, "training_iteration": 3},
        [],
        [True],
    )


def test_an_end_after_all_trials_is_no_interrupt(
    recorder: Recorder, told: Told, trial: Any
) -> None:
    """The record of a trial that ended is final."""
    recorder.begin(trial)
    trial.run_metadata.last_result = {"loss": 0.5, "done": True}
    recorder.record_end(trial)
    text = file_of(trial).read_text()
    recorder.record_interrupt()
    assert file_of(trial).read_text() == text
    assert told.overs == [False]


def test_an_interrupt_is_told_once(recorder: Recorder, told: Told, trial: Any) -> None:
    """Ray may end an experiment twice; the second time nothing was open."""
    recorder.begin(trial)
    recorder.record_interrupt()
    recorder.record_interrupt()
    assert told.overs == [True, False]


@pytest.mark.parametrize(
    ("stopped_by", "out_of_time", "reason"),
    [
        ("", False, "experiment_stop"),
        ("", True, "experiment_stop:time_budget"),
        ("enough", True, "experiment_stop:enough"),
    ],
)
def test_a_stop_of_the_experiment_names_its_cause(
    recorder: Recorder,
    trial: Any,
    stopped_by: str,
    out_of_time: bool,
    reason: str,
) -> None:
    """A criterion that said so goes before the clock."""
    stamp = Stamp()
    stamp.stopped_by = stopped_by
    trial.run_metadata.last_result = {"loss": 0.5, STATUS: stamp}
    recorder.begin(trial)
    trial.status = "TERMINATED"
    recorder.record_experiment_stop([trial], out_of_time=out_of_time)
    record = record_in(trial.run_metadata.last_result)
    assert record is not None
    assert (record.outcome, record.reason) == (Outcome.EXPERIMENT_STOP, reason)
    assert json.loads(file_of(trial).read_text())["final"]


def test_a_stop_of_the_experiment_is_of_trials_that_ended_with_it(
    recorder: Recorder, told: Told, trial: Any
) -> None:
    """Not of one that still runs, and not of one whose end is on record."""
    recorder.begin(trial)
    recorder.record_experiment_stop([trial], out_of_time=False)
    assert told.ends == []
    trial.run_metadata.last_result = {"loss": 0.5, "done": True}
    recorder.record_end(trial)
    trial.status = "TERMINATED"
    recorder.record_experiment_stop([trial], out_of_time=False)
    assert told.ends == [("t", "completed")]
