"""Our policies over a recorded sweep, through the monitor that cuts in production."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.benchmarks.sweeps.data import Run, Study
from tests.benchmarks.sweeps.peers import Peer
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


def watching(study: Study, run: Run) -> Policy:
    """Return the default policy with ``behind`` as a veto on what a peer cuts."""
    return default(study, run).watching("behind")


def _mode(study: Study) -> str:
    return "max" if study.mode == "max" else "min"


POLICIES: dict[str, MakePolicy] = {
    "tune_guard default": default,
    "tune_guard default, budget unknown": without_budget,
    "tune_guard default + patience 20": plateau(20),
    "tune_guard thrifty": thrifty,
}


def run_guard(
    study: Study, make: MakePolicy, peer: Peer | None = None
) -> tuple[np.ndarray, dict[str, int]]:
    """Return how many readings of each trial were run, and the cuts by rule.

    The step axis is the number of readings of the objective; what is recorded
    between two of them is seen between reports, as on a worker.

    Args:
        study: The sweep; one worker runs trial after trial.

        make: Makes the policy of a trial.

        peer: Somebody whose cuts need the consent of the rule ``behind``; its
            wish stands until the rule agrees.
    """
    done, reasons = [], dict[str, int]()
    notices, finished = Notices(), Peers()
    for number, run in enumerate(study.runs):
        monitor = Monitor(
            make(study, run), trial_id=str(number), notices=notices, peers=finished
        )
        if peer is not None:
            peer.start(run, number)
        executed, reason = _watch(study, run, monitor, peer)
        if not reason:
            monitor.finish()
        else:
            reasons[reason] = reasons.get(reason, 0) + 1
        if peer is not None:
            peer.end(cut=bool(reason))
        done.append(executed)
    return np.array(done), reasons


def _watch(
    study: Study, run: Run, monitor: Monitor, peer: Peer | None
) -> tuple[int, str]:
    """Return the readings that one trial ran, and who cut it."""
    wished = False
    for count, _, report in run.rows(study.objective):
        fresh = study.objective in report
        verdict = monitor.observe(count if fresh else None, report)
        if verdict.stop:
            return max(1, count), verdict.reason
        if fresh and peer is not None:
            wished = wished or peer.report(count - 1, report[study.objective])
            if wished and monitor.is_against("behind"):
                return count, type(peer).__name__
    return len(run), ""
