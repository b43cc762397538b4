"""Choose how boldly to cut from a user's own past sweeps, with a promise.

Every level is replayed over the past sweeps (:mod:`tune_guard.sweeps.past`); the
boldest for which the promise holds (:mod:`tune_guard.sweeps.promise`) is chosen.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from tune_guard.exceptions import TuneGuardError
from tune_guard.policy import Policy
from tune_guard.sweeps.in_order import in_order
from tune_guard.sweeps.levels import LEVELS, Level
from tune_guard.sweeps.past import Judged, Past, judge
from tune_guard.sweeps.promise import Goal, fixed_sequence
from tune_guard.sweeps.readers import stream_sweeps
from tune_guard.sweeps.readers.progress import Progress, silent
from tune_guard.sweeps.wording import counted


class TooFewSweepsError(TuneGuardError):
    """The past sweeps are too few, or too bad, for the promise that was asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """One level on the past sweeps.

    Args:
        level: The level.

        false_kill: Mean over sweeps of the share of the best that it killed.

        saved: Mean over sweeps of the share of readings that it saved.

        p: How surprising that is if the true rate were above the limit.

        kept: Whether the promise holds for it.
    """

    level: Level
    false_kill: float
    saved: float
    p: float
    kept: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """The level that was chosen, and what the choice rests on.

    Args:
        goal: What is promised.

        tried: Every level on the past sweeps, lenient first.

        chosen: The boldest level for which the promise holds.

        policy: Its policy, on the metric that most sweeps have.

        sweeps: Sweeps that the promise rests on.

        trials: Their trials.

        small: Sweeps left out since they had too few trials that ran to an end.

        censored: Trials left out since something had cut them.

        problems: Sources and sweeps that could not be used.
    """

    goal: Goal
    tried: tuple[Tried, ...]
    chosen: Tried
    policy: Policy
    sweeps: int
    trials: int
    small: int
    censored: int
    problems: tuple[str, ...] = ()


def calibrate(
    sources: Sequence[str],
    goal: Goal,
    *,
    metric: str = "",
    mode: str = "",
    jobs: int = 1,
    progress: Progress = silent,
) -> Calibration:
    """Choose the boldest level for which the promise holds.

    Args:
        sources: What :func:`tune_guard.sweeps.load_sweep` takes.

        goal: What is to be promised.

        metric: The objective; empty for each sweep's own.

        mode: ``min`` or ``max``; empty for each sweep's own.

        jobs: Processes to use; each holds one sweep at a time.

        progress: Called with the sweeps done, of how many, and a word.

    Raises:
        TooFewSweepsError: If the promise cannot be made; it says what is missing.
    """
    past = Past()
    work = functools.partial(judge, request=(metric, mode), goal=goal)
    for source in sources:
        try:
            count, sweeps = stream_sweeps(source, progress=progress)
            for number, one in enumerate(in_order(work, sweeps, min(jobs, count)), 1):
                progress(number, count, "sweeps judged")
                past.take(one, fewest_trials=goal.fewest_trials)
        except TuneGuardError as error:
            past.problems.append(str(error))
    return chosen_from(past, goal)


def chosen_from(past: Past, goal: Goal) -> Calibration:
    """Test the levels in their order, and take the boldest that passes.

    Raises:
        TooFewSweepsError: If none does.
    """
    tried = fixed_sequence(
        [one.losses for one in past.judged], goal.false_kill, 1 - goal.confidence
    )
    count = len(past.judged)
    if count < goal.fewest_sweeps:
        raise TooFewSweepsError(_too_few(past, goal))
    saved = [[one.saved[i] for one in past.judged] for i in range(len(LEVELS))]
    rows = tuple(
        Tried(level=level, false_kill=rate, saved=math.fsum(s) / count, p=p, kept=kept)
        for level, (rate, p, kept), s in zip(LEVELS, tried, saved, strict=True)
    )
    passed = [row for row in rows if row.kept]
    if not passed:
        raise TooFewSweepsError(_too_bad(rows[0], count, goal))
    return Calibration(
        goal=goal,
        tried=rows,
        chosen=passed[-1],
        policy=_policy(past.judged, passed[-1].level),
        sweeps=count,
        trials=sum(one.trials for one in past.judged),
        small=past.small,
        censored=sum(one.censored for one in past.judged),
        problems=tuple(past.problems),
    )


def _policy(judged: Sequence[Judged], level: Level) -> Policy:
    (metric, mode), _ = Counter(one.objective for one in judged).most_common(1)[0]
    budgets = {one.budget for one in judged}
    return Policy.default(
        metric,
        mode,
        rules=level.rules,
        budget_steps=budgets.pop() if len(budgets) == 1 else None,
    )


def _too_few(past: Past, goal: Goal) -> str:
    count, needed = len(past.judged), goal.fewest_sweeps
    sweeps = counted(count, "sweep")
    possible = 1 - (1 - goal.confidence) ** (1 / count) if count else 1.0
    msg = (
        f"{sweeps} of at least {goal.fewest_trials} uncut trials: too few to"
        f" promise a false-kill rate of at most {goal.false_kill:.2%} with"
        f" {goal.confidence:.0%} confidence: even without a single false kill that"
        f" needs {needed}."
    )
    if possible < 1:
        msg += f" They could carry `--false-kill {math.ceil(1000 * possible) / 1000}`."
    if past.small:
        msg += f" Fewer such trials had {counted(past.small, 'sweep')}."
    problems = past.problems[:3]
    return " ".join([msg, *problems] if count else [*problems, msg])


def _too_bad(first: Tried, count: int, goal: Goal) -> str:
    return (
        f"Already the most lenient level killed {first.false_kill:.2%} of the best"
        f" trials of {counted(count, 'sweep')}, mean over sweeps: too many to promise"
        f" at most {goal.false_kill:.2%} with {goal.confidence:.0%} confidence. Allow"
        " more with `--false-kill`, or look at the cuts: `tune-guard replay --html`."
    )
