"""The record is stored, whatever the storage does, and the cut stands."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import optuna
import pytest
from optuna.exceptions import StorageInternalError, UpdateFinishedTrialError

from tests.unit.optuna.support import (
    NAN,
    CountingStorage,
    ScriptedPruner,
    steps_until_pruned,
    study_of,
)
from tune_guard.optuna import GuardPruner, recorder
from tune_guard.record import DETAIL, REASON, STEP, StopRecord
from tune_guard.verdict import Blame

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def naps(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Take the pauses between tries down instead of sleeping."""
    taken: list[float] = []
    monkeypatch.setattr(recorder.time, "sleep", taken.append)
    return taken


def refusals(count: int, error: type[Exception]) -> Callable[[], None]:
    """Return what refuses ``count`` times and then lets through."""
    left = [count]

    def refuse() -> None:
        left[0] -= 1
        if left[0] >= 0:
            msg = "database is locked"
            raise error(msg)

    return refuse


def sick_trial(
    guard: GuardPruner, storage: CountingStorage
) -> optuna.trial.FrozenTrial:
    """Run one trial that goes NaN at step 1, and return what is stored of it."""

    def objective(trial: optuna.Trial) -> float:
        if steps_until_pruned(trial, [1.0, NAN]) is not None:
            raise optuna.TrialPruned
        return 1.0

    study = study_of(guard, storage=storage)
    study.optimize(objective, n_trials=1)
    return study.trials[0]


def test_a_cut_writes_three_attributes_the_reason_last() -> None:
    """Who finds the reason finds the rest too."""
    storage = CountingStorage()
    sick_trial(GuardPruner(), storage)
    assert storage.written == [DETAIL, STEP, REASON]


def test_the_wrapped_pruners_cut_writes_three_attributes_too() -> None:
    """Its reason costs no more than the guard's."""
    storage = CountingStorage()
    trial = study_of(GuardPruner(ScriptedPruner(0)), storage=storage).ask()
    assert steps_until_pruned(trial, [1.0]) == 0
    assert storage.written == [DETAIL, STEP, REASON]


def test_the_record_is_read_back_whole() -> None:
    """Status and blame lie in the detail; all values are strict JSON."""
    trial = sick_trial(GuardPruner(), CountingStorage())
    record = StopRecord.from_metadata(trial.user_attrs)
    assert record is not None
    assert (record.reason, record.step, record.blame) == (
        "non_finite",
        1,
        Blame.CONFIG,
    )
    assert (record.objective, record.mode) == ("value", "min")
    assert len(json.dumps(trial.user_attrs[DETAIL], allow_nan=False)) < 1024


def test_a_storage_that_is_locked_twice_is_tried_again(naps: list[float]) -> None:
    """The reason is stored in the end, and nothing is said."""
    storage = CountingStorage(refusals(2, StorageInternalError))
    trial = sick_trial(GuardPruner(), storage)
    assert trial.user_attrs[REASON] == "non_finite"
    assert naps == [0.05, 0.1]


def test_a_storage_that_always_refuses_changes_no_verdict(
    naps: list[float],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The trial is PRUNED, the record lies in a local file, one warning is given."""
    monkeypatch.chdir(tmp_path)
    guard = GuardPruner()
    storage = CountingStorage(refusals(10_000, StorageInternalError))
    trials = [sick_trial(guard, storage) for _ in range(2)]
    assert [trial.state.name for trial in trials] == ["PRUNED", "PRUNED"]
    lines = (tmp_path / ".tune_guard/optuna.jsonl").read_text().splitlines()
    kept = json.loads(lines[0])
    assert (kept["trial"], kept[REASON], kept[STEP]) == (0, "non_finite", 1)
    assert len(lines) == 2
    assert [r.levelname for r in caplog.records if r.name == "tune_guard"] == [
        "WARNING"
    ]
    assert sum(naps) <= 2 * recorder.BUDGET_S


def test_a_slow_refusal_uses_up_the_time(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, naps: list[float]
) -> None:
    """A database that takes seconds to refuse is not asked five times."""
    monkeypatch.chdir(tmp_path)
    clock = iter(range(0, 1000, 2))
    monkeypatch.setattr(recorder.time, "monotonic", lambda: float(next(clock)))
    storage = CountingStorage(refusals(10_000, StorageInternalError))
    sick_trial(GuardPruner(), storage)
    assert naps == [0.05]


def test_a_trial_that_ended_elsewhere_is_not_tried_again(
    naps: list[float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A heartbeat may have failed it: its attributes can no longer be changed."""
    monkeypatch.chdir(tmp_path)
    storage = CountingStorage(refusals(10_000, UpdateFinishedTrialError))
    sick_trial(GuardPruner(), storage)
    assert naps == []
    assert (tmp_path / ".tune_guard/optuna.jsonl").exists()


def test_a_place_that_takes_no_file_is_passed_over(
    naps: list[float],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Without any place left the warning holds the reason, and the cut stands."""
    (tmp_path / ".tune_guard").write_text("in the way")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    storage = CountingStorage(refusals(10_000, StorageInternalError))
    trial = sick_trial(GuardPruner(), storage)
    assert trial.state.name == "PRUNED"
    assert "could not be kept elsewhere" in caplog.text
    assert "non_finite" in caplog.text


def test_an_inherited_reason_is_taken_back_at_the_first_report() -> None:
    """Optuna copies a failed trial's attributes to its retry."""
    study = study_of(GuardPruner())
    old = StopRecord(reason="non_finite", step=7, trial="0").metadata()
    retry = optuna.trial.create_trial(
        state=optuna.trial.TrialState.WAITING, user_attrs=old
    )
    study.add_trial(optuna.trial.create_trial(value=1.0))
    study.add_trial(retry)
    trial = study.ask()
    trial.report(1.0, 0)
    assert trial.should_prune() is False
    stored = study.trials[1].user_attrs
    assert (stored[REASON], stored[STEP], stored[DETAIL]["trial"]) == ("", -1, "1")


def test_taking_back_begins_with_the_reason() -> None:
    """A crash in between leaves no trial with a reason that is not its own."""
    storage = CountingStorage()
    study = study_of(GuardPruner(), storage=storage)
    old = StopRecord(reason="non_finite", step=7, trial="5").metadata()
    study.enqueue_trial({}, user_attrs=old)
    trial = study.ask()
    trial.report(1.0, 0)
    trial.should_prune()
    assert storage.written == [REASON, STEP, DETAIL]
