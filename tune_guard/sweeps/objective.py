"""Which metric a sweep was tuned for, and which readings say how good a trial is."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

from tune_guard.exceptions import ConfigError, did_you_mean
from tune_guard.record import Outcome
from tune_guard.sweeps.curves import MODES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tune_guard.record import StopRecord
    from tune_guard.sweeps.curves import Curve, Mode
    from tune_guard.sweeps.sweep import Sweep, Trial

_MOST_NAMED = 20


def usable_before(record: StopRecord | None, curves: Mapping[str, Curve]) -> int | None:
    """Return the first step from which a trial's readings say nothing.

    Once a number has gone non-finite the others mean nothing either: a trainer
    that filters NaN logs a loss of 0.0, which must not rank as the best. The
    readings count up to the streak of non-finite ones that stopped the trial.

    Args:
        record: Record of the trial, if it has one.

        curves: Curves of the trial by metric.

    Returns:
        None when all readings can be used.
    """
    if record is None or record.outcome is not Outcome.GUARD:
        return None
    if record.reason != "non_finite" or record.step < 0:
        return None
    first = record.step
    curve = curves.get(record.metric)
    if curve is None:
        return first
    for step, value in zip(reversed(curve.steps), reversed(curve.values), strict=True):
        if step > record.step:
            continue
        if math.isfinite(value):
            break
        first = step
    return first


def recorded(records: Mapping[str, StopRecord]) -> tuple[str, dict[str, Mode]]:
    """Return the objective that all records agree on, and its direction.

    Returns:
        The metric's name, empty when it is not recorded, and its mode by name.
    """
    said = {(record.objective, record.mode) for record in records.values()}
    said -= {("", "")}
    metric, mode = said.pop() if len(said) == 1 else ("", "")
    return metric, {metric: MODES[mode]} if mode in MODES else {}


def resolve(sweep: Sweep, metric: str = "", mode: str = "") -> Sweep:
    """Return the sweep ranked by its objective.

    Args:
        sweep: A sweep as it was read.

        metric: Name of the objective; empty to take the one that is recorded.

        mode: ``min`` or ``max``; empty to take the one that is recorded.

    Raises:
        ConfigError: If the objective or its direction is not known.
    """
    metric = metric or sweep.metric
    if not metric:
        msg = f"The objective of {sweep.place} is not recorded. Name it with"
        msg += f" `--metric` and `--mode min|max`. Metrics found: {_listed(sweep)}."
        raise ConfigError(msg)
    known = mode or sweep.modes.get(metric)
    if known is None and metric in sweep.metrics():
        msg = f"Whether `{metric}` of {sweep.place} is to be minimized or maximized"
        msg += " is not recorded. Say `--mode min` or `--mode max`."
        raise ConfigError(msg)
    ranked = sweep.with_objective(metric, known or "min")
    return ranked if _was_reported(sweep, metric) else _with_gap(ranked, metric)


def _was_reported(sweep: Sweep, metric: str) -> bool:
    known = sweep.metrics()
    return metric in known or any(metric in t.finals for t in sweep.trials) or not known


def _with_gap(sweep: Sweep, metric: str) -> Sweep:
    """Say that the policy named a metric which never came: nothing can be ranked."""
    from tune_guard.sweeps.sweep import Problem

    near = did_you_mean(metric, sweep.metrics())
    what = (
        f"no trial reported the objective `{metric}`, so that its rules were inactive"
        f" and nothing is ranked. {near} Correct the policy; rank this sweep with"
        " `--metric` and `--mode`"
    )
    gap = Problem(file=sweep.source, what=what)
    return dataclasses.replace(sweep, problems=(*sweep.problems, gap))


def _listed(sweep: Sweep) -> str:
    names = [f"`{name}`" for name in sweep.metrics()]
    more = len(names) - _MOST_NAMED
    listed = ", ".join(names[:_MOST_NAMED]) or "none"
    return f"{listed} and {more} more" if more > 0 else listed


def rank_value(trial: Trial, metric: str) -> float | None:
    """Return what a trial is ranked by: its final value, else its best reading."""
    final = trial.finals.get(metric)
    return trial.best_value if final is None else final


def best_trial(sweep: Sweep) -> Trial | None:
    """Return the best trial by the objective, or None when none has a finite value.

    Where the engine ranks by final values, only trials that have one compete.
    """
    mode = sweep.mode
    if mode is None:
        return None
    finals = [t for t in sweep.trials if sweep.metric in t.finals]
    ranked = []
    for position, trial in enumerate(finals or sweep.trials):
        value = rank_value(trial, sweep.metric)
        if value is not None and math.isfinite(value):
            ranked.append((value if mode == "min" else -value, position, trial))
    return min(ranked)[2] if ranked else None
