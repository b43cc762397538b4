"""Reasons for sweeps that never had the guard: what a policy says of their curves."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from tune_guard.monitor import Monitor
from tune_guard.record import Outcome
from tune_guard.sweeps.objective import usable_before
from tune_guard.sweeps.readers.progress import Progress, silent
from tune_guard.sweeps.replay import reports, watched
from tune_guard.sweeps.replayed import Request, Unsaid
from tune_guard.sweeps.sweep import NO_FINDING, Problem
from tune_guard.sweeps.wording import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tune_guard.notices import Notices
    from tune_guard.policy import Policy
    from tune_guard.record import StopRecord
    from tune_guard.sweeps.sweep import Sweep, Trial


def is_foreign(sweep: Sweep) -> bool:
    """Whether no trial of a sweep has a record of the guard's."""
    return not sweep.records


def judged(
    sweep: Sweep, policy: Policy | None = None, progress: Progress = silent
) -> Sweep:
    """Return a sweep whose trials have the reasons that a policy would have given.

    The curves are replayed through the very monitor that cuts in production.
    Each trial that gets a reason so is marked: nothing had cut it. A trial that
    failed keeps its error. One that the policy finds nothing wrong with stays as it
    is; where nobody knows how it ended, that much is said of it.

    Args:
        sweep: A sweep without records, whose objective is known.

        policy: The policy; None for the default one.

        progress: Called as trials are judged.

    Returns:
        The same sweep where it has records, or no objective.

    Example:
        >>> from array import array
        >>> from tune_guard.sweeps import Curve, Curves, Sweep, Trial
        >>> curve = Curve(array("q", [1, 2]), array("d", [0.5, float("nan")]))
        >>> sweep = Sweep(source="x", engine="ray", trials=(Trial(id="a"),),
        ...               curves=Curves({"a": {"loss": curve}}))
        >>> found = judged(sweep.with_objective("loss", "min")).trials[0]
        >>> found.reason, found.step, found.replayed
        ('non_finite', 2, True)
    """
    if not is_foreign(sweep) or sweep.mode is None:
        return sweep
    policy = Request(policy=policy).policy_for(sweep).checked()
    notices, trials = Unsaid(), []
    records: dict[str, StopRecord] = {}
    for done, trial in enumerate(sweep.trials, start=1):
        record = _record(sweep, trial, policy, notices)
        if record is not None:
            records[trial.id] = record
        trials.append(_with_reason(sweep, trial, record))
        progress(done, len(sweep.trials), "trials judged")
    found = dataclasses.replace(
        sweep,
        trials=tuple(trials),
        records=records,
        problems=(*sweep.problems, *_guessed(sweep, trials)),
    )
    return found.with_objective(sweep.metric, sweep.mode)


def _guessed(sweep: Sweep, trials: Sequence[Trial]) -> list[Problem]:
    """Say that reasons were found afterwards: an honest gap like any other."""
    count = sum(trial.replayed and trial.step is not None for trial in trials)
    if not count:
        return []
    what = f"no record of the guard: reasons of {counted(count)} by replay"
    return [Problem(file=sweep.source, what=what)]


def _record(
    sweep: Sweep, trial: Trial, policy: Policy, notices: Notices
) -> StopRecord | None:
    """Return what the policy says of a trial; None when that is nothing."""
    curves = sweep.curves.of(trial.id)
    if trial.outcome is Outcome.ERROR or policy.metric not in curves:
        return None
    monitor = Monitor(
        policy.for_trial(trial.params), trial_id=trial.id, notices=notices
    )
    for step, report in reports(watched(curves, policy)):
        if monitor.observe(step, report).stop:
            break
    record = monitor.record(time="")
    return record if record.reason or record.warnings else None


def _with_reason(sweep: Sweep, trial: Trial, record: StopRecord | None) -> Trial:
    if record is None or not record.reason:
        if trial.outcome is None and sweep.metric in sweep.curves.of(trial.id):
            return dataclasses.replace(trial, reason=NO_FINDING, replayed=True)
        return trial
    return dataclasses.replace(
        trial,
        outcome=Outcome.GUARD,
        reason=record.reason,
        blame=record.blame,
        step=record.step,
        usable_before=usable_before(record, sweep.curves.of(trial.id)),
        replayed=True,
        ran_through=trial.healthy,
    )
