"""Which metric a sweep was tuned for, and which readings say how good a trial is."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Literal

from tune_guard.exceptions import ConfigError
from tune_guard.record import Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tune_guard.record import StopRecord
    from tune_guard.sweeps.sweep import Curve, Mode, Sweep, Trial

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


def resolve(sweep: Sweep, metric: str = "", mode: str = "") -> Sweep:
    """Return the sweep ranked by its objective.

    What is asked for goes first, then what the engine or the records know.

    Args:
        sweep: A sweep as it was read.

        metric: Name of the objective; empty to take the sweep's own.

        mode: ``min`` or ``max``; empty to take the sweep's own.

    Raises:
        ConfigError: If the objective or its direction is not known.
    """
    inferred, directions = _inferred(sweep)
    metric = metric or sweep.metric or inferred
    known = mode or sweep.modes.get(metric, "") or directions.get(metric, "")
    if metric and known in ("min", "max"):
        checked: Mode = "min" if known == "min" else "max"
        return sweep.with_objective(metric, checked)
    if metric and mode:
        msg = f"`mode` must be 'min' or 'max', but got {mode!r}."
        raise ConfigError(msg)
    if metric and (metric in sweep.metrics() or not sweep.metrics()):
        msg = (
            f"Whether `{metric}` of {sweep.source} is to be minimized or maximized is"
            " not recorded. Say `--mode min` or `--mode max`."
        )
        raise ConfigError(msg)
    names = sweep.metrics()
    listed = ", ".join(f"`{name}`" for name in names[:_MOST_NAMED]) or "none"
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    asked = (
        f"`{metric}` is no metric of" if metric else "The objective is not recorded in"
    )
    msg = (
        f"{asked} {sweep.source}. Name it with `--metric` and `--mode min|max`."
        f" Metrics found: {listed}{more}."
    )
    raise ConfigError(msg)


def _inferred(sweep: Sweep) -> tuple[str, dict[str, Literal["min", "max"]]]:
    """Find the metric whose curve holds the best values that the records name.

    A record says the best value of the objective and its step, not its name.
    The metric that had exactly that value at that step, in most trials, is it;
    where two metrics are equal everywhere, nothing is inferred.
    """
    votes: Counter[str] = Counter()
    for trial in sweep.trials:
        record = sweep.records.get(trial.id)
        if record is None or record.best_value is None:
            continue
        for metric, curve in sweep.curves.of(trial.id).items():
            readings = zip(curve.steps, curve.values, strict=True)
            if any(
                step == record.best_step and value == record.best_value
                for step, value in readings
            ):
                votes[metric] += 1
    ahead = votes.most_common(2)
    if not ahead or (len(ahead) > 1 and ahead[0][1] == ahead[1][1]):
        return "", _directions(sweep, list(votes))
    return ahead[0][0], _directions(sweep, [ahead[0][0]])


def _directions(sweep: Sweep, metrics: list[str]) -> dict[str, Literal["min", "max"]]:
    """Tell a metric's direction from which side of its curves the best values are."""
    found: dict[str, Literal["min", "max"]] = {}
    for metric in metrics:
        balance = 0
        for trial in sweep.trials:
            record, curve = (
                sweep.records.get(trial.id),
                sweep.curves.of(trial.id).get(metric),
            )
            if record is None or record.best_value is None or curve is None:
                continue
            lowest, highest = curve.best("min"), curve.best("max")
            if lowest and highest and lowest[0] < highest[0]:
                balance += (record.best_value == lowest[0]) - (
                    record.best_value == highest[0]
                )
        if balance:
            found[metric] = "min" if balance > 0 else "max"
    return found


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
