"""What can be wrong with a parameter, each in one sentence that says what to write."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import TypeAlias

from tune_guard.exceptions import ConfigError

Scalar: TypeAlias = str | int | float | bool | None
Wanted: TypeAlias = Scalar | Sequence[Scalar]
Conditions: TypeAlias = Mapping[str, tuple[Scalar, ...]]

# In steps. A sum such as low + 3 * step is off by a few units in the last place,
# and Ray and Optuna compute it in different orders.
_GRID_TOLERANCE = 1e-6

# The engines hold whole numbers in 64 bits, Ray with 1 added to the upper bound.
_LARGEST_INT = 2**63 - 2


class SpaceError(ConfigError):
    """A search space that cannot be meant; says where and what to write.

    Args:
        message: What is wrong and what to do next.

        parameter: Name of the parameter it is about, "" for the whole space.

        key: Key of the parameter it is about, such as ``low``; "" for all.
    """

    def __init__(self, message: str, *, parameter: str = "", key: str = "") -> None:
        super().__init__(message)
        self.parameter = parameter
        self.key = key


def same(first: object, second: object) -> bool:
    """Whether two values are one choice: 1 is 1.0, but True is not 1."""
    return first == second and isinstance(first, bool) == isinstance(second, bool)


def number(key: str, value: object) -> float:
    """Return ``value`` as a finite float, or say that it is none."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        if abs(value) <= sys.float_info.max:
            return float(value)
        msg = f"`{key}` must be finite, but got {value!r}."
        raise SpaceError(msg, key=key)
    msg = f"`{key}` must be a number, but got {value!r}.{_quotes_hint(value)}"
    raise SpaceError(msg, key=key)


def whole(key: str, value: object) -> int:
    """Return ``value`` as an int (1e3 is 1000), or say that it is none."""
    if isinstance(value, int) and not isinstance(value, bool):
        if abs(value) <= _LARGEST_INT:
            return value
        msg = f"`{key}` must fit into 64 bits, but got {value!r}."
        raise SpaceError(msg, key=key)
    as_float = number(key, value)
    if not as_float.is_integer():
        msg = f"`{key}` must be a whole number, but got {value!r}. Use `type: float`?"
        raise SpaceError(msg, key=key)
    return int(as_float)


def flag(key: str, value: object) -> None:
    """Refuse anything but true and false."""
    if not isinstance(value, bool):
        msg = f"`{key}` must be true or false, but got {value!r}."
        raise SpaceError(msg, key=key)


def check_range(low: float, high: float, *, log: bool, step: float | None) -> None:
    """Refuse bounds that are swapped, and a scale or grid that does not fit them."""
    flag("log", log)
    if low > high:
        msg = f"`low` must be <= `high`, but got {low!r} > {high!r}. Swap them?"
        raise SpaceError(msg, key="low")
    if high - low > sys.float_info.max:
        msg = f"`high` - `low` must be finite, but got {high!r} and {low!r}."
        raise SpaceError(msg, key="high")
    if log and low <= 0:
        msg = (
            f"`low` must be > 0 with `log: true`, but got {low!r}. Write the "
            "smallest useful value, such as 1e-6."
        )
        raise SpaceError(msg, key="low")
    if step is not None:
        _check_step(low, high, log=log, step=step)


def _check_step(low: float, high: float, *, log: bool, step: float) -> None:
    if log:
        msg = "`step` and `log: true` exclude each other. Remove one of them."
        raise SpaceError(msg, key="step")
    if step <= 0:
        msg = f"`step` must be > 0, but got {step!r}."
        raise SpaceError(msg, key="step")
    beyond = float(remainder(low, high, step))
    if beyond:
        msg = (
            f"`high` must be reached from `low` in steps of {step!r}, but got "
            f"{high!r}. The nearest below is {high - beyond:g}."
        )
        raise SpaceError(msg, key="high")


def remainder(low: float, high: float, step: float) -> Fraction:
    """Return what is left of ``high - low`` after whole steps, in decimals.

    By the numbers as they are written, as Optuna does it: 0.7 is six steps of
    0.1 above 0.1, though not in binary.

    Example:
        >>> remainder(0.1, 0.7, 0.1), remainder(0.1, 0.75, 0.1)
        (Fraction(0, 1), Fraction(1, 20))
    """
    distance = Fraction(str(high)) - Fraction(str(low))
    return distance % Fraction(str(step))


def on_grid(value: float, low: float, step: float) -> bool:
    """Whether a drawn ``value`` is ``low`` plus whole steps, up to rounding.

    Example:
        >>> on_grid(0.1 + 0.2, 0.1, 0.1), on_grid(0.35, 0.1, 0.1)
        (True, False)
    """
    steps = (value - low) / step
    return abs(steps - round(steps)) <= _GRID_TOLERANCE


def check_plain(key: str, value: object) -> None:
    """Refuse a choice that an engine could not store or find again."""
    if isinstance(value, float):
        number(key, value)
    if value is not None and not isinstance(value, str | int | float):
        msg = (
            f"`{key}` takes texts, numbers, true, false and null, but got "
            f"{value!r}. Name it by a text, such as '64x64', and look that up."
        )
        raise SpaceError(msg, key=key)


def check_choices(choices: object) -> tuple[Scalar, ...]:
    """Return the choices as a tuple of plain, different values."""
    if not isinstance(choices, list | tuple) or not choices:
        msg = f"`choices` must be a list of at least one value, but got {choices!r}."
        raise SpaceError(msg, key="choices")
    earlier: set[Scalar] = set()
    for choice in choices:
        check_plain("choices", choice)
        # By plain equality: an engine that looks for True finds a 1 before it.
        if choice in earlier:
            msg = f"`choices` must differ, but {choice!r} equals an earlier one."
            raise SpaceError(msg, key="choices")
        earlier.add(choice)
    return tuple(choices)


def check_visible(
    key: str, values: Iterable[Scalar], when: Mapping[str, Wanted]
) -> None:
    """Refuse null as a value of a conditional parameter."""
    if when and None in values:
        msg = (
            f"`{key}` must not hold null together with `when`: null is what Ray "
            "shows for a parameter that is not active. Use a text such as none."
        )
        raise SpaceError(msg, key=key)


def conditions(when: object) -> Conditions:
    """Return the conditions with every wanted value in a tuple."""
    if not isinstance(when, Mapping):
        msg = (
            f"`when` must map a parent to its values, but got {when!r}. "
            "Write for example `when: {optimizer: sgd}`."
        )
        raise SpaceError(msg, key="when")
    several = {
        parent: tuple(wanted) if isinstance(wanted, list | tuple) else (wanted,)
        for parent, wanted in when.items()
    }
    for parent, wanted in several.items():
        if not wanted:
            msg = f"`when` must name at least one value of `{parent}`."
            raise SpaceError(msg, key="when")
        for value in wanted:
            check_plain("when", value)
    return several


def _quotes_hint(value: object) -> str:
    try:
        float(str(value))
    except ValueError:
        return ""
    return " Remove the quotes." if isinstance(value, str) else ""
