"""The reason survives in every storage, written by one process, read by another."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import optuna
import pytest

from tests.integration.optuna.worker import (
    NAN,
    is_sick,
    objective,
    open_storage,
    open_study,
    sick_step,
)
from tune_guard.optuna import GuardPruner
from tune_guard.record import DETAIL, REASON, STEP, StopRecord

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

    from optuna.trial import FrozenTrial

pytestmark = pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")


def check_reasons(trials: list[FrozenTrial]) -> None:
    """Check that each trial that was cut has its own reason, and no other has one."""
    for trial in trials:
        record = StopRecord.from_metadata(trial.user_attrs)
        if is_sick(trial.number):
            assert trial.state.name == "PRUNED"
            assert record is not None
            assert (record.reason, record.step) == (
                "non_finite",
                sick_step(trial.number),
            )
        elif trial.state.name == "PRUNED":
            assert record is not None
            assert record.reason == "pruner:MedianPruner"
        else:
            assert record is None
        assert record is None or record.trial == str(trial.number)


def test_two_workers_record_every_reason(
    address: str, study_name: str, start_worker: Callable[..., subprocess.Popen[str]]
) -> None:
    """Two processes share a study; a third reads each trial's own reason."""
    workers = [start_worker("run", address, study_name, 9) for _ in range(2)]
    assert [worker.wait() for worker in workers] == [0, 0]
    study = optuna.load_study(study_name=study_name, storage=open_storage(address))
    assert len(study.trials) == 18
    check_reasons(study.trials)


def test_reasons_are_recorded_in_memory() -> None:
    """The storage of one process keeps them as the others do."""
    study = optuna.create_study(
        pruner=GuardPruner(optuna.pruners.MedianPruner(n_startup_trials=2))
    )
    study.optimize(objective, n_trials=18)
    check_reasons(study.trials)


def test_the_detail_is_the_same_in_every_storage(address: str, study_name: str) -> None:
    """Non-finite numbers are text, so that strict JSON holds them everywhere."""
    trial = open_study(address, study_name).ask()
    for step, value in enumerate([1.0, float("inf")]):
        trial.report(value, step)
        assert trial.should_prune() is (step == 1)
    stored = optuna.load_study(study_name=study_name, storage=open_storage(address))
    attributes = stored.trials[0].user_attrs
    assert attributes == trial.user_attrs
    assert attributes[DETAIL]["value"] == "Infinity"
    assert json.loads(json.dumps(attributes[DETAIL], allow_nan=False))


def test_the_reason_is_a_column_of_the_data_frame(
    address: str, study_name: str
) -> None:
    """``trials_dataframe()`` shows reason and step beside the parameters."""
    study = open_study(address, study_name)
    study.optimize(objective, n_trials=1)
    row = study.trials_dataframe().iloc[0]
    assert row[f"user_attrs_{REASON}"] == "non_finite"
    assert row[f"user_attrs_{STEP}"] == 2


def test_a_trial_goes_on_in_another_process(
    address: str, study_name: str, start_worker: Callable[..., subprocess.Popen[str]]
) -> None:
    """Patience is not new with each worker: two bad values before, one after."""
    worker = start_worker("leave_open", address, study_name, 3)
    trial_id = int(worker.communicate()[0])
    trial = optuna.Trial(open_study(address, study_name), trial_id)
    trial.report(0.5, 3)
    assert trial.should_prune() is True
    assert (trial.user_attrs[REASON], trial.user_attrs[STEP]) == ("plateau", 3)


def test_a_retry_does_not_inherit_the_reason(
    tmp_path_factory: pytest.TempPathFactory,
    start_worker: Callable[..., subprocess.Popen[str]],
) -> None:
    """A killed worker's trial is retried by heartbeat, with a clean record."""
    address = f"heartbeat+sqlite:///{tmp_path_factory.mktemp('retry') / 'study.db'}"
    optuna.create_study(study_name="retry", storage=open_storage(address))
    worker = start_worker("hang_when_cut", address, "retry")
    assert worker.stdout is not None
    assert worker.stdout.readline() == "cut\n"
    worker.kill()
    worker.wait()
    study = open_study(address, "retry")
    while len(study.trials) < 2:  # until the heartbeat is old; pytest has a timeout
        optuna.storages.fail_stale_trials(study)
    assert study.trials[1].user_attrs[REASON] == "non_finite"

    def healthy(trial: optuna.Trial) -> float:
        trial.report(1.0, 0)
        assert trial.should_prune() is False
        return 1.0

    study.optimize(healthy, n_trials=1)
    killed, retried = study.trials
    assert (killed.state.name, killed.user_attrs[REASON]) == ("FAIL", "non_finite")
    assert (retried.state.name, retried.user_attrs[REASON]) == ("COMPLETE", "")
    assert retried.user_attrs[DETAIL]["trial"] == "1"


def test_a_wrong_value_leaves_no_trace_in_the_next_trial(
    address: str, study_name: str
) -> None:
    """Trials of one worker do not share state, whatever the storage does."""
    study = open_study(address, study_name)
    for values, cut in (([1.0, NAN], True), ([1.0, 0.9], False)):
        trial = study.ask()
        for step, value in enumerate(values):
            trial.report(value, step)
        assert trial.should_prune() is cut
        study.tell(trial, state=optuna.trial.TrialState.PRUNED)
