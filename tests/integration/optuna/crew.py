"""Many workers of one study, of which some are killed.

Each is a process with a storage of its own. They are forked from a process that has
imported Optuna already, so that sixteen of them start in the time of one.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import warnings
from collections import defaultdict
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from typing import TYPE_CHECKING, Any

import optuna
from optuna.storages import BaseStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend, JournalFileSymlinkLock

from tests.integration.optuna.calls import Calls
from tests.integration.optuna.worker import NAN, POLICY, open_storage
from tune_guard.optuna import GuardPruner, StaleTrialCallback

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess

WORKERS = 16
TRIALS = 2
"""Trials that a worker runs which is not killed; the others run on until they are."""

STEPS = 6
KILLED = 4
BEFORE = 2
"""Trials that were finished before: the MedianPruner has something to compare."""

SEED = 20260

LONG_S = 120
"""Grace period of the workers' heartbeats: none is taken for dead while it is slow."""

LOCK_S = 5
"""How long a dead worker's lock on a journal file holds the others up."""

PRELOADED = ("optuna", "optuna.storages", "sqlalchemy.orm", "tune_guard.optuna")


@dataclass
class Crew:
    """What the workers said, by the worker's place.

    Args:
        killed: Places of the workers that are killed.

        began: Numbers of the trials that a worker has begun.

        told: States that a worker has told the study, by the trial's number.

        steps: Of each question whether to prune, what it asked of the storage;
            a question whose answer was yes is left out.

        exits: Exit codes.
    """

    killed: frozenset[int]
    began: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    told: dict[int, dict[int, str]] = field(default_factory=lambda: defaultdict(dict))
    steps: list[tuple[str, ...]] = field(default_factory=list)
    exits: dict[int, int | None] = field(default_factory=dict)

    def hear(self, place: int, what: str, number: int, value: Any) -> None:
        """Note what a worker says of a trial."""
        if what == "began":
            self.began[place].append(number)
        elif what == "told":
            self.told[place][number] = value
        elif value is not None:
            self.steps.append(value)


def course(number: int) -> list[float]:
    """Return the values of a trial; no other trial has the same.

    One of four goes NaN, one stands still, one is far behind, and one is healthy and
    better than those before it.
    """
    own = 1 - number / 1000
    kind = number % 4
    if kind == 0:
        return [*(own - step / 10 for step in range(1 + number % 3)), NAN, NAN, NAN]
    if kind == 1:
        return [own] * STEPS
    return [(100.0 if kind == 2 else 0.0) + own - step / 10 for step in range(STEPS)]


def new_study(address: str, name: str) -> optuna.Study:
    """Make a study in which trials a little worse than most have completed."""
    study = optuna.create_study(study_name=name, storage=crew_storage(address, LONG_S))
    values = {step: 2.0 - step / 10 for step in range(STEPS)}
    for _ in range(BEFORE):
        value = values[STEPS - 1]
        done = optuna.trial.create_trial(value=value, intermediate_values=values)
        study.add_trial(done)
    return study


def crew_storage(address: str, grace_period_s: int) -> BaseStorage:
    """Open a storage; databases with heartbeats and the guard's callback."""
    kind, _, rest = address.partition(":")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        if kind == "journal":
            lock = JournalFileSymlinkLock(rest, grace_period=LOCK_S)
            return JournalStorage(JournalFileBackend(rest, lock))
        if kind in ("redis", "grpc"):
            return open_storage(address)
        return RDBStorage(
            address,
            heartbeat_interval=1,
            grace_period=grace_period_s,
            heartbeat_stale_trial_callback=StaleTrialCallback(),
        )


def crew_study(address: str, name: str, grace_period_s: int = LONG_S) -> optuna.Study:
    """Load the study with the guard around a MedianPruner."""
    median = optuna.pruners.MedianPruner(n_startup_trials=2)
    return optuna.load_study(
        study_name=name,
        storage=crew_storage(address, grace_period_s),
        pruner=GuardPruner(median, POLICY),
    )


def work(mouth: Connection, address: str, name: str, n_trials: int | None) -> None:
    """Run trials, and say each thing that happens."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
    study = crew_study(address, name)
    calls = Calls(study._storage)

    def objective(trial: optuna.Trial) -> float:
        mouth.send(("began", trial.number, None))
        trial.suggest_float("x", 0, 1)
        values = course(trial.number)
        for step, value in enumerate(values):
            trial.report(value, step)
            calls.take()
            cut = trial.should_prune()
            asked = calls.take()
            mouth.send(("step", trial.number, None if cut else asked))
            if cut:
                raise optuna.TrialPruned
        return values[-1]

    def say_end(_: optuna.Study, trial: optuna.trial.FrozenTrial) -> None:
        mouth.send(("told", trial.number, trial.state.name))

    study.optimize(objective, n_trials=n_trials, callbacks=[say_end])


def run_crew(address: str, name: str) -> Crew:
    """Run the workers to their end; some are killed after a random step of theirs."""
    chance = random.Random(SEED)
    fatal_step = {
        place: chance.randint(2, TRIALS * STEPS // 2)
        for place in chance.sample(range(WORKERS), KILLED)
    }
    crew = Crew(frozenset(fatal_step))
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([*PRELOADED])
    processes: dict[int, BaseProcess] = {}
    ears: dict[Connection, int] = {}
    try:
        for place in range(WORKERS):
            ear, mouth = context.Pipe(duplex=False)
            count = None if place in fatal_step else TRIALS
            words = (mouth, address, name, count)
            processes[place] = context.Process(target=work, args=words, daemon=True)
            processes[place].start()
            mouth.close()
            ears[ear] = place
        _listen(crew, ears, processes, fatal_step)
        for place, process in processes.items():
            process.join()
            crew.exits[place] = process.exitcode
    finally:
        for process in processes.values():
            process.kill()
    return crew


def _listen(
    crew: Crew,
    ears: dict[Connection, int],
    processes: dict[int, BaseProcess],
    fatal_step: dict[int, int],
) -> None:
    steps = dict.fromkeys(fatal_step, 0)
    while ears:
        for ear in wait([*ears]):
            assert isinstance(ear, Connection)
            place = ears[ear]
            try:
                what, number, value = ear.recv()
            except EOFError:
                del ears[ear]
                continue
            crew.hear(place, what, number, value)
            if what == "step" and place in steps:
                steps[place] += 1
                is_inside = value is not None  # the trial goes on after this step
                if steps[place] >= fatal_step[place] and is_inside:
                    os.kill(processes[place].pid or 0, signal.SIGKILL)
                    del steps[place]
