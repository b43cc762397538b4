"""What trials cost, what cutting them saved, and what it would have saved."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from tune_guard.record import CUTS, Outcome
from tune_guard.verdict import Blame

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tune_guard.sweeps.sweep import Sweep, Trial


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """An estimate of the compute that cutting trials has saved.

    A trial that was cut would have run to the budget; where none is recorded,
    to the steps of the longest healthy trial. Its further steps are taken to
    cost what its own steps did. Trials cut for an infrastructure fault are left
    out, since they are run again.

    Args:
        steps: Steps saved.

        steps_by: The same by who cut: ``guard``, ``pruner``, ``scheduler``.

        time_s: Seconds saved, or None when run times are not known.

        share: Share of what the sweep would have cost without the cuts.

        budget_steps: Steps to which a cut trial would have run.

        basis: Where ``budget_steps`` comes from, in words.
    """

    steps: int
    steps_by: Mapping[str, int]
    time_s: float | None
    share: float
    budget_steps: int
    basis: str


def unit_of(trials: Iterable[Trial]) -> Literal["s", "steps"]:
    """Count compute in seconds if every trial that ran to an end says them."""
    ended = [t for t in trials if t.outcome is not Outcome.INTERRUPTED]
    ended = [t for t in ended if t.steps_run or t.time_s is not None]
    timed = [t.time_s for t in ended if t.time_s is not None]
    return "s" if timed and len(timed) == len(ended) and sum(timed) > 0 else "steps"


def cost_of(trial: Trial, unit: Literal["s", "steps"]) -> float | None:
    """Return what a trial cost in the unit; None when that is not known."""
    if unit == "steps":
        return trial.steps_run
    return trial.time_s if trial.steps_run or trial.time_s is not None else 0.0


def avoidable(trial: Trial, unit: Literal["s", "steps"]) -> float:
    """Return what a trial cost after the step at which a replay would have cut it.

    Example:
        >>> from tune_guard.sweeps import Trial
        >>> trial = Trial(id="a", step=25, steps_run=100, time_s=60, replayed=True)
        >>> avoidable(trial, "s")
        45.0
    """
    if not trial.replayed or trial.step is None or not trial.steps_run:
        return 0.0
    left = max(0.0, 1 - trial.step / trial.steps_run)
    return left * (cost_of(trial, unit) or 0.0)


def saved_by_cuts(
    sweep: Sweep, unit: Literal["s", "steps"], spent: float
) -> Saved | None:
    """Estimate what the cuts of a sweep saved; None when there is nothing to go by.

    Args:
        sweep: The sweep.

        unit: Unit of all compute.

        spent: Compute spent, in the unit.
    """
    budget, basis = _budget(sweep)
    cut = [t for t in sweep.trials if t.outcome in CUTS]
    cut = [t for t in cut if t.blame is not Blame.INFRASTRUCTURE and not t.replayed]
    if not cut or not budget:
        return None
    left = [max(budget - trial.steps_run, 0) for trial in cut]
    time_s = None
    if unit == "s":
        paces = [(t.time_s or 0.0) / t.steps_run if t.steps_run else 0.0 for t in cut]
        time_s = sum(steps * pace for steps, pace in zip(left, paces, strict=True))
    by_outcome: Counter[str] = Counter()
    for trial, steps in zip(cut, left, strict=True):
        by_outcome[str(trial.outcome)] += steps
    saved = sum(left) if time_s is None else time_s
    return Saved(
        steps=sum(left),
        steps_by=dict(by_outcome),
        time_s=time_s,
        share=saved / (spent + saved) if spent + saved else 0.0,
        budget_steps=budget,
        basis=basis,
    )


def _budget(sweep: Sweep) -> tuple[int, str]:
    if sweep.budget_steps:
        return sweep.budget_steps, "the budget of the sweep"
    steps = [trial.steps_run for trial in sweep.trials if trial.healthy]
    return max(steps, default=0), f"the longest of {len(steps)} that ran through"
