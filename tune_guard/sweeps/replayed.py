"""Replay a policy over whole sources: sweep by sweep, on one core or several."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from tune_guard.exceptions import TuneGuardError
from tune_guard.notices import Notices
from tune_guard.policy import Policy
from tune_guard.sweeps.in_order import in_order
from tune_guard.sweeps.objective import resolve
from tune_guard.sweeps.readers import stream_sweeps
from tune_guard.sweeps.readers.progress import Progress, silent
from tune_guard.sweeps.replay import TrialReplay, replay
from tune_guard.sweeps.sweep import Sweep

Draw: TypeAlias = Callable[[Sweep, Sequence[TrialReplay]], Any]
"""Draws a replayed sweep while its curves are in memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What to replay over every sweep.

    Args:
        policy: The policy; None for the default one. Its metric and mode give
            way to those of a sweep that does not report its metric.

        metric: The objective; empty for each sweep's own.

        mode: ``min`` or ``max``; empty for each sweep's own.

        budget_steps: Steps of a full trial; None for the policy's, else those
            to which the sweep's longest curve of the objective goes.
    """

    policy: Policy | None = None
    metric: str = ""
    mode: str = ""
    budget_steps: int | None = None

    def policy_for(self, sweep: Sweep) -> Policy:
        """Return the policy for one sweep whose objective is known."""
        policy = self.policy
        if policy is None:
            policy = Policy.default(sweep.metric, sweep.mode)
        elif policy.metric not in sweep.curves.metrics():
            policy = dataclasses.replace(policy, metric=sweep.metric, mode=sweep.mode)
        budget = self.budget_steps or policy.budget_steps or sweep.budget_steps
        if budget is None:
            # Of the objective's own curves: other metrics may count other steps.
            curves = (sweep.curves.of(t.id).get(policy.metric) for t in sweep.trials)
            budget = max((c.steps[-1] for c in curves if c), default=0)
        return dataclasses.replace(policy, budget_steps=max(1, budget))


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """Replays of all sweeps of all sources, and what could not be replayed.

    Args:
        sweeps: The replayed trials by sweep.

        problems: Sources and sweeps that could not be replayed, and why.

        notices: What the monitors had to say, each thing once.

        figures: What was drawn of the sweeps, where that was asked for.
    """

    sweeps: dict[str, list[TrialReplay]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    notices: dict[str, str] = field(default_factory=dict)
    figures: dict[str, Any] = field(default_factory=dict)


class Unsaid(Notices):
    """Notices that are kept and not logged: every sweep of a source says the same."""

    def once(self, topic: str, message: str) -> bool:
        """Keep a message, unless there is one on the topic."""
        return self.messages.setdefault(topic, message) is message


def replay_sources(
    sources: Sequence[str],
    request: Request,
    *,
    jobs: int = 1,
    draw: Draw | None = None,
    progress: Progress = silent,
) -> Replayed:
    """Replay every sweep of every source.

    Args:
        sources: What :func:`tune_guard.sweeps.load_sweep` takes.

        request: What to replay.

        jobs: Processes to use; each holds one sweep at a time.

        draw: Draws each sweep; a function that can be pickled.

        progress: Called with the sweeps done, of how many, and a word.

    Returns:
        The replays by sweep. A source or sweep that cannot be replayed is
        named among the problems.
    """
    found = Replayed()
    work = functools.partial(_replay_one, request=request, draw=draw)
    for source in sources:
        try:
            count, sweeps = stream_sweeps(source, progress=progress)
            done = in_order(work, sweeps, min(jobs, count))
            for number, one in enumerate(done, start=1):
                progress(number, count, "sweeps replayed")
                _take(found, source, one)
        except TuneGuardError as error:
            found.problems.append(str(error))
    return found


class _Done(NamedTuple):
    name: str
    trials: list[TrialReplay]
    problem: str
    notices: dict[str, str]
    figure: Any = None


def _take(found: Replayed, source: str, one: _Done) -> None:
    found.notices.update(one.notices)
    if one.problem:
        found.problems.append(one.problem)
        return
    name = f"{source}:{one.name}" if one.name else source
    found.sweeps[name] = one.trials
    if one.figure is not None:
        found.figures[name] = one.figure


def _replay_one(sweep: Sweep, request: Request, draw: Draw | None) -> _Done:
    notices = Unsaid()
    try:
        sweep = resolve(sweep, request.metric, request.mode)
        trials = replay(sweep, request.policy_for(sweep), notices)
    except TuneGuardError as error:
        return _Done(sweep.name, [], str(error), notices.messages)
    figure = draw(sweep, trials) if draw else None
    return _Done(sweep.name, trials, "", notices.messages, figure)
