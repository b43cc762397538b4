"""Our policies over a recorded sweep, through the monitor that cuts in production."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.benchmarks.sweeps.data import Run, Study
from tune_guard.monitor import Monitor
from tune_guard.notices import Notices
from tune_guard.peers import Peers
from tune_guard.policy import Policy

MakePolicy = Callable[[Study, Run], Policy]


def default(study: Study, run: Run) -> Policy:
    """Return the default policy for a trial whose budget is known."""
    return Policy.default(study.objective, _mode(study), budget_steps=run.budget)


def without_budget(study: Study, run: Run) -> Policy:
    """Return the default policy for a trial whose budget is not known."""
    del run
    return Policy.default(study.objective, _mode(study))


def plateau(patience: int) -> MakePolicy:
    """Return the default policy with a plateau by patience."""

    def make(study: Study, run: Run) -> Policy:
        return Policy.default(
            study.objective, _mode(study), patience=patience, budget_steps=run.budget
        )

    return make


def thrifty(study: Study, run: Run) -> Policy:
    """Return the policy that also compares trials."""
    return Policy.thrifty(study.objective, _mode(study), budget_steps=run.budget)


def _mode(study: Study) -> str:
    return "max" if study.mode == "max" else "min"


POLICIES: dict[str, MakePolicy] = {
    "tune_guard default": default,
    "tune_guard default, budget unknown": without_budget,
    "tune_guard default + patience 20": plateau(20),
    "tune_guard thrifty": thrifty,
}


def run_guard(study: Study, make: MakePolicy) -> tuple[np.ndarray, dict[str, int]]:
    """Return how many readings of each trial were run, and the cuts by rule.

    The step axis is the number of readings of the objective; what is recorded
    between two of them is seen between reports, as on a worker.
    """
    done, reasons = [], dict[str, int]()
    notices, peers = Notices(), Peers()
    for number, run in enumerate(study.runs):
        monitor = Monitor(
            make(study, run), trial_id=str(number), notices=notices, peers=peers
        )
        executed = len(run)
        for count, _, report in run.rows(study.objective):
            step = count if study.objective in report else None
            verdict = monitor.observe(step, report)
            if verdict.stop:
                executed = max(1, count)
                reasons[verdict.reason] = reasons.get(verdict.reason, 0) + 1
                break
        else:
            monitor.finish()
        done.append(executed)
    return np.array(done), reasons
