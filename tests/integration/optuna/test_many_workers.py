"""Sixteen workers on one study, four of which are killed: all that is told holds."""

from __future__ import annotations

import socket
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna.pruners import MedianPruner
from optuna.storages import GrpcStorageProxy, RDBStorage, fail_stale_trials
from optuna.storages._rdb import models
from optuna.trial import FrozenTrial, TrialState

from tests.integration.optuna.calls import Calls
from tests.integration.optuna.crew import (
    BEFORE,
    KILLED,
    STEPS,
    TRIALS,
    WORKERS,
    Crew,
    course,
    crew_study,
    new_study,
    run_crew,
)
from tests.integration.optuna.worker import POLICY, open_storage
from tune_guard import Monitor
from tune_guard.optuna import RETRY_OF
from tune_guard.record import DETAIL, REASON, STALE, STEP, StopRecord

pytestmark = [
    pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning"),
    pytest.mark.slow,
]

ROOT = Path(__file__).parents[3]
STORAGES = ("postgres", "mysql", "redis", "journal", "grpc")
SERVERS = {"grpc": "postgres_url", **{s: f"{s}_url" for s in STORAGES[:3]}}


@dataclass(frozen=True)
class Ended:
    """A study whose workers are gone.

    Args:
        address: Where it lies.

        crew: What the workers said.

        before: Its trials when the last worker was gone.

        study: The study, with the guard, and with heartbeats that are soon old.

        after: Its trials when the dead workers' were found and run again.
    """

    address: str
    crew: Crew
    before: list[FrozenTrial]
    study: optuna.Study
    after: list[FrozenTrial]

    @property
    def has_heartbeats(self) -> bool:
        """Whether the storage notices that a worker is gone."""
        return self.address.startswith(("postgresql", "mysql"))


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(s, marks=[pytest.mark.service] if s in SERVERS else [])
        for s in STORAGES
    ],
)
def ended(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Ended]:
    """Run the workers on a new study in each kind of storage, once."""
    kind = request.param
    folder = tmp_path_factory.mktemp(kind)
    url = request.getfixturevalue(SERVERS[kind]) if kind in SERVERS else ""
    name = f"tune-guard-{uuid.uuid4()}"
    with _address(kind, url, folder) as address:
        new_study(address, name)
        try:
            crew = run_crew(address, name)
            study = crew_study(address, name, grace_period_s=2)
            before = study.get_trials()
            _run_again(study)
            yield Ended(address, crew, before, study, study.get_trials())
        finally:
            optuna.delete_study(study_name=name, storage=open_storage(address))


@contextmanager
def _address(kind: str, url: str, folder: Path) -> Iterator[str]:
    """Yield the address of a storage; a proxy is a process of its own."""
    if kind != "grpc":
        yield url or f"journal:{folder / 'journal.log'}"
        return
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "tests.integration.optuna.worker"]
    with subprocess.Popen([*command, "serve", url, "", str(port)], cwd=ROOT) as server:
        try:
            GrpcStorageProxy(host="127.0.0.1", port=port).wait_server_ready(120)
            yield f"grpc:{port}"
        finally:
            server.terminate()


