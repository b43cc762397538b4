"""A replay as one self-contained HTML file: figures, and curves with their cuts."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tune_guard.record import Outcome, now_utc, version
from tune_guard.sweeps.report.html import environment
from tune_guard.sweeps.report.html_colors import colors
from tune_guard.sweeps.report.html_scale import Scale, Tick, line, short, thinned
from tune_guard.sweeps.report.replayed import cut_before
from tune_guard.sweeps.scoring import TOP_RATIO, best_of, by_rule, score

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tune_guard.sweeps.curves import Curve
    from tune_guard.sweeps.replay import TrialReplay
    from tune_guard.sweeps.replayed import Replayed
    from tune_guard.sweeps.sweep import Sweep

NOT_CUT = "not cut"
MOST_SWEEPS = 300
"""Sweeps whose curves are drawn: those with the most cuts."""

_TRIM = 0.02
_MOST_POINTS = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class CutLine:
    """One trial: what was run, what was saved, and where it was cut."""

    run: str
    saved: str
    cut: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CutsFigure:
    """The curves of one sweep, by what cut them."""

    metric: str
    lines: dict[str, tuple[CutLine, ...]]
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    log: bool

    @property
    def cuts(self) -> int:
        """Number of trials that were cut."""
        return sum(len(at) for reason, at in self.lines.items() if reason != NOT_CUT)


def draw(
    sweep: Sweep, replays: Sequence[TrialReplay], *, top: float = TOP_RATIO
) -> CutsFigure | None:
    """Draw the objective of every replayed trial, and where it was cut.

    The vertical axis leaves out the 2% of readings furthest up and down.

    Args:
        sweep: A sweep that has an objective.

        replays: Its replayed trials.

        top: Share of the sweep whose cuts are false kills.
    """
    curves = [(r, sweep.curves.of(r.trial)[sweep.metric]) for r in replays]
    finite = [value for _, c in curves for value in c.values if math.isfinite(value)]
    if not finite:
        return None
    steps = Scale.around(step for _, curve in curves for step in curve.steps)
    x = Scale(low=steps.low, high=steps.high)
    y = Scale.around(finite, trim=_TRIM)
    best = {trial.trial for trial in best_of(replays, top)}
    lines: defaultdict[str, list[CutLine]] = defaultdict(list)
    for replayed, curve in curves:
        reason = replayed.reason if replayed.cut else NOT_CUT
        lines[reason].append(_line(replayed, curve, (x, y), top=replayed.trial in best))
    return CutsFigure(
        metric=sweep.metric,
        lines={reason: tuple(found) for reason, found in sorted(lines.items())},
        x_ticks=tuple(x.ticks()),
        y_ticks=tuple(y.ticks()),
        log=y.log,
    )


def _line(
    replayed: TrialReplay, curve: Curve, scales: tuple[Scale, Scale], *, top: bool
) -> CutLine:
    x, y = scales
    points = thinned(curve.steps, curve.values, _MOST_POINTS)
    end = math.inf if not replayed.cut else replayed.step or 0
    run = [(x.at(step), y.at(value)) for step, value in points if step <= end]
    saved = [(x.at(step), y.at(value)) for step, value in points if step > end]
    at = run[-1] if run else (x.at(end if math.isfinite(end) else x.low), y.at(y.low))
    cut = replayed.cut
    return CutLine(
        run=line(run),
        saved=line([at, *saved]) if cut and saved else "",
        cut=line([(x.at(end), at[1])]) if cut else "",
        text=_said(replayed, top=top),
    )


def _said(replayed: TrialReplay, *, top: bool) -> str:
    said = replayed.trial
    if replayed.cut:
        said += f": {replayed.reason} at step {replayed.step}"
        said += f", {replayed.executed} of {replayed.reports} readings run"
    if top and replayed.premature:
        return f"{said}; a false kill, one of the best with its best still to come"
    if replayed.best is not None:
        said += f", best {short(abs(replayed.best))}" if not replayed.cut else ""
    return said


def page(found: Replayed, top: float, *, title: str) -> str:
    """Return a replay as a whole HTML file.

    Args:
        found: The replayed sweeps; their figures come from :func:`draw`.

        top: Share of a sweep whose cuts are false kills.

        title: Names what was replayed.

    Raises:
        ConfigError: If jinja2 is not installed.
    """
    sweeps = list(found.sweeps.values())
    rules = by_rule(sweeps, top=top)
    drawn = sorted(found.figures.items(), key=lambda item: -item[1].cuts)
    reasons = {reason for figure in found.figures.values() for reason in figure.lines}
    ends = dict.fromkeys({*rules, *reasons}, Outcome.GUARD)
    ends[NOT_CUT] = Outcome.COMPLETED
    return (
        environment()
        .get_template("replay.html.j2")
        .render(
            title=title,
            whole=score(sweeps, top=top),
            rules=rules,
            top=top,
            figures=drawn[:MOST_SWEEPS],
            left_out=max(0, len(drawn) - MOST_SWEEPS),
            not_cut=NOT_CUT,
            colors=colors(sorted(ends.items())),
            problems=found.problems,
            cut_before=cut_before(sweeps),
            made=now_utc(),
            version=version(),
        )
    )
