"""The four kinds of parameter, and the values that each can take."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral, Real
from random import Random
from typing import TypeAlias, cast

from tune_guard.space import checks
from tune_guard.space.checks import Conditions, Scalar, Wanted


@dataclass(frozen=True, kw_only=True)
class _Kind(ABC):
    """What every kind has: the conditions under which it exists.

    Args:
        when: For each parent, the value or values with which this parameter
            is active. All parents must match. Empty: always active.
    """

    when: Mapping[str, Wanted] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._set("when", checks.conditions(self.when))

    def _set(self, key: str, value: object) -> None:
        object.__setattr__(self, key, value)

    @property
    def conditions(self) -> Conditions:
        """What ``when`` says, with every wanted value in a tuple."""
        return cast("Conditions", self.when)

    def is_active(self, values: Mapping[str, object]) -> bool:
        """Whether it exists beside these values of the parameters before it."""
        return all(
            parent in values
            and any(checks.same(values[parent], value) for value in wanted)
            for parent, wanted in self.conditions.items()
        )

    @abstractmethod
    def draw(self, rng: Random) -> Scalar:
        """Return one value, drawn with Python's generator."""

    @abstractmethod
    def holds(self, value: object) -> bool:
        """Whether ``value`` is one that this parameter can take."""


@dataclass(frozen=True, kw_only=True)
class Float(_Kind):
    """A real number in a closed range.

    Args:
        low: Smallest value.

        high: Largest value, itself included.

        log: Draw evenly on a logarithmic scale; needs ``low`` > 0.

        step: Distance of the allowed values, counted from ``low``. None: any
            value. Not together with ``log``.

    Raises:
        SpaceError: If a bound is no finite number, ``low`` > ``high``, or
            ``log`` or ``step`` does not fit the range.

    Example:
        >>> Float(low=1e-4, high=1.0, log=True).holds(0.01)
        True
        >>> Float(low=0.0, high=1.0, step=0.25).holds(0.3)
        False
    """

    low: float
    high: float
    log: bool = False
    step: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set("low", checks.number("low", self.low))
        self._set("high", checks.number("high", self.high))
        if self.step is not None:
            self._set("step", checks.number("step", self.step))
        checks.check_range(self.low, self.high, log=self.log, step=self.step)

    def draw(self, rng: Random) -> float:
        """Return one value, drawn with Python's generator."""
        if self.step is not None:
            return self.low + rng.randint(0, self._steps(self.step)) * self.step
        if not self.log:
            return rng.uniform(self.low, self.high)
        exponent = rng.uniform(math.log(self.low), math.log(self.high))
        # exp(log(x)) may lie a rounding error outside the range.
        return min(max(math.exp(exponent), self.low), self.high)

    def grid(self, step: float) -> Sequence[float]:
        """Return the values from ``low`` to ``high`` in steps of ``step``."""
        return [self.low + index * step for index in range(self._steps(step) + 1)]

    def _steps(self, step: float) -> int:
        return round((self.high - self.low) / step)

    def holds(self, value: object) -> bool:
        """Whether ``value`` is a number in the range and on its grid."""
        if isinstance(value, bool) or not isinstance(value, Real):
            return False
        number = float(value)
        if self.step is None:
            return self.low <= number <= self.high
        # The engines' own grid points may lie a rounding error outside.
        slack = self.step / 1000
        inside = self.low - slack <= number <= self.high + slack
        return inside and checks.on_grid(number, self.low, self.step)


@dataclass(frozen=True, kw_only=True)
class Int(_Kind):
    """A whole number in a closed range.

    Args:
        low: Smallest value.

        high: Largest value, itself included (also in Ray, whose own ``randint``
            leaves it out).

        log: Draw evenly on a logarithmic scale; needs ``low`` >= 1.

        step: Distance of the allowed values, counted from ``low``.

    Raises:
        SpaceError: If a bound is no whole number, ``low`` > ``high``, or
            ``log`` or ``step`` does not fit the range.

    Example:
        >>> Int(low=1, high=9, step=2).holds(4)
        False
    """

    low: int
    high: int
    log: bool = False
    step: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        for key in ("low", "high", "step"):
            self._set(key, checks.whole(key, getattr(self, key)))
        stepped = None if self.step == 1 else self.step
        checks.check_range(self.low, self.high, log=self.log, step=stepped)

    def draw(self, rng: Random) -> int:
        """Return one value, drawn with Python's generator."""
        if not self.log:
            return rng.randrange(self.low, self.high + 1, self.step)
        exponent = rng.uniform(math.log(self.low), math.log(self.high + 1))
        return min(max(int(math.exp(exponent)), self.low), self.high)

    def grid(self) -> Sequence[int]:
        """Return the allowed values, in order."""
        return range(self.low, self.high + 1, self.step)

    def holds(self, value: object) -> bool:
        """Whether ``value`` is a whole number in the range and on its grid."""
        if isinstance(value, bool) or not isinstance(value, Integral):
            return False
        return int(value) in self.grid()


@dataclass(frozen=True, kw_only=True)
class Categorical(_Kind):
    """One of several named values.

    Args:
        choices: Texts, numbers, true, false or null; no value twice.

    Raises:
        SpaceError: If there is no choice, or one is a list or stands twice.

    Example:
        >>> Categorical(choices=("sgd", "adam")).holds("adam")
        True
    """

    choices: Sequence[Scalar]

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set("choices", checks.check_choices(self.choices))
        checks.check_visible("choices", self.choices, self.when)

    def draw(self, rng: Random) -> Scalar:
        """Return one value, drawn with Python's generator."""
        return rng.choice(self.choices)

    def holds(self, value: object) -> bool:
        """Whether ``value`` is one of the choices."""
        return any(checks.same(value, choice) for choice in self.choices)


@dataclass(frozen=True, kw_only=True)
class Constant(_Kind):
    """A value that does not vary, so that every trial carries it.

    Args:
        value: A text, number, true, false or null.

    Raises:
        SpaceError: If the value is a list or a mapping.

    Example:
        >>> Constant(value=20).holds(21)
        False
    """

    value: Scalar

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.check_plain("value", self.value)
        checks.check_visible("value", (self.value,), self.when)

    def draw(self, rng: Random) -> Scalar:  # noqa: ARG002 - nothing to draw
        """Return the value."""
        return self.value

    def holds(self, value: object) -> bool:
        """Whether ``value`` is the constant."""
        return checks.same(value, self.value)


Parameter: TypeAlias = Float | Int | Categorical | Constant
