"""Trials whose worker is gone: a reason, and another worker for their parameters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import optuna
import pytest
import sqlalchemy
from optuna.storages import RDBStorage, fail_stale_trials

from tune_guard import Blame, ConfigError, Outcome, load_sweep
from tune_guard.optuna import ATTEMPT, RETRY_OF, GuardPruner, StaleTrialCallback
from tune_guard.record import REASON, STALE

pytestmark = [
    pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning"),
    pytest.mark.filterwarnings("ignore:Heartbeat of storage:UserWarning"),
]


@pytest.fixture
def url(tmp_path: Path) -> str:
    """URL of a SQLite storage."""
    return f"sqlite:///{tmp_path}/study.db"


def study_at(url: str, **more: Any) -> optuna.Study:
    """Return a study whose storage watches heartbeats."""
    storage = RDBStorage(
        url,
        heartbeat_interval=60,
        grace_period=120,
        heartbeat_stale_trial_callback=StaleTrialCallback(**more),
    )
    return optuna.create_study(
        study_name="s", storage=storage, pruner=GuardPruner(), load_if_exists=True
    )


def lose_worker(study: optuna.Study, *values: float, x: float | None = None) -> int:
    """Start a trial whose worker died long ago, after some reports."""
    trial = study.ask()
    trial.suggest_float("x", 0, 1) if x is None else trial.suggest_float("x", x, x)
    for step, value in enumerate(values):
        trial.report(value, step)
        trial.should_prune()
    storage: Any = study._storage
    storage.record_heartbeat(trial._trial_id)
    backend = getattr(storage, "_backend", storage)
    with backend.engine.begin() as connection:
        old = "UPDATE trial_heartbeats SET heartbeat = '2020-01-01 00:00:00'"
        connection.execute(sqlalchemy.text(old))
    return trial.number


def test_a_trial_without_a_worker_has_a_reason(url: str) -> None:
    """``load_sweep`` shows it, with the step of the last report and the blame."""
    study = study_at(url)
    lose_worker(study, 3.0, 2.0)
    fail_stale_trials(study)
    trial = load_sweep(url).trials[0]
    assert (trial.state, trial.reason, trial.step) == ("FAIL", "stalled", 1)
    assert (trial.outcome, trial.blame) == (Outcome.ERROR, Blame.INFRASTRUCTURE)


def test_a_live_study_shows_it_too(url: str) -> None:
    """The record lies with the study, under the trial's number."""
    study = study_at(url)
    number = lose_worker(study)
    fail_stale_trials(study)
    assert study.user_attrs[f"{STALE}{number}"][REASON] == "stalled"
    assert load_sweep(study).trials[0].reason == "stalled"


def test_its_parameters_are_queued_again_and_marked(url: str) -> None:
    """The retry repeats them, names the trial, counts on, and has no record yet."""
    study = study_at(url)
    lose_worker(study, 3.0)
    fail_stale_trials(study)
    lost, retry = study.trials
    assert retry.state.name == "WAITING"
    assert retry.system_attrs["fixed_params"] == lost.params
    assert (retry.user_attrs[RETRY_OF], retry.user_attrs[ATTEMPT]) == (0, 2)
    assert REASON not in retry.user_attrs


def test_it_is_found_once(url: str) -> None:
    """However often and by how many workers it is looked for."""
    study = study_at(url)
    lose_worker(study)
    for _ in range(3):
        fail_stale_trials(study)
        fail_stale_trials(study_at(url))
    assert len(study.trials) == 2


def test_parameters_are_not_queued_for_ever(url: str) -> None:
    """Two runs in all, and the second is lost as well."""
    study = study_at(url, most_attempts=2)
    lose_worker(study)
    fail_stale_trials(study)
    assert lose_worker(study) == 1
    fail_stale_trials(study)
    assert [trial.state.name for trial in study.trials] == ["FAIL", "FAIL"]
    assert [t.reason for t in load_sweep(url).trials] == ["stalled", "stalled"]


def test_no_duplicate_is_queued_while_one_waits(url: str) -> None:
    """Two workers are lost with the same parameters."""
    study = study_at(url)
    lose_worker(study, x=0.5)
    lose_worker(study, x=0.5)
    fail_stale_trials(study)
    assert [t.state.name for t in study.trials] == ["FAIL", "FAIL", "WAITING"]


def test_a_bad_configuration_is_not_run_again(url: str) -> None:
    """It had been cut before the worker died: its record stays, and it is enough."""
    study = study_at(url)
    lose_worker(study, 1.0, float("nan"))
    fail_stale_trials(study)
    assert len(study.trials) == 1
    assert load_sweep(url).trials[0].reason == "non_finite"
    assert not study.user_attrs


def test_an_inherited_record_is_not_the_trials_own(url: str) -> None:
    """A retry by Optuna's own callback carries that of its forerunner."""
    study = study_at(url)
    old = {REASON: "non_finite", "tune_guard/detail": {"trial": "99"}}
    study.enqueue_trial({"x": 0.5}, user_attrs=old)
    lose_worker(study)
    fail_stale_trials(study)
    assert load_sweep(url).trials[0].reason == "stalled"


def test_a_storage_that_refuses_keeps_the_record_aside(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside the database, where ``load_sweep`` finds it."""
    monkeypatch.setattr("tune_guard.optuna.recorder.time.sleep", lambda _: None)
    study = study_at(url)
    lose_worker(study)

    def refuse(*_: Any) -> None:
        msg = "database is locked"
        raise RuntimeError(msg)

    monkeypatch.setattr(study, "set_user_attr", refuse)
    fail_stale_trials(study)
    assert (tmp_path / "study.db.tune_guard.jsonl").exists()
    assert load_sweep(url).trials[0].reason == "stalled"


@pytest.mark.parametrize("most", [0, True, 1.5, None])
def test_a_wrong_count_is_refused(most: Any) -> None:
    """At construction."""
    with pytest.raises(ConfigError, match="`most_attempts` must be"):
        StaleTrialCallback(most_attempts=most)
