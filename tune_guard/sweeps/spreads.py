"""Which hyperparameters lie behind a reason, beside those of the healthy trials."""

from __future__ import annotations

import bisect
import statistics
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tune_guard.sweeps.sweep import Trial

FEWEST = 5
"""From fewer trials than this nothing is claimed about hyperparameters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberSpread:
    """Where the values of a numeric hyperparameter lie."""

    count: int
    lowest: float
    lower_quartile: float
    median: float
    upper_quartile: float
    highest: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoiceSpread:
    """How often each choice of a categorical hyperparameter was taken."""

    count: int
    counts: Mapping[str, int]


Spread = NumberSpread | ChoiceSpread


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One hyperparameter behind a reason, beside the healthy trials.

    Trials that left it unset do not count: a conditional hyperparameter.

    Args:
        name: Name of the hyperparameter.

        behind: Its values in the trials that ended for the reason.

        healthy: Its values in the healthy trials; None when these are too few.

        separation: From 0, where both lie alike, to 1, where they do not
            overlap: twice the distance of the probability that a value behind
            the reason exceeds a healthy one from one half; for choices, the
            share that would have to change. It orders the table and is no test.
    """

    name: str
    behind: Spread
    healthy: Spread | None
    separation: float


def varied(trials: Iterable[Trial]) -> list[str]:
    """Return the hyperparameters that differ between trials."""
    seen: defaultdict[str, set[str]] = defaultdict(set)
    for trial in trials:
        for name, value in trial.params.items():
            seen[name].add(repr(value))
    return [name for name, values in seen.items() if len(values) > 1]


def parameters_behind(
    names: Iterable[str], members: Sequence[Trial], healthy: Sequence[Trial]
) -> tuple[Parameter, ...]:
    """Return where the values of each hyperparameter lie, the most apart first.

    Args:
        names: The hyperparameters to look at.

        members: Trials that ended for one reason.

        healthy: The healthy trials of the sweep.
    """
    found = [_parameter(name, members, healthy) for name in names]
    said = [parameter for parameter in found if parameter is not None]
    return tuple(sorted(said, key=lambda p: (-p.separation, p.name)))


def _parameter(
    name: str, members: Sequence[Trial], healthy: Sequence[Trial]
) -> Parameter | None:
    behind, beside = _values(name, members), _values(name, healthy)
    if len(behind) < FEWEST:
        return None
    numeric = all(map(_is_number, [*behind, *beside]))
    spread = _number_spread if numeric else _choice_spread
    enough = len(beside) >= FEWEST
    separation = 0.0
    if enough:
        apart = _numbers_apart if numeric else _choices_apart
        separation = apart(behind, beside)
    return Parameter(
        name=name,
        behind=spread(behind),
        healthy=spread(beside) if enough else None,
        separation=separation,
    )


def _values(name: str, trials: Iterable[Trial]) -> list[Any]:
    """Return the values that were set: a conditional parameter may be left out.

    Optuna leaves it out, a Ray space has None in its place.
    """
    values = (trial.params.get(name) for trial in trials)
    return [v for v in values if v is not None and v == v]  # noqa: PLR0124 - no NaN


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _number_spread(values: Sequence[float]) -> Spread:
    lower, median, upper = statistics.quantiles(values, n=4, method="inclusive")
    return NumberSpread(
        count=len(values),
        lowest=min(values),
        lower_quartile=lower,
        median=median,
        upper_quartile=upper,
        highest=max(values),
    )


def _word(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _choice_spread(values: Sequence[object]) -> Spread:
    counts = Counter(map(_word, values))
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ChoiceSpread(count=len(values), counts=dict(ordered))


def _numbers_apart(behind: Sequence[float], healthy: Sequence[float]) -> float:
    ordered = sorted(healthy)
    above = sum(
        (bisect.bisect_left(ordered, value) + bisect.bisect_right(ordered, value)) / 2
        for value in behind
    )
    return abs(2 * above / (len(behind) * len(healthy)) - 1)


def _choices_apart(behind: Sequence[object], healthy: Sequence[object]) -> float:
    left, right = Counter(map(_word, behind)), Counter(map(_word, healthy))
    return 0.5 * sum(
        abs(left[choice] / len(behind) - right[choice] / len(healthy))
        for choice in {*left, *right}
    )