def _run_again(study: optuna.Study) -> None:
    """Wait until the dead workers' heartbeats are old, and run what is queued then."""
    while _beating(study):
        fail_stale_trials(study)
    waiting = study.get_trials(states=(TrialState.WAITING,))

    def objective(trial: optuna.Trial) -> float:
        trial.suggest_float("x", 0, 1)
        for step, value in enumerate(course(trial.number)):
            trial.report(value, step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return value

    if waiting:
        study.optimize(objective, n_trials=len(waiting))


def _beating(study: optuna.Study) -> list[int]:
    """Return the unfinished trials that have had a heartbeat."""
    backend = getattr(study._storage, "_backend", None)
    if not isinstance(backend, RDBStorage):
        return []
    running = {t._trial_id for t in study.trials if t.state is TrialState.RUNNING}
    with backend.scoped_session() as session:
        beats = session.query(models.TrialHeartbeatModel.trial_id)
        found = beats.filter(models.TrialHeartbeatModel.trial_id.in_(running))
        return [trial_id for (trial_id,) in found]


def own_record(trial: FrozenTrial) -> StopRecord:
    """Return what one guard by itself records of the values of a trial."""
    monitor = Monitor(POLICY.with_mode("min"), trial_id=str(trial.number))
    for step, value in sorted(trial.intermediate_values.items()):
        monitor.observe(step, {"value": value})
    return monitor.record()


def numbers_of(detail: dict[str, Any]) -> dict[str, Any]:
    """Return what a record says, without where and when."""
    return {k: v for k, v in detail.items() if k not in ("host", "time", "attempt")}


def test_no_worker_hangs_or_breaks(ended: Ended) -> None:
    """Those that were not killed end by themselves, with all their trials told."""
    crew = ended.crew
    assert {place for place, code in crew.exits.items() if code == -9} == crew.killed
    assert len(crew.killed) == KILLED
    for place in set(range(WORKERS)) - crew.killed:
        assert crew.exits[place] == 0
        assert [*crew.told[place]] == crew.began[place]
        assert len(crew.began[place]) == TRIALS


def test_every_cut_trial_has_its_own_reason(ended: Ended) -> None:
    """Reason, step and numbers are those of the trial's own values."""
    pruned = [t for t in ended.after if t.state is TrialState.PRUNED]
    reasons = set()
    for trial in pruned:
        own, stored = own_record(trial), trial.user_attrs
        last = max(trial.intermediate_values)
        reasons.add(stored[REASON])
        assert stored[STEP] == last
        if own.reason:
            assert stored[REASON] == own.reason
            assert numbers_of(stored[DETAIL]) == numbers_of(own.metadata()[DETAIL])
        else:
            assert stored[REASON] == "pruner:MedianPruner"
            assert stored[DETAIL]["value"] == trial.intermediate_values[last]
            assert stored[DETAIL]["best_value"] == own.best_value
            assert stored[DETAIL]["trial"] == str(trial.number)
    assert {"non_finite", "pruner:MedianPruner"} <= reasons


def test_no_other_trial_has_a_reason(ended: Ended) -> None:
    """A trial that completed has no record, and values that nobody would cut."""
    mine = ended.after[BEFORE:]
    complete = [t for t in mine if t.state is TrialState.COMPLETE]
    assert complete
    for trial in complete:
        assert not trial.user_attrs.get(REASON)
        values = sorted(trial.intermediate_values.items())
        assert values == [*enumerate(course(trial.number))]
        assert not own_record(trial).reason


def test_no_trial_is_lost(ended: Ended) -> None:
    """Whatever a worker told is in the study, as it was told; no number is missing."""
    assert [t.number for t in ended.before] == [*range(len(ended.before))]
    for told in ended.crew.told.values():
        for number, state in told.items():
            assert ended.before[number].state.name == state
    for began in ended.crew.began.values():
        assert all(number < len(ended.before) for number in began)


def test_what_is_unfinished_is_a_killed_workers_last_trial(ended: Ended) -> None:
    """Each of them leaves one trial at most, and every other is finished."""
    unfinished = {t.number for t in ended.before if not t.state.is_finished()}
    others = set(range(WORKERS)) - ended.crew.killed
    assert not unfinished & {n for place in others for n in ended.crew.began[place]}
    assert len(unfinished) <= KILLED


def test_a_killed_workers_trial_fails_and_runs_again(ended: Ended) -> None:
    """Where there are heartbeats: with a reason, and once, unless it had been cut.

    A worker that is killed between the start of a trial and its first heartbeat
    leaves it running for ever, in Optuna itself. So does any other storage.
    """
    left = [ended.after[t.number] for t in ended.before if not t.state.is_finished()]
    again = {t.user_attrs[RETRY_OF]: t for t in ended.after if RETRY_OF in t.user_attrs}
    assert len(ended.after) == len(ended.before) + len(again)
    stale = {
        int(key.removeprefix(STALE)): record[REASON]
        for key, record in ended.study.user_attrs.items()
        if key.startswith(STALE)
    }
    failed = [t for t in left if t.state is TrialState.FAIL]
    assert failed or not ended.has_heartbeats
    assert not failed or ended.has_heartbeats
    for trial in failed:
        if trial.user_attrs.get(REASON):
            assert trial.number not in stale.keys() | again.keys()
        else:
            assert stale.pop(trial.number) == "stalled"
            repeated = again.pop(trial.number)
            assert repeated.state.is_finished()
            assert trial.params.items() <= repeated.params.items()
    assert not stale
    assert not again


def test_a_step_asks_the_storage_what_the_pruner_asks_alone(ended: Ended) -> None:
    """Until a cut, whoever else works on the study."""
    name = f"tune-guard-{uuid.uuid4()}"
    storage = open_storage(ended.address)
    study = optuna.create_study(
        study_name=name, storage=storage, pruner=MedianPruner(n_startup_trials=2)
    )
    calls = Calls(study._storage)
    try:
        trial = study.ask()
        alone = set()
        for step in range(STEPS):
            trial.report(1.0, step)
            calls.take()
            assert not trial.should_prune()
            alone.add(calls.take())
    finally:
        optuna.delete_study(study_name=name, storage=storage)
    assert set(ended.crew.steps) == alone
    assert len(ended.crew.steps) > WORKERS * TRIALS
