"""What a replayed policy saved and whom it killed: counts, rates, intervals."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tune_guard.sweeps.replay import TrialReplay

TOP_RATIO = 0.1
"""A false kill concerns the best tenth of a sweep, at least one trial."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """Figures of one policy, or of one of its rules, over recorded sweeps.

    Args:
        sweeps: Sweeps replayed.

        trials: Trials replayed.

        cut: Trials cut.

        saved_ratio: Share of the objective's readings that were not run, as the
            mean over sweeps (a large sweep counts as much as a small one).

        top: Trials in the final best tenth of their sweep.

        false_kills: Trials among ``top`` that were cut before their own best.

        false_kill_ci: 95% Wilson interval of the false-kill rate.

        premature: Trials, of any rank, cut before their own best.

        best_lost: Sweeps whose best value was not reached by any trial.

        sick: Trials that ended non-finite or worse than they started.

        sick_cut: Of these, trials that were cut.

        sick_saved_ratio: Share of their readings that was not run.

        sick_cut_at_ratio: Median share of its run at which a sick trial was cut.
    """

    sweeps: int
    trials: int
    cut: int
    saved_ratio: float
    top: int
    false_kills: int
    false_kill_ci: tuple[float, float]
    premature: int
    best_lost: int
    sick: int
    sick_cut: int
    sick_saved_ratio: float
    sick_cut_at_ratio: float | None

    @property
    def false_kill_ratio(self) -> float:
        """Share of the best trials that were cut before their own best."""
        return self.false_kills / self.top if self.top else 0.0


def score(replays: Sequence[Sequence[TrialReplay]], *, top: float = TOP_RATIO) -> Score:
    """Count what a policy did.

    Args:
        replays: The replayed trials of each sweep.

        top: Share of a sweep whose cuts are false kills.

    Returns:
        The figures over all sweeps that have a trial.
    """
    sweeps = [trials for trials in replays if trials]
    everyone = [trial for trials in sweeps for trial in trials]
    best = [trial for trials in sweeps for trial in best_of(trials, top)]
    kills = sum(trial.premature for trial in best)
    sick = [trial for trial in everyone if trial.sick]
    ends = [trial.executed / trial.reports for trial in sick if trial.cut]
    return Score(
        sweeps=len(sweeps),
        trials=len(everyone),
        cut=sum(trial.cut for trial in everyone),
        saved_ratio=_mean(map(saved_ratio, sweeps)),
        top=len(best),
        false_kills=kills,
        false_kill_ci=wilson(kills, len(best)),
        premature=sum(trial.premature for trial in everyone),
        best_lost=sum(map(_lost_best, sweeps)),
        sick=len(sick),
        sick_cut=len(ends),
        sick_saved_ratio=saved_ratio(sick),
        sick_cut_at_ratio=statistics.median(ends) if ends else None,
    )


def by_rule(
    replays: Sequence[Sequence[TrialReplay]], *, top: float = TOP_RATIO
) -> dict[str, Score]:
    """Count for each rule alone what its cuts did, most cuts first.

    A trial that another rule cut counts as run to its end.
    """
    reasons = {t.reason for trials in replays for t in trials if t.cut}
    scores = {
        reason: score([[t.only(reason) for t in trials] for trials in replays], top=top)
        for reason in reasons
    }
    return dict(sorted(scores.items(), key=lambda item: -item[1].cut))


def best_of(trials: Sequence[TrialReplay], top: float) -> list[TrialReplay]:
    """Return the best share of a sweep by final best value, at least one trial.

    Of equal values the one that was reached earlier ranks first.
    """
    ranked = [trial for trial in trials if trial.best is not None]
    ranked.sort(key=lambda trial: (-(trial.best or 0.0), trial.best_at))
    return ranked[: max(1, int(top * len(trials)))]


def saved_ratio(trials: Sequence[TrialReplay]) -> float:
    """Return the share of the objective's readings that were not run."""
    reports = sum(trial.reports for trial in trials)
    executed = sum(trial.executed for trial in trials)
    return 1 - executed / reports if reports else 0.0


def wilson(hits: int, of: int, z: float = 1.96) -> tuple[float, float]:
    """Return the Wilson score interval of a share, 95% by default.

    Source: E. B. Wilson, Probable inference, the law of succession, and
        statistical inference, JASA 22 (1927).

    Example:
        >>> low, high = wilson(0, 100)
        >>> round(low, 3), round(high, 3)
        (0.0, 0.037)
    """
    if not of:
        return (0.0, 1.0)
    share, scale = hits / of, 1 + z * z / of
    half = z * math.sqrt(share * (1 - share) / of + z * z / (4 * of * of)) / scale
    middle = (share + z * z / (2 * of)) / scale
    return (max(0.0, middle - half), min(1.0, middle + half))


def _lost_best(trials: Sequence[TrialReplay]) -> bool:
    """Whether every trial that reached the sweep's best value was cut before it."""
    best = max((t.best for t in trials if t.best is not None), default=None)
    if best is None:
        return False
    return all(t.premature for t in trials if t.best == best)


def _mean(values: Iterable[float]) -> float:
    values = list(values)
    return sum(values) / len(values) if values else 0.0
