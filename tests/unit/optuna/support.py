"""Rules, pruners and storages that the tests of the Optuna adapter share."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import optuna
from optuna.pruners import BasePruner
from optuna.storages import InMemoryStorage
from optuna.trial import TrialState, create_trial

from tune_guard.policy import Policy
from tune_guard.rules import NonFinite
from tune_guard.rules.base import Context, Detector, Rule
from tune_guard.verdict import Blame, Finding, Tier

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

    from tune_guard.observation import Observation
    from tune_guard.optuna import GuardPruner

NAN = float("nan")
LEARNS = [0.05 * step for step in range(20)]
SLOW = [0.01 + 0.001 * step for step in range(20)]
"""Learns, but far behind the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TooHot(Rule):
    """Blames the machine as soon as its GPU is above 90 degrees."""

    id: ClassVar[str] = "too_hot"
    tier: ClassVar[Tier] = Tier.FATAL
    blame: ClassVar[Blame] = Blame.INFRASTRUCTURE

    def start(self, context: Context) -> Detector:
        """Return a fresh detector."""
        return _TooHotDetector(self, context)


class _TooHotDetector(Detector):
    __slots__ = ()

    def update(self, observation: Observation) -> Finding | None:
        heat = observation.gpu_temperature_celsius
        if heat is None or heat <= 90:
            return None
        return self.finding(
            observation,
            metric="gpu_temperature_celsius",
            value=heat,
            threshold=90.0,
            message=f"The GPU is at {heat:g} degrees. Cool it.",
        )


def policy(*rules: Rule, metric: str = "value", **more: Any) -> Policy:
    """Return a policy of few rules; NaN alone when none is named."""
    return Policy(metric=metric, rules=rules or (NonFinite(),), **more)


def study_of(pruner: BasePruner, **more: Any) -> optuna.Study:
    """Return a study with a sampler that learns nothing, unless told."""
    return optuna.create_study(
        pruner=pruner, **{"sampler": optuna.samplers.RandomSampler(seed=0), **more}
    )


class ScriptedPruner(BasePruner):
    """Prunes at the steps it is told, and remembers when it was asked."""

    def __init__(self, *steps: int) -> None:
        self.steps = steps
        self.asked: list[int] = []

    def prune(self, study: optuna.Study, trial: optuna.trial.FrozenTrial) -> bool:
        """Prune as told."""
        step = max(trial.intermediate_values, default=-1)
        self.asked.append(step)
        return step in self.steps


class CountingStorage(InMemoryStorage):
    """Counts what is written, and refuses attributes as it is told."""

    def __init__(self, refuse: Callable[[], None] = lambda: None) -> None:
        super().__init__()
        self.written: list[str] = []
        self._refuse = refuse

    def set_trial_user_attr(self, trial_id: int, key: str, value: Any) -> None:
        """Write, or refuse to."""
        self._refuse()
        self.written.append(key)
        super().set_trial_user_attr(trial_id, key, value)

    def set_trial_system_attr(self, trial_id: int, key: str, value: Any) -> None:
        """Write."""
        self.written.append(key)
        super().set_trial_system_attr(trial_id, key, value)


def pickled(thing: Any) -> Any:
    """Return what another process would get of it."""
    return pickle.loads(pickle.dumps(thing))  # noqa: S301 - made here


def notices(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return the warnings that the guard gave."""
    return [
        record.getMessage()
        for record in caplog.records
        if record.name == "tune_guard" and record.levelname == "WARNING"
    ]


def steps_until_pruned(trial: optuna.Trial, values: list[float]) -> int | None:
    """Report values from step 0 on; return the step at which the trial was cut."""
    for step, value in enumerate(values):
        trial.report(value, step)
        if trial.should_prune():
            return step
    return None


def thrifty(**fields: Any) -> Policy:
    """Return a policy that compares trials."""
    return Policy.thrifty("value", "max", **{"budget_steps": 20, **fields})


def study_with(
    pruner: GuardPruner, *, finished: int = 3, state: TrialState = TrialState.COMPLETE
) -> optuna.Study:
    """Return a study in which trials that learn have ended."""
    study = study_of(pruner, direction="maximize")
    values = dict(enumerate(LEARNS))
    value = LEARNS[-1] if state == TrialState.COMPLETE else None
    for _ in range(finished):
        study.add_trial(
            create_trial(state=state, value=value, intermediate_values=values)
        )
    return study


def cut_of(study: optuna.Study, values: list[float]) -> int | None:
    """Return the step at which a new trial with these reports is cut."""
    return steps_until_pruned(study.ask(), values)
