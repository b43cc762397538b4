"""Choose how boldly to cut from a user's own past sweeps, with a promise.

The promise is about future sweeps: on average over them, of each sweep's best
trials at most the given share is cut before its own best. It holds with the given
confidence over the draw of the past sweeps, for whatever distribution they come
from, as long as future sweeps come from the same. A sweep is the unit: the trials
of one sweep resemble each other, so that a thousand of them are one sample.

Method: *Learn then Test* by fixed-sequence testing. The levels are tried from
lenient to bold, each as the hypothesis "its false-kill rate is above the limit",
at the same error rate; the first that cannot be refuted ends the sequence. The
chance that any level passes wrongly is then below 1 - confidence.

Source: A. N. Angelopoulos, S. Bates, E. J. Candes, M. I. Jordan, L. Lei, Learn then
    Test: calibrating predictive algorithms to achieve risk control, Annals of
    Applied Statistics 19 (2025), arXiv:2110.01052; the p-values: see
    :mod:`tune_guard.sweeps.risk`.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tune_guard.exceptions import ConfigError, TuneGuardError
from tune_guard.policy import Policy
from tune_guard.record import Outcome
from tune_guard.rules.base import Mode
from tune_guard.sweeps.in_order import in_order
from tune_guard.sweeps.levels import LEVELS, Level
from tune_guard.sweeps.objective import resolve
from tune_guard.sweeps.readers import stream_sweeps
from tune_guard.sweeps.readers.progress import Progress, silent
from tune_guard.sweeps.replay import TrialReplay, replay
from tune_guard.sweeps.replayed import Request, Unsaid
from tune_guard.sweeps.risk import fewest, p_value
from tune_guard.sweeps.scoring import TOP_RATIO, best_of, saved_ratio
from tune_guard.sweeps.sweep import Sweep, Trial
from tune_guard.sweeps.wording import counted

_UNCUT = frozenset({Outcome.COMPLETED, Outcome.CRITERION, Outcome.ERROR})


class TooFewSweepsError(TuneGuardError):
    """The past sweeps are too few, or too bad, for the promise that was asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """What is to be promised.

    Args:
        false_kill: Largest share of a sweep's best trials that may be cut before
            their own best, as the mean over future sweeps; above 0, below 1.

        confidence: How sure the promise is, at least 0.5 and below 1.

        top: Share of a sweep that counts as its best.

    Raises:
        ConfigError: If a value cannot be meant.
    """

    false_kill: float = 0.01
    confidence: float = 0.9
    top: float = TOP_RATIO

    def __post_init__(self) -> None:
        _need("false_kill", 0 < self.false_kill < 1, "between 0 and 1", self.false_kill)
        sure = 0.5 <= self.confidence < 1  # noqa: PLR2004 - below, it is no promise
        _need("confidence", sure, "at least 0.5 and below 1", self.confidence)
        _need("top", 0 < self.top <= 1, "above 0 and up to 1", self.top)

    @property
    def fewest_sweeps(self) -> int:
        """Sweeps without any false kill that the promise needs."""
        return fewest(self.false_kill, self.confidence)

    @property
    def fewest_trials(self) -> int:
        """Trials of a sweep from which on it counts: its best are at least one."""
        return math.ceil(1 / self.top)


def _need(name: str, ok: bool, what: str, value: object) -> None:  # noqa: FBT001
    if not ok:
        msg = f"`{name}` must be {what}, but got {value!r}. 0.01 is one in a hundred."
        raise ConfigError(msg)


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
    work = functools.partial(judge, request=(metric, mode), top=goal.top)
    for source in sources:
        try:
            count, sweeps = stream_sweeps(source, progress=progress)
            for number, one in enumerate(in_order(work, sweeps, min(jobs, count)), 1):
                progress(number, count, "sweeps judged")
                _take(past, one, goal)
        except TuneGuardError as error:
            past.problems.append(str(error))
    return chosen_from(past, goal)


def judge(sweep: Sweep, request: tuple[str, str], top: float) -> Judged:
    """Replay every level over one sweep, over the trials that nothing had cut.

    Args:
        sweep: A recorded sweep.

        request: Metric and mode, empty for the sweep's own.

        top: Share of the sweep that counts as its best.
    """
    kept = tuple(trial for trial in sweep.trials if _ran_on(trial))
    censored = len(sweep.trials) - len(kept)
    try:
        sweep = resolve(dataclasses.replace(sweep, trials=kept), *request)
        metric, mode = sweep.metric, sweep.mode or "min"
        if len(kept) < math.ceil(1 / top):
            return Judged((), (), len(kept), censored, (metric, mode), None)
        runs = [_replayed(sweep, level) for level in LEVELS]
    except TuneGuardError as error:
        return Judged((), (), 0, censored, ("", "min"), None, str(error))
    return Judged(
        losses=tuple(loss_of(run, top) for run in runs),
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


def _take(past: Past, one: Judged, goal: Goal) -> None:
    if one.problem:
        past.problems.append(one.problem)
    elif one.trials < goal.fewest_trials or not one.losses:
        past.small += 1
    else:
        past.judged.append(one)


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


def fixed_sequence(
    losses: Sequence[Sequence[float]], limit: float, error: float
) -> list[tuple[float, float, bool]]:
    """Test levels one after another, until one cannot be refuted.

    Args:
        losses: For each sweep, the loss of each level, lenient first.

        limit: Largest mean loss.

        error: Chance that any level passes wrongly.

    Returns:
        For each level its mean loss, its p-value and whether it passed.

    Example:
        >>> rows = fixed_sequence([(0.0, 1.0, 0.0)] * 30, limit=0.1, error=0.1)
        >>> [kept for _, _, kept in rows]
        [True, False, False]
    """
    going, found = True, []
    for level in zip(*losses, strict=True):
        p = p_value(level, limit)
        going = going and p <= error
        found.append((math.fsum(level) / len(level), p, going))
    return found


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
    return " ".join([msg, *past.problems[:3]])


def _too_bad(first: Tried, count: int, goal: Goal) -> str:
    return (
        f"Already the most lenient level killed {first.false_kill:.2%} of the best"
        f" trials of {counted(count, 'sweep')}, mean over sweeps: too many to promise"
        f" at most {goal.false_kill:.2%} with {goal.confidence:.0%} confidence. Allow"
        " more with `--false-kill`, or look at the cuts: `tune-guard replay --html`."
    )
