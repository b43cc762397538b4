"""Regions of one hyperparameter, found by standard tests: ``lr > 0.03``."""

from __future__ import annotations

import math
import warnings
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tune_guard.sweeps.sweep import Trial

_MOST_CHOICES = 20
_EXACT_UP_TO = 1000
_RESAMPLES = 9999
_ROUNDING = 1e-9
_EXPECTED = 5
"""Cell count from which the chi-squared approximation holds. Source: W. G. Cochran,
Some methods for strengthening the common chi-squared tests, Biometrics 10 (1954)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """A region of one hyperparameter.

    Args:
        name: Name of the hyperparameter.

        kind: ``above`` the cut, ``at_most`` the cut, or ``among`` choices.

        cut: Where a numeric hyperparameter is cut; None for choices.

        choices: The choices, as texts; empty for numbers.

    Example:
        >>> str(Condition(name="lr", kind="above", cut=0.03))
        'lr > 0.03'
        >>> str(Condition(name="opt", kind="among", choices=("sgd", "adam")))
        'opt is sgd or adam'
    """

    name: str
    kind: Literal["above", "at_most", "among"]
    cut: float | None = None
    choices: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return the region in words."""
        if self.cut is None:
            return f"{self.name} is {' or '.join(self.choices)}"
        return f"{self.name} {'>' if self.kind == 'above' else '≤'} {self.cut:.3g}"

    def holds(self, params: Mapping[str, Any]) -> bool | None:
        """Whether it holds for a trial; None where the trial left it unset."""
        value = value_of(params, self.name)
        if value is None:
            return None
        if self.cut is None:
            return word(value) in self.choices
        if not is_number(value):
            return None
        above: bool = value > self.cut
        return above if self.kind == "above" else not above


class Split(NamedTuple):
    """One hyperparameter, tested for one reason.

    Args:
        condition: The region in which the reason is most over-represented.

        p_value: Of the test, not corrected.

        gap: Share of the reason's trials in the region, less that of the others.

        test: Name of the test.
    """

    condition: Condition
    p_value: float
    gap: float
    test: str


def value_of(params: Mapping[str, Any], name: str) -> Any:
    """Return a value that was set, else None: a conditional one may be left out."""
    value = params.get(name)
    unset = value is None or (isinstance(value, float) and not math.isfinite(value))
    return None if unset else value


def is_number(value: object) -> bool:
    """Whether a value is a number; True and False are choices."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def word(value: object) -> str:
    """Return a choice as a text."""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def split(
    name: str, sick: Iterable[Trial], others: Iterable[Trial], *, fewest: int
) -> Split | None:
    """Test whether a hyperparameter differs between a reason's trials and others.

    Numbers: the two-sample Kolmogorov-Smirnov test, exact for up to 1,000 trials.
    Its statistic is the largest gap over all cut points, so that having chosen
    the cut is already paid for. Choices: the chi-squared test; where an expected
    count is under 5, against 9,999 random tables of the same margins.

    Args:
        name: Name of the hyperparameter; trials that left it unset do not count.

        sick: Trials that ended for the reason.

        others: Trials that did not.

        fewest: Trials needed on either side.

    Returns:
        None when there are too few, or nothing to tell apart.
    """
    left = [v for t in sick if (v := value_of(t.params, name)) is not None]
    right = [v for t in others if (v := value_of(t.params, name)) is not None]
    if min(len(left), len(right)) < fewest:
        return None
    if all(map(is_number, left)) and all(map(is_number, right)):
        return _numbers(name, left, right)
    return _choices(name, left, right)


def _numbers(name: str, left: Sequence[float], right: Sequence[float]) -> Split | None:
    if len({*left, *right}) <= 1:
        return None
    from scipy import stats

    exact = max(len(left), len(right)) <= _EXACT_UP_TO
    method = "exact" if exact else "asymp"
    with warnings.catch_warnings():
        # Two samples that are almost alike: scipy then takes the approximation.
        warnings.simplefilter("ignore", RuntimeWarning)
        found = stats.ks_2samp(left, right, method=method)
    if not found.statistic:
        return None
    at = found.statistic_location
    larger = [value for value in (*left, *right) if value > at]
    # A positive sign: the reason's values are the smaller ones.
    kind: Literal["above", "at_most"] = (
        "at_most" if found.statistic_sign > 0 else "above"
    )
    cut = round_between(at, min(larger)) if larger else at
    condition = Condition(name=name, kind=kind, cut=cut)
    p_value, gap = float(found.pvalue), float(found.statistic)
    return Split(condition, p_value, gap, "Kolmogorov-Smirnov")


def _choices(name: str, left: Sequence[Any], right: Sequence[Any]) -> Split | None:
    sick, others = Counter(map(word, left)), Counter(map(word, right))
    choices = sorted({*sick, *others})
    if not 1 < len(choices) <= _MOST_CHOICES:
        return None
    share = len(left) / (len(left) + len(right))
    kills = [c for c in choices if sick[c] > share * (sick[c] + others[c])]
    if not kills:
        return None
    gap = sum(sick[c] for c in kills) / len(left)
    gap -= sum(others[c] for c in kills) / len(right)
    condition = Condition(name=name, kind="among", choices=tuple(kills))
    table = [[side[c] for c in choices] for side in (sick, others)]
    return Split(condition, _chi_squared(table), gap, "chi-squared")


def _chi_squared(table: Sequence[Sequence[int]]) -> float:
    import numpy as np
    from scipy import stats

    found = stats.chi2_contingency(table, correction=False)
    expected = found.expected_freq
    if expected.min() >= _EXPECTED:
        return float(found.pvalue)
    counts = np.array(table)
    margins = stats.random_table(counts.sum(axis=1), counts.sum(axis=0))
    drawn = margins.rvs(_RESAMPLES, random_state=np.random.default_rng(0))
    larger = (((drawn - expected) ** 2 / expected).sum(axis=(1, 2))) >= (
        found.statistic * (1 - _ROUNDING)
    )
    return float((1 + larger.sum()) / (1 + _RESAMPLES))


def round_between(low: float, high: float) -> float:
    """Return the shortest number in ``[low, high)``, near the middle.

    Example:
        >>> round_between(0.0283, 0.0341), round_between(16, 32)
        (0.03, 20.0)
    """
    same_sign = low > 0 or high < 0
    middle = math.copysign(math.sqrt(low * high), low) if same_sign else 0.0
    if not same_sign:
        middle = (low + high) / 2
    for digits in range(1, 17):
        short = float(f"{middle:.{digits}g}")
        if low <= short < high:
            return short
    return low
