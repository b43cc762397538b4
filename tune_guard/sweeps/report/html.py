"""The comparison as one self-contained HTML file, and as a part of a notebook.

Nothing is loaded from anywhere: no script, no font, no picture. Every text of a
sweep is escaped, and the page forbids scripts and connections by its policy.
"""

from __future__ import annotations

import datetime as dt
import functools
import itertools
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from tune_guard.exceptions import ConfigError
from tune_guard.record import now_utc, version
from tune_guard.sweeps.compare import Comparison, compare, label
from tune_guard.sweeps.report.html_advice import advice
from tune_guard.sweeps.report.html_colors import colors
from tune_guard.sweeps.report.html_curves import CurvesFigure, curves_figure
from tune_guard.sweeps.report.html_params import ParameterFigure, parameter_figures
from tune_guard.sweeps.report.html_scale import Scale, line, short, thinned
from tune_guard.sweeps.report.html_timeline import Timeline, timeline
from tune_guard.sweeps.report.terminal import amount
from tune_guard.sweeps.report.terminal_more import spared_lines
from tune_guard.sweeps.spreads import varied
from tune_guard.sweeps.wording import counted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jinja2 import Environment

    from tune_guard.sweeps.side_by_side import Change
    from tune_guard.sweeps.sweep import Sweep, Trial

MOST_NAMES = 24
"""Hyperparameters that are named beside a trial: of those that differ at all."""

MOST_ROWS = 2000
"""Trials that the table of all trials shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _View:
    """One sweep as the templates see it."""

    key: str
    sweep: Sweep
    found: Comparison
    order: tuple[str, ...]
    advice: tuple[str, ...]
    curves: CurvesFigure | None
    timeline: Timeline | None
    parameters: tuple[ParameterFigure, ...]
    anchors: Mapping[str, str]
    sparks: Mapping[str, str]
    rows: tuple[Trial, ...]
    names: frozenset[str]


def page(sweeps: Sequence[Sweep], *, title: str = "") -> str:
    """Return the report of one or several sweeps as a whole HTML file.

    Args:
        sweeps: Sweeps that have an objective; the one to hold the others against
            first.

        title: Title of the page; the sweeps' names when left out.

    Raises:
        ConfigError: If jinja2 is not installed.

    Example:
        >>> from tune_guard.sweeps import Sweep, Trial
        >>> sweep = Sweep(source="x", engine="ray", name="<u>", trials=())
        >>> html = page([sweep])
        >>> "<u>" in html, "&lt;u&gt;" in html
        (False, True)
    """
    views = [_view(sweep, f"s{number}") for number, sweep in enumerate(sweeps)]
    return (
        environment()
        .get_template("page.html.j2")
        .render(
            title=title or ", ".join(sweep.name or sweep.source for sweep in sweeps),
            views=views,
            changes=_changes(views),
            colors=_colors([view.found for view in views]),
            made=now_utc(),
            version=version(),
        )
    )


def fragment(comparison: Comparison) -> str:
    """Return a comparison as a piece of HTML for a notebook: tables, no figure.

    Args:
        comparison: What :func:`tune_guard.sweeps.compare.compare` returned.

    Raises:
        ConfigError: If jinja2 is not installed.
    """
    return (
        environment()
        .get_template("fragment.html.j2")
        .render(
            found=comparison, colors=_colors([comparison]), advice=advice(comparison)
        )
    )


def _view(sweep: Sweep, key: str) -> _View:
    found = compare(sweep)
    healthy = [group.reason for group in found.groups if not group.sick]
    order = tuple(dict.fromkeys([*healthy, *(g.reason for g in found.groups)]))
    anchors = {t.id: f"{key}-t{number}" for number, t in enumerate(sweep.trials)}
    return _View(
        key=key,
        sweep=sweep,
        found=found,
        order=order,
        advice=advice(found),
        curves=curves_figure(sweep, order, anchors),
        timeline=timeline(sweep),
        parameters=parameter_figures(sweep, found, order),
        anchors=anchors,
        sparks=_sparks(sweep, found),
        rows=tuple(itertools.islice(sweep.trials, MOST_ROWS)),
        names=frozenset(varied(sweep.trials)[:MOST_NAMES]),
    )


def _sparks(sweep: Sweep, found: Comparison) -> dict[str, str]:
    """Draw small curves for the trials that are named."""
    trials = [*found.top, *(look.trial for look in found.first_looks)]
    sparks = {}
    for trial in trials:
        curve = sweep.curves.of(trial.id).get(sweep.metric)
        points = thinned(curve.steps, curve.values, 60) if curve else []
        x = Scale.around(step for step, _ in points)
        y = Scale.around(value for _, value in points)
        x = Scale(low=x.low, high=x.high)
        sparks[trial.id] = line([(x.at(s), y.at(v)) for s, v in points])
    return sparks


def _changes(views: Sequence[_View]) -> tuple[Change, ...]:
    if len(views) <= 1 or find_spec("scipy") is None:
        return ()
    from tune_guard.sweeps.side_by_side import changes

    return changes([view.found for view in views])


def _colors(comparisons: Sequence[Comparison]) -> dict[str, str]:
    groups = [group for found in comparisons for group in found.groups]
    return colors((group.reason, group.outcome) for group in groups)


@functools.cache
def environment() -> Environment:
    """Return what renders the templates.

    Raises:
        ConfigError: If jinja2 is not installed.
    """
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError as error:
        msg = "The HTML report needs jinja2: pip install 'tune-guard[report]'"
        raise ConfigError(msg) from error
    made = Environment(
        loader=PackageLoader("tune_guard.sweeps.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "amount": amount,
        "counted": counted,
        "label": label,
        "moment": _moment,
        "percent": _percent,
        "short": _shown,
        "spared": spared_lines,
    }
    return made


def _percent(share: float) -> str:
    """Return a share in per cent; what is not none is never shown as 0%."""
    return "<1%" if 0 < share < 0.005 else f"{share:.0%}"  # noqa: PLR2004 - rounds to 0


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return short(value)
    return "" if value is None else str(value)


def _moment(seconds: float) -> str:
    """Return a moment in UTC, to the minute."""
    return dt.datetime.fromtimestamp(seconds, dt.UTC).strftime("%Y-%m-%d %H:%M UTC")
