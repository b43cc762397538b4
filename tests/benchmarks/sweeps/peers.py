"""The peers, driven offline through their real code, and the oracle bounds."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from tests.benchmarks.sweeps.data import Run, Study


class Peer(Protocol):
    """Something that is asked after each reading of the objective."""

    def start(self, run: Run, number: int) -> None:
        """Begin a trial."""

    def report(self, index: int, value: float) -> bool:
        """Return whether the trial is to be cut."""

    def end(self, *, cut: bool) -> None:
        """End the trial."""


class Nobody:
    """Cuts no trial."""

    def __init__(self, study: Study) -> None:
        del study

    def start(self, run: Run, number: int) -> None:
        """Begin a trial."""

    def report(self, index: int, value: float) -> bool:
        """Cut nothing."""
        del index, value
        return False

    def end(self, *, cut: bool) -> None:
        """End the trial."""


class Patience(Nobody):
    """Lightning's EarlyStopping: ``min_delta`` 0, ``check_finite``, no thresholds."""

    def __init__(self, study: Study, patience: int) -> None:
        self.patience, self.sign = patience, 1.0 if study.mode == "max" else -1.0

    def start(self, run: Run, number: int) -> None:
        """Begin a trial."""
        del run, number
        self.best, self.waited = -math.inf, 0

    def report(self, index: int, value: float) -> bool:
        """Cut after ``patience`` readings without a new best, or at a NaN."""
        del index
        if not math.isfinite(value):
            return True
        better = self.sign * value > self.best
        self.waited = 0 if better else self.waited + 1
        self.best = max(self.best, self.sign * value)
        return self.waited >= self.patience


class RayPlateau(Nobody):
    """Ray's TrialPlateauStopper with its defaults."""

    def start(self, run: Run, number: int) -> None:
        """Begin a trial."""
        from ray.tune.stopper import TrialPlateauStopper

        del run, number
        self.stopper = TrialPlateauStopper(metric="metric")

    def report(self, index: int, value: float) -> bool:
        """Ask the stopper."""
        del index
        return bool(self.stopper("trial", {"metric": value}))


class _FakeTrial:
    """What a scheduler needs of a trial: an identity."""

    def __init__(self, number: int) -> None:
        self.trial_id = str(number)


class _FakeController:
    """What a scheduler needs of a controller with one worker."""

    def get_live_trials(self) -> list[Any]:
        """Return no trial that waits for its turn."""
        return []


