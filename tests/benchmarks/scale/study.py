"""A study that grows to a hundred thousand finished trials, behind a guard."""

from __future__ import annotations

import statistics
import time

import optuna
import psutil
from optuna.trial import FrozenTrial, TrialState, create_trial

from tests.benchmarks.optuna_pruner import Forgetful, value_at
from tests.benchmarks.scale.limits import Limits
from tune_guard import Policy
from tune_guard.optuna import GuardPruner

QUESTIONS = 2_000
LENGTH = 20
MIB = 2**20


def measure(limits: Limits, finished: int = 100_000) -> None:
    """Note what a question costs at each tenth of the study."""
    budget = QUESTIONS + 1
    policies = {
        "default": Policy.default("value", "min"),
        "thrifty": Policy.thrifty("value", "min", budget_steps=budget),
    }
    for name, policy in policies.items():
        _measure(limits, name, policy, finished)


def _measure(limits: Limits, name: str, policy: Policy, finished: int) -> None:
    study = optuna.create_study(pruner=GuardPruner(policy=policy), storage=Forgetful())
    process, deciles = psutil.Process(), []
    for tenth in range(10):
        _finish(study, finished // 10, tenth)
        deciles.append(_question_us(study))
        limits.say(
            f"{name}, {(tenth + 1) * finished // 10:,} finished trials:"
            f" {deciles[-1]:.1f} µs a question,"
            f" {process.memory_info().rss / MIB:.0f} MiB in all"
        )
    limits.at_most(f"{name}: last decile / first decile", deciles[-1] / deciles[0], 1.2)


def _finish(study: optuna.Study, trials: int, tenth: int) -> None:
    values = {step: value_at(step) + 1 + tenth / 100 for step in range(LENGTH)}
    done: FrozenTrial = create_trial(
        state=TrialState.COMPLETE, value=values[LENGTH - 1], intermediate_values=values
    )
    study.add_trials([done] * trials)


def _question_us(study: optuna.Study) -> float:
    """Return the median CPU time of a question; the first reads the study, once."""
    trial, took = study.ask(), []
    for step in range(QUESTIONS):
        trial.report(value_at(step), step)
        began_ns = time.thread_time_ns()
        trial.should_prune()
        took.append(time.thread_time_ns() - began_ns)
    study.tell(trial, state=TrialState.FAIL)
    return statistics.median(took) / 1e3
