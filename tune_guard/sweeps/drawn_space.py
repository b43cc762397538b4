"""The space that a sweep drew from, as far as its trials show it."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tune_guard.exceptions import SourceError
from tune_guard.space import Categorical, Constant, Float, Int, Parameter, Space
from tune_guard.sweeps.regions import is_number, value_of

if TYPE_CHECKING:
    from tune_guard.sweeps.sweep import Trial

_LOG_FROM = 100
_MOST_CHOICES = 50
_FEW_NUMBERS = 5


def drawn_space(trials: Sequence[Trial]) -> tuple[Space, list[str]]:
    """Return the space of the values that were drawn, and what is not in it.

    Numbers become a range from the smallest to the largest, logarithmic where they
    are positive and a hundredfold apart; up to five different whole numbers, and
    all else, become choices. Conditions cannot be seen and are not guessed.

    Args:
        trials: All trials of a sweep.

    Raises:
        SourceError: If no trial has a hyperparameter that a space can hold.

    Example:
        >>> from tune_guard.sweeps import Trial
        >>> trials = [Trial(id=str(i), params={"lr": 10.0**-i}) for i in range(4)]
        >>> print(drawn_space(trials)[0].to_yaml().strip())
        lr: {type: float, low: 0.001, high: 1.0, log: true}
    """
    found: dict[str, Parameter] = {}
    left_out: list[str] = []
    for name in dict.fromkeys(name for trial in trials for name in trial.params):
        values = [v for t in trials if (v := value_of(t.params, name)) is not None]
        parameter = _parameter(values)
        if "/" in name:
            left_out.append(f"`{name}`: nested, which a space file cannot hold")
        elif parameter is not None:
            found[name] = parameter
        elif values:
            left_out.append(f"`{name}`: more than {_MOST_CHOICES} choices")
    if not found:
        msg = "No trial has a hyperparameter that a space can hold. Give `--space`."
        raise SourceError(msg)
    return Space(found), left_out


def _plain(value: Any) -> Any:
    return value if isinstance(value, (bool, int, float)) else str(value)


def _parameter(values: Sequence[Any]) -> Parameter | None:
    different = list(dict.fromkeys(values))
    if not different:
        return None
    if len(different) == 1:
        return Constant(value=different[0])
    if not all(map(is_number, different)):
        plain = [
            v if is_number(v) or isinstance(v, bool) else str(v) for v in different
        ]
        few = len(plain) <= _MOST_CHOICES
        return Categorical(choices=sorted(plain, key=str)) if few else None
    whole = all(isinstance(value, int) for value in different)
    if whole and len(different) <= _FEW_NUMBERS:
        return Categorical(choices=sorted(different))
    low, high = min(different), max(different)
    # Of values drawn evenly, half lie under the middle; by their logarithm, most do.
    skewed = statistics.median(values) < (low + high) / 4
    log = low > 0 and high / low >= _LOG_FROM and skewed
    return (Int if whole else Float)(low=low, high=high, log=log)