class RayScheduler(Nobody):
    """A scheduler of Ray Tune, fed as its controller would.

    The cost of MedianStoppingRule grows with the square of the readings, so it
    is asked at 40 of them, evenly spaced over the longest trial.
    """

    def __init__(self, study: Study, name: str) -> None:
        from ray.tune import schedulers

        self.every = 1 if name == "asha" else max(1, study.longest // 40)
        if name == "asha":
            self.scheduler: Any = schedulers.ASHAScheduler(
                "training_iteration", "metric", study.mode, max_t=study.longest + 1
            )
        else:
            self.scheduler = schedulers.MedianStoppingRule(
                "training_iteration", "metric", study.mode, grace_period=1
            )

    def start(self, run: Run, number: int) -> None:
        """Add a trial to the scheduler."""
        del run
        self.trial, self.result = _FakeTrial(number), {}
        self.scheduler.on_trial_add(None, self.trial)

    def report(self, index: int, value: float) -> bool:
        """Ask the scheduler."""
        if index % self.every:
            return False
        self.result = {"training_iteration": index + 1, "metric": value}
        decision = self.scheduler.on_trial_result(
            _FakeController(), self.trial, self.result
        )
        return bool(decision == "STOP")

    def end(self, *, cut: bool) -> None:
        """Tell the scheduler that the trial is over."""
        del cut
        if self.result:
            self.scheduler.on_trial_complete(None, self.trial, self.result)


class OptunaPruner(Nobody):
    """A real pruner on an in-memory study; step = index of the reading."""

    def __init__(self, study: Study, name: str) -> None:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self.states = optuna.trial.TrialState
        self.study = optuna.create_study(
            direction=f"{study.mode}imize",
            study_name=study.name,
            sampler=optuna.samplers.RandomSampler(seed=0),
            pruner=_pruner(study, name),
        )

    def start(self, run: Run, number: int) -> None:
        """Ask for a trial."""
        del run, number
        self.trial, self.last = self.study.ask(), math.nan

    def report(self, index: int, value: float) -> bool:
        """Report, and ask the pruner."""
        self.last = value
        self.trial.report(value, index)
        return self.trial.should_prune()

    def end(self, *, cut: bool) -> None:
        """Tell the study; Optuna fails a trial whose value is NaN."""
        if cut:
            self.study.tell(self.trial, state=self.states.PRUNED)
        elif math.isnan(self.last):
            self.study.tell(self.trial, state=self.states.FAIL)
        else:
            self.study.tell(self.trial, self.last)


def _pruner(study: Study, name: str) -> Any:
    from optuna import pruners

    limit = {"lower": -1e9} if study.mode == "max" else {"upper": 1e9}
    makers: dict[str, Callable[[], Any]] = {
        "median": pruners.MedianPruner,
        "percentile": lambda: pruners.PercentilePruner(25.0),
        "patient": lambda: pruners.PatientPruner(pruners.MedianPruner(), patience=5),
        "threshold": lambda: pruners.ThresholdPruner(**limit),
        "sha": pruners.SuccessiveHalvingPruner,
        "hyperband": lambda: pruners.HyperbandPruner(
            min_resource=1, max_resource=study.longest
        ),
    }
    return makers[name]()


PEERS: dict[str, Callable[[Study], Peer]] = {
    "none": Nobody,
    "Lightning patience 3": lambda s: Patience(s, 3),
    "Lightning patience 10": lambda s: Patience(s, 10),
    "Lightning patience 20": lambda s: Patience(s, 20),
    "Ray TrialPlateauStopper": RayPlateau,
    "Ray MedianStoppingRule": lambda s: RayScheduler(s, "median"),
    "Ray ASHA": lambda s: RayScheduler(s, "asha"),
    "Optuna Threshold": lambda s: OptunaPruner(s, "threshold"),
    "Optuna Patient(Median, 5)": lambda s: OptunaPruner(s, "patient"),
    "Optuna Median": lambda s: OptunaPruner(s, "median"),
    "Optuna Percentile 25": lambda s: OptunaPruner(s, "percentile"),
    "Optuna SuccessiveHalving": lambda s: OptunaPruner(s, "sha"),
    "Optuna Hyperband": lambda s: OptunaPruner(s, "hyperband"),
}


def run_peer(study: Study, peer: Peer, allowed: np.ndarray) -> np.ndarray:
    """Return how many readings of each trial were run.

    Args:
        study: The sweep; one worker runs trial after trial.

        peer: The peer to ask.

        allowed: Readings after which somebody in front of the peer cut each
            trial; the reading of that cut never reaches the peer.
    """
    done = allowed.copy()
    for number, run in enumerate(study.runs):
        peer.start(run, number)
        stopped = allowed[number] < len(run)
        shown = allowed[number] - 1 if stopped else allowed[number]
        for index, value in enumerate(run.values[:shown].tolist()):
            if peer.report(index, value):
                done[number] = index + 1
                break
        peer.end(cut=bool(done[number] < len(run)) or not shown)
    return done


def nan_check(study: Study) -> np.ndarray:
    """Cut at the first non-finite objective, loss or gradient norm."""
    done = []
    for run in study.runs:
        bad = [s[~np.isfinite(v)][:1] for _, (s, v) in run.streams(study.objective)]
        first = np.concatenate(bad)
        at = (
            np.searchsorted(run.steps, first.min(), "right") if len(first) else len(run)
        )
        done.append(max(1, int(at)))
    return np.array(done)


def oracle(study: Study, name: str) -> np.ndarray:
    """Hindsight: what could be saved without losing a best trial.

    ``own best`` stops every trial right after its best; ``sick`` only those
    that end sick; ``top`` stops every other trial once it will never again be
    in the running best tenth at an equal number of readings.
    """
    lengths = np.array([len(run) for run in study.runs])
    keys = np.array([run.key + 1 for run in study.runs])
    if name == "own best":
        return keys
    if name == "sick":
        sick = [run.is_sick(study.objective) for run in study.runs]
        return np.where(sick, keys, lengths)
    running = np.full((len(study.runs), study.longest), np.nan)
    for row, run in zip(running, study.runs, strict=True):
        row[: len(run)] = run.running
        row[len(run) :] = run.running[-1]
    running = np.where(np.isnan(running), -np.inf, running)
    ahead = np.array([(running > row).sum(axis=0) for row in running])
    inside = (ahead < study.top().sum()) & np.isfinite(running)
    last = study.longest - inside[:, ::-1].argmax(axis=1)
    last = np.where(inside.any(axis=1), last, 0)
    return np.where(study.top(), lengths, np.minimum(lengths, last + 1))


ORACLES = ("sick", "own best", "top")
