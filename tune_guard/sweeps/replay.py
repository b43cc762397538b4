"""Run the monitor that cuts in production over recorded sweeps, and count.

What a policy would have saved and whom it would have killed is known for
trials that ran to their end: replay feeds their reports, in order, to the very
:class:`~tune_guard.monitor.Monitor` of the live wing.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tune_guard.monitor import Monitor
from tune_guard.notices import Notices
from tune_guard.observation import SIGNALS
from tune_guard.peers import Peers
from tune_guard.policy import Policy
from tune_guard.record import CUTS
from tune_guard.sweeps.curves import Curve
from tune_guard.sweeps.sweep import Sweep, Trial


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialReplay:
    """One recorded trial under a policy.

    Args:
        trial: Id of the trial.

        sweep: Name of its sweep.

        reports: Readings of the objective in the whole recording.

        executed: Readings of the objective up to the cut; all when not cut.

        reason: Rule that cut, or empty.

        step: Step of the cut, or None.

        warnings: Rules that warned, with the step of their first warning.

        best: Best score of the whole recording (higher is better), or None.

        best_at: Readings up to and with the best one.

        kept: Best score up to the cut, or None.

        sick: Whether the trial ended non-finite or worse than it started.

        cut_before: What had cut it in the recording, or empty: no reading is left
            after that.
    """

    trial: str
    sweep: str
    reports: int
    executed: int
    reason: str
    step: int | None
    warnings: Mapping[str, int]
    best: float | None
    best_at: int
    kept: float | None
    sick: bool
    cut_before: str = ""

    @property
    def cut(self) -> bool:
        """Whether the policy would have cut it before its end."""
        return bool(self.reason) and self.executed < self.reports

    @property
    def premature(self) -> bool:
        """Whether it was cut before it reached its own best."""
        return self.cut and self.executed < self.best_at

    def only(self, reason: str) -> TrialReplay:
        """Return what is left when cuts for other reasons are undone."""
        if self.reason == reason:
            return self
        return replace(
            self, reason="", step=None, executed=self.reports, kept=self.best
        )


def replay(
    sweep: Sweep, policy: Policy, notices: Notices | None = None
) -> list[TrialReplay]:
    """Replay every trial of one sweep that reported the objective, in order.

    A trial that the policy does not cut is a peer of those that come after it.

    Args:
        sweep: A recorded sweep whose trials ran to their end. Trials that
            something cut count as if they had ended there.

        policy: The policy to judge; its metric is the objective.

        notices: Where missing keys are named, once each.

    Raises:
        ConfigError: If the policy's mode is not known.
    """
    policy.checked()
    notices = Notices() if notices is None else notices
    peers = Peers()
    found = (
        replay_trial(trial, sweep.curves.of(trial.id), policy, notices, peers)
        for trial in sweep.trials
    )
    return [trial for trial in found if trial is not None]


def replay_trial(
    trial: Trial,
    curves: Mapping[str, Curve],
    policy: Policy,
    notices: Notices,
    peers: Peers | None = None,
) -> TrialReplay | None:
    """Replay one trial; None when it never reported the objective."""
    objective = curves.get(policy.metric)
    if objective is None or not len(objective):
        return None
    own = policy.for_trial(trial.params)
    monitor = Monitor(own, trial_id=trial.id, notices=notices, peers=peers)
    verdict_step, reason = None, ""
    for step, report in reports(watched(curves, policy)):
        verdict = monitor.observe(step, report)
        if verdict.stop:
            verdict_step, reason = step, verdict.reason
            break
    else:
        monitor.finish()
    return _measured(trial, objective, monitor, reason, verdict_step)


def watched(curves: Mapping[str, Curve], policy: Policy) -> dict[str, Curve]:
    """Return the curves that the policy looks at: the others cost time only."""
    names = {policy.metric, *policy.extra_keys(), *policy.ignore_where}
    names |= {alias for signal in SIGNALS for alias in policy.keys.aliases(signal)}
    if policy.fresh_key is not None:
        names.add(policy.fresh_key)
    return {name: curve for name, curve in curves.items() if name.strip() in names}


def reports(curves: Mapping[str, Curve]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Merge curves back into reports: everything known at a step, in order."""
    if len(curves) == 1:
        ((name, curve),) = curves.items()
        for step, value in zip(curve.steps, curve.values, strict=True):
            yield step, {name: value}
        return
    streams = [
        zip(curve.steps, [name] * len(curve), curve.values, strict=True)
        for name, curve in curves.items()
    ]
    at: int | None = None
    report: dict[str, Any] = {}
    for step, name, value in heapq.merge(*streams, key=_step_of):
        if step != at:
            if at is not None:
                yield at, report
            at, report = step, {}
        report[name] = value
    if at is not None:
        yield at, report


def _step_of(row: tuple[int, str, float]) -> int:
    return row[0]


def _measured(
    trial: Trial,
    objective: Curve,
    monitor: Monitor,
    reason: str,
    cut_step: int | None,
) -> TrialReplay:
    sign = 1.0 if monitor.policy.mode == "max" else -1.0
    scores = [sign * value for value in objective.values]
    executed = len(scores)
    if cut_step is not None:
        executed = max(1, sum(step <= cut_step for step in objective.steps))
    finite = [(score, -i) for i, score in enumerate(scores) if math.isfinite(score)]
    best, at = max(finite, default=(None, 0))
    kept = max((s for s, i in finite if -i < executed), default=None)
    return TrialReplay(
        trial=trial.id,
        sweep=trial.sweep,
        reports=len(scores),
        executed=executed,
        reason=reason,
        step=cut_step,
        warnings=dict(monitor.warnings),
        best=best,
        best_at=1 - at if finite else 0,
        kept=kept,
        sick=_is_sick(scores, finite),
        cut_before=trial.reason if trial.outcome in CUTS else "",
    )


def _is_sick(scores: Sequence[float], finite: Sequence[tuple[float, int]]) -> bool:
    """Whether it ended non-finite, or ended worse than its first finite reading."""
    if not math.isfinite(scores[-1]) or len(finite) < 2:  # noqa: PLR2004 - first and last
        return True
    return finite[-1][0] < finite[0][0]
