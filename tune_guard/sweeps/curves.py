"""The curves of a sweep: what its trials reported, in arrays."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

Mode = Literal["min", "max"]
MODES: dict[str, Mode] = {"min": "min", "max": "max"}


@dataclass(frozen=True, slots=True)
class Curve:
    """One metric of one trial, in order of its steps.

    Args:
        steps: Steps of the readings, ascending. Type code ``q``.

        values: The readings; NaN and infinities as they were. Type code ``d``.

        times_s: Seconds of the trial's run time at each reading, NaN where it
            is not known; None when it is known for none.

    Example:
        >>> curve = Curve(array("q", [1, 2, 3]), array("d", [0.5, 0.2, 0.3]))
        >>> curve.best("min"), curve.best("min", before=2), curve.last
        ((0.2, 2), (0.5, 1), 0.3)
    """

    steps: array[int]
    values: array[float]
    times_s: array[float] | None = None

    def __len__(self) -> int:
        """Return the number of readings."""
        return len(self.steps)

    @property
    def last(self) -> float | None:
        """The last reading, or None when there is none."""
        return self.values[-1] if self.values else None

    def best(self, mode: Mode, before: int | None = None) -> tuple[float, int] | None:
        """Return the best finite reading and its step, the first of equals.

        Args:
            mode: Whether lower (``min``) or higher (``max``) is better.

            before: Readings at this step and later are left out.
        """
        sign = 1.0 if mode == "min" else -1.0
        finite = (
            (sign * value, step, value)
            for step, value in zip(self.steps, self.values, strict=True)
            if math.isfinite(value) and (before is None or step < before)
        )
        found = min(finite, default=None)
        return None if found is None else (found[2], found[1])


class Reading(NamedTuple):
    """One row of the table of curves."""

    trial: str
    step: int
    metric: str
    value: float
    time_s: float | None


class Curves:
    """The table of curves: ``(trial, step, metric, value, time_s)``.

    Iterating gives one :class:`Reading` a row. The readings themselves lie in
    arrays, one for each metric of a trial.

    Example:
        >>> curve = Curve(array("q", [1, 2]), array("d", [0.5, 0.2]))
        >>> curves = Curves({"a": {"loss": curve}})
        >>> len(curves), curves.metrics(), curves.of("a")["loss"].last
        (2, ['loss'], 0.2)
        >>> next(iter(curves))
        Reading(trial='a', step=1, metric='loss', value=0.5, time_s=None)
    """

    def __init__(self, by_trial: Mapping[str, Mapping[str, Curve]]) -> None:
        self.by_trial = by_trial

    def of(self, trial: str) -> Mapping[str, Curve]:
        """Return the curves of one trial by metric; empty if it reported none."""
        return self.by_trial.get(trial, {})

    def metrics(self) -> list[str]:
        """Return the metrics of all trials, those that most trials have first."""
        counts: dict[str, int] = {}
        for curves in self.by_trial.values():
            for metric in curves:
                counts[metric] = counts.get(metric, 0) + 1
        return sorted(counts, key=lambda metric: (-counts[metric], metric))

    def __len__(self) -> int:
        """Return the number of readings."""
        return sum(len(c) for curves in self.by_trial.values() for c in curves.values())

    def __iter__(self) -> Iterator[Reading]:
        """Iterate over the rows of the table."""
        for trial, curves in self.by_trial.items():
            for metric, curve in curves.items():
                times: Iterable[float | None] = curve.times_s or [None] * len(curve)
                for step, value, time_s in zip(
                    curve.steps, curve.values, times, strict=True
                ):
                    yield Reading(trial, step, metric, value, time_s)
