"""Several sweeps as one."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from tune_guard.sweeps.curves import Curves
from tune_guard.sweeps.sweep import Sweep

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def merge(sweeps: Sequence[Sweep], source: str) -> Sweep:
    """Put several sweeps into one; trial ids become ``<sweep>/<id>``.

    The objective is kept only where all of them agree on it.
    """
    if len(sweeps) == 1:
        return sweeps[0]
    metrics = {(sweep.metric, sweep.mode) for sweep in sweeps}
    metric, mode = metrics.pop() if len(metrics) == 1 else ("", None)
    budgets = {sweep.budget_steps for sweep in sweeps}
    modes = {name: found for sweep in sweeps for name, found in sweep.modes.items()}
    return Sweep(
        source=source,
        engine=sweeps[0].engine if len({s.engine for s in sweeps}) == 1 else "several",
        name=", ".join(sweep.name for sweep in sweeps),
        trials=tuple(
            dataclasses.replace(trial, id=f"{sweep.name}/{trial.id}")
            for sweep in sweeps
            for trial in sweep.trials
        ),
        curves=Curves(_prefixed({s.name: s.curves.by_trial for s in sweeps})),
        records=_prefixed({s.name: s.records for s in sweeps}),
        modes={metric: mode} if metric and mode else modes,
        metric=metric,
        budget_steps=budgets.pop() if len(budgets) == 1 else None,
        problems=tuple(problem for sweep in sweeps for problem in sweep.problems),
    )


def _prefixed(tables: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    return {f"{name}/{key}": v for name, t in tables.items() for key, v in t.items()}
