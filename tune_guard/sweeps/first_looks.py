"""The trials that a person should look at first, each with its why."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tune_guard.record import Outcome
from tune_guard.sweeps.objective import rank_value
from tune_guard.verdict import Blame

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tune_guard.record import StopRecord
    from tune_guard.sweeps.sweep import Sweep, Trial

MOST = 12
_MOST_OF_A_KIND = 3
_SICK = frozenset({Outcome.GUARD, Outcome.ERROR})


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstLook:
    """One trial that deserves a look.

    Args:
        trial: The trial.

        why: Why it deserves one.

        record: What is stored about its end, or None.
    """

    trial: Trial
    why: str
    record: StopRecord | None


def ranked(sweep: Sweep) -> list[Trial]:
    """Return the trials that have a finite objective, the best first."""
    if sweep.mode is None:
        return []
    sign = 1.0 if sweep.mode == "min" else -1.0
    with_value = [
        (sign * value, position, trial)
        for position, trial in enumerate(sweep.trials)
        if (value := rank_value(trial, sweep.metric)) is not None
        and math.isfinite(value)
    ]
    return [trial for *_, trial in sorted(with_value, key=lambda item: item[:2])]


def first_looks(sweep: Sweep) -> tuple[FirstLook, ...]:
    """Return up to 12 trials to look at first, at most three of a kind.

    Machines that failed come first, then good trials that the guard cut (were they
    cut too early?), then the dearest of each reason, then warned trials that are
    among the best.

    Example:
        >>> from tune_guard.sweeps import Sweep, Trial
        >>> cut = Trial(id="7", outcome=Outcome.GUARD, reason="plateau", steps_run=9)
        >>> found = first_looks(Sweep(source="x", engine="ray", trials=(cut,)))
        >>> [(look.trial.id, look.why) for look in found]
        [('7', 'the longest run that ended with plateau')]
    """
    found: dict[str, FirstLook] = {}
    for trial, why in _candidates(sweep):
        record = sweep.records.get(trial.id)
        found.setdefault(trial.id, FirstLook(trial=trial, why=why, record=record))
    return tuple(found.values())[:MOST]


def _candidates(sweep: Sweep) -> Iterator[tuple[Trial, str]]:
    broken = [t for t in sweep.trials if t.blame is Blame.INFRASTRUCTURE]
    for trial in broken[:_MOST_OF_A_KIND]:
        yield trial, "the machine is to blame: check it before the next sweep"
    best = ranked(sweep)
    top = best[: max(1, len(best) // 10)]
    cut = [t for t in top if t.outcome is Outcome.GUARD and t not in broken]
    for trial in cut[:_MOST_OF_A_KIND]:
        cut_so = "replay would have cut it" if trial.replayed else "still cut"
        yield trial, f"number {best.index(trial) + 1} of the sweep, and {cut_so}"
    yield from _dearest(sweep.trials)
    warned = [
        trial
        for trial in top
        if trial.healthy and trial.id in sweep.records
        if sweep.records[trial.id].warnings
    ]
    for trial in warned[:_MOST_OF_A_KIND]:
        yield trial, "among the best, and warned"


def _dearest(trials: Sequence[Trial]) -> Iterator[tuple[Trial, str]]:
    """Yield the trial of each sick reason that took longest, the dearest first."""
    longest: dict[str, Trial] = {}
    for trial in trials:
        if trial.outcome in _SICK:
            known = longest.setdefault(trial.reason, trial)
            if _spent(trial) > _spent(known):
                longest[trial.reason] = trial
    for trial in sorted(longest.values(), key=_spent, reverse=True):
        yield trial, f"the longest run that {_end_of(trial)}"


def _end_of(trial: Trial) -> str:
    """Say how a trial ended, or where a replay would have cut it."""
    if not trial.replayed:
        return f"ended with {trial.reason or 'an error'}"
    said = f"replay would have cut for {trial.reason} at step {trial.step}"
    return f"{said}; it ran to its end" if trial.ran_through else said


def _spent(trial: Trial) -> tuple[float, int]:
    return trial.time_s or 0.0, trial.steps_run
