"""Compare why the trials of a sweep ended: pure functions of a loaded sweep."""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Literal

from tune_guard.record import Outcome
from tune_guard.sweeps.claims import Explained
from tune_guard.sweeps.explain_params import explain
from tune_guard.sweeps.faults import Faults, faults
from tune_guard.sweeps.first_looks import FirstLook, first_looks, ranked
from tune_guard.sweeps.objective import best_trial
from tune_guard.sweeps.savings import (
    Saved,
    avoidable,
    cost_of,
    saved_by_cuts,
    unit_of,
)
from tune_guard.sweeps.spared import Spared, spared
from tune_guard.sweeps.spreads import FEWEST, Parameter, parameters_behind, varied
from tune_guard.verdict import Blame

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tune_guard.sweeps.sweep import Problem, Sweep, Trial

MOST_TOP = 10
"""Best trials that are named."""

_SICK = frozenset({Outcome.GUARD, Outcome.ERROR})


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The trials that ended for one reason.

    Args:
        reason: The reason, or how they ended when there was none to give.

        outcome: Who ended them, or None when that was not recorded.

        blame: Whose fault it is, or None.

        trials: Ids of the trials.

        share: Share of all trials.

        compute: Compute spent on them, in the comparison's unit.

        compute_share: Share of all compute.

        median_step: Median of the steps they ran.

        parameters: Hyperparameters behind the reason, those that lie furthest
            from the healthy trials first; None when the trials are too few to
            say, empty when no hyperparameter varied.

        replayed: Number of these trials that a replay would have cut for it.
    """

    reason: str
    outcome: Outcome | None
    blame: Blame | None
    trials: tuple[str, ...]
    share: float
    compute: float
    compute_share: float
    median_step: float
    parameters: tuple[Parameter, ...] | None
    replayed: int = 0

    @property
    def title(self) -> str:
        """The reason, marked where nothing but a replay gives it."""
        return f"{self.reason} (by replay)" if self.replayed else self.reason

    @property
    def sick(self) -> bool:
        """Whether the trials were cut by the guard, or failed."""
        return self.outcome in _SICK


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Why the trials of a sweep ended, and at what cost.

    Args:
        unit: Unit of all compute: seconds (``s``) where run times are known,
            else ``steps``.

        groups: One group a reason, the largest share of compute first.

        blames: Trials and share of compute by blame; None is nobody's fault.

        healthy: Number of trials that ran to their end.

        best: The best trial by the objective, or None.

        saved: What the cuts saved; None when there is nothing to go by.

        warnings: Number of trials by rule that warned and did not cut.

        without_compute: Number of trials whose compute is not known.

        top: The best trials by the objective, the best first, up to ten.

        first_looks: Trials to look at first, each with its why.

        faults: Infrastructure faults by node and GPU.

        explained: What hyperparameters explain; None when scipy is not installed.

        replayed: Number of trials whose reason a replay found afterwards.

        ran_through: Number of these that had run to their end.

        avoidable: Compute that these spent after the step of their reason.

        spared: What condemned trials that ran on say of the false kills; None
            when no trial was spared by a holdout or by the action ``warn``.
    """

    source: str
    engine: str
    name: str
    metric: str
    mode: Literal["min", "max"] | None
    unit: Literal["s", "steps"]
    trials: int
    healthy: int
    compute: float
    groups: tuple[Group, ...]
    blames: Mapping[Blame | None, tuple[int, float]]
    best: Trial | None
    saved: Saved | None
    warnings: Mapping[str, int]
    without_compute: int
    problems: Sequence[Problem]
    top: tuple[Trial, ...] = ()
    first_looks: tuple[FirstLook, ...] = ()
    faults: tuple[Faults, ...] = ()
    explained: Explained | None = None
    replayed: int = 0
    ran_through: int = 0
    avoidable: float = 0.0
    spared: Spared | None = None

    @property
    def findings(self) -> int:
        """Number of trials that were sick: cut by the guard, or failed."""
        return sum(len(group.trials) for group in self.groups if group.sick)

    @property
    def sick_compute(self) -> float:
        """Compute spent on trials that were sick, in the comparison's unit."""
        return sum(group.compute for group in self.groups if group.sick)

    def _repr_html_(self) -> str | None:
        """Return the comparison for a notebook; None without jinja2."""
        if find_spec("jinja2") is None:
            return None
        from tune_guard.sweeps.report.html import fragment

        return fragment(self)


