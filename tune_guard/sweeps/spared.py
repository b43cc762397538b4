"""Condemned trials that ran on: what a sweep says about its own false kills."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from tune_guard.record import Outcome, StopRecord
from tune_guard.sweeps.first_looks import ranked
from tune_guard.sweeps.scoring import TOP_RATIO, wilson
from tune_guard.sweeps.sweep import Sweep, Trial
from tune_guard.verdict import Blame


class Condemned(NamedTuple):
    """What would have cut a trial: the rule, the step, and what spared the trial."""

    rule: str
    step: int
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Spared:
    """Trials that a rule would have cut and that ran on, and how they ended.

    Args:
        trials: Condemned trials that ran to their end.

        false_kills: Of these, trials that set their own best after they were
            condemned and ended among the best of the sweep.

        false_kill_ci: 95% Wilson interval of the share of false kills.

        unknown: Condemned trials that something else ended first.

        by: Condemned trials by what spared them: ``holdout`` or ``action``.

        rules: By rule: trials whose end is known, and false kills among them.

        steps: Steps that cutting all of them would have saved.

        top: Share of the sweep that counts as the best.
    """

    trials: int
    false_kills: int
    false_kill_ci: tuple[float, float]
    unknown: int
    by: Mapping[str, int]
    rules: Mapping[str, tuple[int, int]]
    steps: int
    top: float

    @property
    def false_kill_ratio(self) -> float:
        """Share of the condemned trials whose cut would have been a false kill."""
        return self.false_kills / self.trials if self.trials else 0.0


def condemned(record: StopRecord) -> Condemned | None:
    """Read what would have cut a trial out of its record; None when nothing would.

    Example:
        >>> condemned(StopRecord(spared="relapse@17:holdout"))
        Condemned(rule='relapse', step=17, by='holdout')
    """
    rule, _, rest = record.spared.rpartition("@")
    step, _, by = rest.partition(":")
    try:
        return Condemned(rule, int(step), by)
    except ValueError:
        return None


def spared(sweep: Sweep, top: float = TOP_RATIO) -> Spared | None:
    """Count the condemned trials that ran on; None when there are none.

    A trial that was cut ranks by what it had reached, so that the rate errs, if
    at all, on the high side.

    Args:
        sweep: A sweep that has an objective.

        top: Share of the sweep's trials whose cuts are false kills.
    """
    found = {
        trial.id: (trial, seen)
        for trial in sweep.trials
        if trial.id in sweep.records
        and (seen := condemned(sweep.records[trial.id])) is not None
    }
    if not found:
        return None
    order = ranked(sweep)
    best = {trial.id for trial in order[: max(1, int(top * len(order)))]}
    known = {name: pair for name, pair in found.items() if _end_is_known(pair[0])}
    ran, killed = Counter[str](), Counter[str]()
    for name, (trial, seen) in known.items():
        ran[seen.rule] += 1
        killed[seen.rule] += name in best and _improved(trial, seen)
    false_kills = killed.total()
    return Spared(
        trials=len(known),
        false_kills=false_kills,
        false_kill_ci=wilson(false_kills, len(known)),
        unknown=len(found) - len(known),
        by=dict(Counter(seen.by for _, seen in found.values())),
        rules={rule: (ran[rule], killed[rule]) for rule in sorted(ran)},
        steps=sum(max(0, t.steps_run - seen.step) for t, seen in known.values()),
        top=top,
    )


def _improved(trial: Trial, seen: Condemned) -> bool:
    return trial.best_step is not None and trial.best_step > seen.step


def _end_is_known(trial: Trial) -> bool:
    """Whether the trial ran to its end, be it one that its configuration brought."""
    return trial.healthy or (
        trial.outcome is Outcome.GUARD and trial.blame is Blame.CONFIG
    )
