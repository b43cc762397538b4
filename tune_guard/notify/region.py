"""Which part of the search space kills: the one hyperparameter that says it best."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

LEAST_TRIALS = 3
"""Fewer trials on a side say nothing about a region."""

LEAST_GAP = 0.5
"""Share of the killed inside less share of the others inside, below which a region
is not worth naming, however sure it is. Chosen."""

FALSE_ALARM_RATE = 0.05
"""How often a region may be named where there is none, over all hyperparameters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """One side of one hyperparameter.

    Args:
        param: Name of the hyperparameter.

        relation: ``above``, ``below`` (both inclusive) or ``is``.

        bound: The smallest (``above``) or largest (``below``) value among the
            killed that lie in it, or the value itself (``is``).

        killed_inside: How many of the killed lie in it.

        others_inside: How many of the others do.
    """

    param: str
    relation: str
    bound: Any
    killed_inside: int
    killed: int
    others_inside: int
    others: int

    @property
    def gap(self) -> float:
        """How much oftener the killed lie in it than the others."""
        return self.killed_inside / self.killed - self.others_inside / self.others


def find_region(
    killed: Sequence[Mapping[str, Any]], others: Sequence[Mapping[str, Any]]
) -> Region | None:
    """Return the half space that holds the killed and not the others.

    Args:
        killed: Hyperparameters of the trials that died of one reason.

        others: Those of all other trials.

    Returns:
        The clearest region, or None where no single hyperparameter tells them
        apart.

    Example:
        >>> found = find_region([{"lr": x} for x in (0.1, 0.2, 0.3, 0.4)],
        ...                     [{"lr": x / 1000} for x in range(1, 9)])
        >>> found.param, found.relation, found.bound
        ('lr', 'above', 0.1)
    """
    if min(len(killed), len(others)) < LEAST_TRIALS:
        return None
    names = dict.fromkeys(name for params in killed for name in params)
    regions = [r for name in names for r in _regions_of(name, killed, others)]
    best = max(regions, key=lambda region: region.gap, default=None)
    if best is None or best.gap < _clear_gap(len(killed), len(others), len(names)):
        return None
    return best


def _clear_gap(killed: int, others: int, params: int) -> float:
    """Return the gap that chance alone hardly ever makes.

    Source: critical value of the two-sample Kolmogorov-Smirnov test, whose
    statistic the gap is, at the false-alarm rate shared among hyperparameters.
    """
    rate = FALSE_ALARM_RATE / max(1, params)
    chance = math.sqrt(-math.log(rate / 2) / 2 * (killed + others) / (killed * others))
    return max(LEAST_GAP, chance)


def _regions_of(
    name: str, killed: Sequence[Mapping[str, Any]], others: Sequence[Mapping[str, Any]]
) -> list[Region]:
    inside = [params[name] for params in killed if name in params]
    outside = [params[name] for params in others if name in params]
    sizes = {"killed": len(killed), "others": len(others)}
    if all(map(_is_number, inside + outside)):
        return _half_spaces(name, inside, outside, sizes)
    counts, others_counts = Counter(map(str, inside)), Counter(map(str, outside))
    return [
        Region(
            param=name,
            relation="is",
            bound=value,
            killed_inside=count,
            others_inside=others_counts[value],
            **sizes,
        )
        for value, count in counts.items()
    ]


def _half_spaces(
    name: str, inside: list[float], outside: list[float], sizes: Mapping[str, int]
) -> list[Region]:
    regions = []
    for relation, sign in (("above", 1.0), ("below", -1.0)):
        bound, gap, counts = 0.0, -math.inf, (0, 0)
        others = sorted((sign * value for value in outside), reverse=True)
        passed = 0
        for count, value in enumerate(sorted((sign * v for v in inside), reverse=True)):
            while passed < len(others) and others[passed] >= value:
                passed += 1
            found = (count + 1) / sizes["killed"] - passed / sizes["others"]
            if found > gap:
                bound, gap, counts = sign * value, found, (count + 1, passed)
        regions.append(
            Region(
                param=name,
                relation=relation,
                bound=bound,
                killed_inside=counts[0],
                others_inside=counts[1],
                **sizes,
            )
        )
    return regions


def _is_number(value: object) -> bool:
    return (
        isinstance(value, (int, float))
        and not isinstance(value, bool)
        and math.isfinite(value)
    )