def compare(sweep: Sweep) -> Comparison:
    """Compare the reasons of a sweep's trials.

    Args:
        sweep: A sweep; its best trial is known once it has an objective.

    Example:
        >>> from tune_guard.sweeps import Sweep, Trial
        >>> done = Trial(id="a", outcome=Outcome.COMPLETED, steps_run=10)
        >>> cut = Trial(id="b", outcome=Outcome.GUARD, reason="non_finite", steps_run=2)
        >>> found = compare(Sweep(source="x", engine="ray", trials=(done, cut)))
        >>> [(g.reason, g.compute) for g in found.groups], found.saved.steps
        ([('completed', 10), ('non_finite', 2)], 8)
    """
    unit = unit_of(sweep.trials)
    costs = {trial.id: cost_of(trial, unit) for trial in sweep.trials}
    total = sum(cost for cost in costs.values() if cost is not None)
    return Comparison(
        source=sweep.source,
        engine=sweep.engine,
        name=sweep.name,
        metric=sweep.metric,
        mode=sweep.mode,
        unit=unit,
        trials=len(sweep.trials),
        healthy=sum(trial.healthy for trial in sweep.trials),
        compute=total,
        groups=_groups(sweep.trials, costs, total),
        blames=_blames(sweep.trials, costs, total),
        best=best_trial(sweep),
        saved=saved_by_cuts(sweep, unit, total),
        warnings=_warnings(sweep),
        without_compute=sum(cost is None for cost in costs.values()),
        problems=sweep.problems,
        top=tuple(ranked(sweep)[:MOST_TOP]),
        first_looks=first_looks(sweep),
        faults=faults(sweep),
        explained=explain(sweep.trials) if find_spec("scipy") else None,
        replayed=sum(map(_would_be_cut, sweep.trials)),
        ran_through=sum(trial.ran_through for trial in sweep.trials),
        avoidable=sum(avoidable(trial, unit) for trial in sweep.trials),
        spared=spared(sweep),
    )


def _groups(
    trials: Sequence[Trial], costs: Mapping[str, float | None], total: float
) -> tuple[Group, ...]:
    by_reason: defaultdict[tuple[str, Blame | None], list[Trial]] = defaultdict(list)
    for trial in trials:
        by_reason[label(trial), trial.blame].append(trial)
    healthy = [trial for trial in trials if trial.healthy]
    names = varied(trials)
    groups = []
    for (reason, blame), members in by_reason.items():
        compute = sum(costs[trial.id] or 0 for trial in members)
        parameters = None
        if len(members) >= FEWEST:
            shown = () if members[0].healthy else names
            parameters = parameters_behind(shown, members, healthy)
        groups.append(
            Group(
                reason=reason,
                outcome=members[0].outcome,
                blame=blame,
                trials=tuple(trial.id for trial in members),
                share=len(members) / len(trials),
                compute=compute,
                compute_share=compute / total if total else 0.0,
                median_step=statistics.median(t.steps_run for t in members),
                parameters=parameters,
                replayed=sum(map(_would_be_cut, members)),
            )
        )
    return tuple(sorted(groups, key=lambda g: (-g.compute, -len(g.trials), g.reason)))


def label(trial: Trial) -> str:
    """Return the reason of a trial, or how it ended when there was none to give."""
    return trial.reason or str(trial.outcome or "")


def _would_be_cut(trial: Trial) -> bool:
    """Whether a replay would have cut a trial."""
    return trial.replayed and trial.step is not None


def _blames(
    trials: Iterable[Trial], costs: Mapping[str, float | None], total: float
) -> dict[Blame | None, tuple[int, float]]:
    counts: Counter[Blame | None] = Counter()
    compute: defaultdict[Blame | None, float] = defaultdict(float)
    for trial in trials:
        counts[trial.blame] += 1
        compute[trial.blame] += costs[trial.id] or 0
    return {
        blame: (counts[blame], compute[blame] / total if total else 0.0)
        for blame in (Blame.CONFIG, Blame.INFRASTRUCTURE, None)
        if counts[blame]
    }


def _warnings(sweep: Sweep) -> dict[str, int]:
    """Count the trials that each rule warned about without a cut."""
    counts: Counter[str] = Counter()
    for record in sweep.records.values():
        counts.update({warning.partition("@")[0] for warning in record.warnings})
    return dict(counts.most_common())
