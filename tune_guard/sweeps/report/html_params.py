"""The figure of reasons by hyperparameter: which region of the space kills."""

from __future__ import annotations

import bisect
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tune_guard.sweeps.compare import label
from tune_guard.sweeps.regions import is_number, value_of, word
from tune_guard.sweeps.report.html_scale import short
from tune_guard.sweeps.spreads import varied
from tune_guard.sweeps.wording import counted

if TYPE_CHECKING:
    from tune_guard.sweeps.compare import Comparison
    from tune_guard.sweeps.sweep import Sweep, Trial

MOST_PARAMETERS = 6
_MOST_COLUMNS = 8
_FEWEST_IN_COLUMN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """The trials of one region: how many ended for which reason."""

    text: str
    edge: str
    trials: int
    parts: tuple[tuple[str, int], ...]

    @property
    def said(self) -> str:
        """The column in words."""
        parts = ", ".join(f"{reason} {count}" for reason, count in self.parts)
        return f"{self.text}: {counted(self.trials)}: {parts}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterFigure:
    """One hyperparameter: a column a region, stacked by reason."""

    name: str
    columns: tuple[Column, ...]
    last_edge: str
    claims: tuple[str, ...]


def parameter_figures(
    sweep: Sweep, comparison: Comparison, order: Sequence[str]
) -> tuple[ParameterFigure, ...]:
    """Draw the hyperparameters, those that explain most first.

    Args:
        sweep: The sweep.

        comparison: Its comparison.

        order: Reasons, the one to stack undermost first.
    """
    names = _by_weight(sweep, comparison)
    figures = (_figure(name, sweep, comparison, order) for name in names)
    drawn = [figure for figure in figures if figure is not None]
    return tuple(drawn[:MOST_PARAMETERS])


def _by_weight(sweep: Sweep, comparison: Comparison) -> list[str]:
    """Order hyperparameters: those that a claim names, then by how far apart."""
    claims = comparison.explained.claims if comparison.explained else ()
    named = [c.name for claim in claims for c in claim.conditions]
    apart: dict[str, float] = {}
    for group in comparison.groups:
        for parameter in group.parameters or ():
            weight = parameter.separation * (group.sick or 0.1)
            apart[parameter.name] = max(apart.get(parameter.name, 0.0), weight)
    rest = sorted(varied(sweep.trials), key=lambda name: -apart.get(name, 0.0))
    return list(dict.fromkeys([*named, *rest]))


def _figure(
    name: str, sweep: Sweep, comparison: Comparison, order: Sequence[str]
) -> ParameterFigure | None:
    values = ((value_of(trial.params, name), trial) for trial in sweep.trials)
    pairs = [(value, trial) for value, trial in values if value is not None]
    if not pairs:
        return None
    numeric = all(is_number(value) for value, _ in pairs)
    columns, last = (_binned if numeric else _by_choice)(pairs, order)
    if len(columns) <= 1:
        return None
    claims = comparison.explained.claims if comparison.explained else ()
    said = [str(c) for c in claims if name in [region.name for region in c.conditions]]
    return ParameterFigure(
        name=name, columns=tuple(columns), last_edge=last, claims=tuple(said)
    )


_Pairs = Sequence[tuple[Any, "Trial"]]


def _binned(pairs: _Pairs, order: Sequence[str]) -> tuple[list[Column], str]:
    """Return columns of about equally many trials, or one a value if these are few."""
    values = sorted(value for value, _ in pairs)
    different = sorted(set(values))
    if len(different) <= _MOST_COLUMNS:
        found = [
            _column(short(v), short(v), [t for w, t in pairs if w == v], order)
            for v in different
        ]
        return found, ""
    count = max(2, min(_MOST_COLUMNS, len(values) // _FEWEST_IN_COLUMN))
    edges = sorted({values[i * len(values) // count] for i in range(count)})
    groups: list[list[Trial]] = [[] for _ in edges]
    for value, trial in pairs:
        groups[bisect.bisect_right(edges, value) - 1].append(trial)
    ends = [*edges[1:], values[-1]]
    columns = [
        _column(f"{short(low)} to {short(high)}", short(low, 2), group, order)
        for low, high, group in zip(edges, ends, groups, strict=True)
    ]
    return columns, short(values[-1], 2)


def _by_choice(pairs: _Pairs, order: Sequence[str]) -> tuple[list[Column], str]:
    counts = Counter(word(value) for value, _ in pairs)
    shown = [choice for choice, _ in counts.most_common(_MOST_COLUMNS)]
    columns = [
        _column(choice, choice, [t for v, t in pairs if word(v) == choice], order)
        for choice in sorted(shown)
    ]
    return columns, ""


def _column(
    text: str, edge: str, trials: Sequence[Trial], order: Sequence[str]
) -> Column:
    counts = Counter(map(label, trials))
    parts = tuple((reason, counts[reason]) for reason in order if counts[reason])
    return Column(text=text, edge=edge, trials=len(trials), parts=parts)
