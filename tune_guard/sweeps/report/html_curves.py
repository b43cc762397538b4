"""The figure of learning curves: one line a trial, coloured by reason."""

from __future__ import annotations

import bisect
import math
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tune_guard.record import Outcome
from tune_guard.sweeps.compare import label
from tune_guard.sweeps.report.html_scale import Scale, Tick, line, thinned

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tune_guard.sweeps.curves import Curve
    from tune_guard.sweeps.sweep import Sweep, Trial

_TRIM = 0.02
_LONGEST_TEXT = 160
_MOST_OPAQUE, _LEAST_OPAQUE = 0.8, 0.1
_INK = 40
_STOPPED = frozenset({Outcome.GUARD, Outcome.PRUNER, Outcome.SCHEDULER, Outcome.ERROR})


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One curve: its path, what it says of itself, and where it was stopped."""

    anchor: str
    path: str
    text: str
    stop: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """The lines of one reason."""

    reason: str
    lines: tuple[Line, ...]

    @property
    def stops(self) -> str:
        """The path of all dots where its trials were stopped; empty for none."""
        return "".join(line.stop for line in self.lines)

    @property
    def opacity(self) -> float:
        """How opaque to draw a line: many would cover each other and the rest."""
        most = _MOST_OPAQUE if self.stops else _MOST_OPAQUE / 2
        return round(max(_LEAST_OPAQUE, min(most, _INK / len(self.lines))), 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class CurvesFigure:
    """Everything that the figure of learning curves shows."""

    metric: str
    series: tuple[Series, ...]
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    log: bool
    trials: int


def curves_figure(
    sweep: Sweep, order: Sequence[str], anchors: Mapping[str, str]
) -> CurvesFigure | None:
    """Draw the objective of every trial; None when there is nothing to draw.

    The vertical axis leaves out the 2% of readings furthest up and down: one run
    that diverged to 1e30 would press all others flat. They are drawn at the edge.

    Args:
        sweep: A sweep that has an objective.

        order: Reasons, the one to draw undermost first.

        anchors: Name of each trial's line in the page.
    """
    drawn: list[tuple[Trial, Curve, list[tuple[float, float]]]] = []
    for trial in sweep.trials:
        curve = sweep.curves.of(trial.id).get(sweep.metric)
        points = thinned(curve.steps, curve.values) if curve else []
        if curve and points:
            drawn.append((trial, curve, points))
    if not drawn:
        return None
    x = Scale.around(step for _, _, points in drawn for step, _ in points)
    y = Scale.around((v for *_, points in drawn for _, v in points), trim=_TRIM)
    x = Scale(low=x.low, high=x.high)
    by_reason: defaultdict[str, list[Line]] = defaultdict(list)
    for trial, curve, points in drawn:
        made = _line(trial, curve, points, (x, y), anchors[trial.id])
        by_reason[label(trial)].append(made)
    return CurvesFigure(
        metric=sweep.metric,
        series=tuple(
            Series(reason=reason, lines=tuple(by_reason[reason]))
            for reason in order
            if reason in by_reason
        ),
        x_ticks=tuple(x.ticks()),
        y_ticks=tuple(y.ticks()),
        log=y.log,
        trials=len(drawn),
    )


def _line(
    trial: Trial,
    curve: Curve,
    points: Sequence[tuple[float, float]],
    scales: tuple[Scale, Scale],
    anchor: str,
) -> Line:
    x, y = scales
    places = [(x.at(step), y.at(value)) for step, value in points]
    stop = ""
    if trial.outcome in _STOPPED:
        at = curve.steps[-1] if trial.step is None else trial.step
        # A replayed trial ran on after the step that would have been its last.
        before = bisect.bisect_right(points, (at, math.inf))
        stop = line([(x.at(at), places[max(before - 1, 0)][1])])
    return Line(
        anchor=anchor, path=line(places), text=describe(trial, curve), stop=stop
    )


def describe(trial: Trial, curve: Curve | None = None) -> str:
    """Return a trial in one line: how it ended, and its hyperparameters."""
    end = label(trial) or "completed"
    at = f" at step {trial.step}" if trial.step is not None else ""
    said = f"{trial.id}: {end}{at}" + (", by replay" if trial.replayed else "")
    if curve and curve.last is not None and math.isfinite(curve.last):
        said += f", last {curve.last:.4g}"
    params = [f"{k}={_short(v)}" for k, v in trial.params.items() if v is not None]
    said += f" ({', '.join(params)})" if params else ""
    return said if len(said) <= _LONGEST_TEXT else said[: _LONGEST_TEXT - 1] + "…"


def _short(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
