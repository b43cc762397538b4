"""Past sweeps, judged: what every level from lenient to bold would have cut there."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tune_guard.exceptions import TuneGuardError
from tune_guard.policy import Policy
from tune_guard.record import Outcome
from tune_guard.rules.base import Mode
from tune_guard.sweeps.levels import LEVELS, Level
from tune_guard.sweeps.objective import resolve
from tune_guard.sweeps.promise import Goal
from tune_guard.sweeps.replay import TrialReplay, replay
from tune_guard.sweeps.replayed import Request, Unsaid
from tune_guard.sweeps.scoring import best_of, saved_ratio
from tune_guard.sweeps.sweep import Sweep, Trial

_UNCUT = frozenset({Outcome.COMPLETED, Outcome.CRITERION, Outcome.ERROR})


class Judged(NamedTuple):
    """What every level did to one sweep."""

    losses: tuple[float, ...]
    saved: tuple[float, ...]
    trials: int
    censored: int
    objective: tuple[str, Mode]
    budget: int | None
    problem: str = ""


@dataclass(slots=True)
class Past:
    """The past sweeps, judged."""

    judged: list[Judged] = field(default_factory=list)
    small: int = 0
    problems: list[str] = field(default_factory=list)

    def take(self, one: Judged, *, fewest_trials: int) -> None:
        """Take in a sweep, or note why it does not count."""
        if one.problem:
            self.problems.append(one.problem)
        elif one.trials < fewest_trials:
            self.small += 1
        else:
            self.judged.append(one)


def judge(sweep: Sweep, request: tuple[str, str], goal: Goal) -> Judged:
    """Replay every level over one sweep, over the trials that nothing had cut.

    Args:
        sweep: A recorded sweep.

        request: Metric and mode, empty for the sweep's own.

        goal: Says what share of the sweep counts as its best. A sweep with fewer
            trials than it asks for is not replayed.
    """
    kept = tuple(trial for trial in sweep.trials if _ran_on(trial))
    censored = len(sweep.trials) - len(kept)
    try:
        sweep = resolve(dataclasses.replace(sweep, trials=kept), *request)
        metric, mode = sweep.metric, sweep.mode or "min"
        if len(kept) < goal.fewest_trials:
            return Judged((), (), len(kept), censored, (metric, mode), None)
        runs = [_replayed(sweep, level) for level in LEVELS]
    except TuneGuardError as error:
        return Judged((), (), 0, censored, ("", "min"), None, str(error))
    return Judged(
        losses=tuple(loss_of(run, goal.top) for run in runs),
        saved=tuple(saved_ratio(run) for run in runs),
        trials=len(runs[0]),
        censored=censored,
        objective=(metric, mode),
        budget=Request().policy_for(sweep).budget_steps,
    )


def _ran_on(trial: Trial) -> bool:
    """Whether nothing cut the trial; a plain table of curves says nothing of it."""
    return trial.outcome in _UNCUT or (trial.outcome is None and not trial.state)


def _replayed(sweep: Sweep, level: Level) -> list[TrialReplay]:
    policy = Policy.default(sweep.metric, sweep.mode, rules=level.rules)
    return replay(sweep, Request(policy=policy).policy_for(sweep), Unsaid())


def loss_of(trials: Sequence[TrialReplay], top: float) -> float:
    """Return the share of a sweep's best trials that were cut before their best."""
    best = best_of(trials, top)
    return sum(trial.premature for trial in best) / len(best) if best else 0.0
