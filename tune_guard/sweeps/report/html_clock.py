"""The clock of a sweep: time in which trials ran, without long pauses between them.

A sweep that was resumed the next day would be two strokes at the edges of a figure.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_LONG_RATIO = 0.25
"""A pause is left out when it is longer than this share of the time at work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """Turns moments into seconds at work.

    Args:
        start: Moment at which the first trial began.

        length: Seconds from then to the end of the last, without the pauses.

        pauses: Begin and length of each pause that is left out.
    """

    start: float
    length: float
    pauses: tuple[tuple[float, float], ...]

    @classmethod
    def of(cls, runs: Iterable[tuple[float, float]]) -> Clock:
        """Return the clock of runs, each with its begin and end.

        Example:
            >>> clock = Clock.of([(0, 10), (5, 20), (1000, 1030)])
            >>> clock.length, clock.pauses, clock.at(1010)
            (50.0, ((20.0, 980.0),), 30.0)
        """
        spans: list[list[float]] = []
        for began, ended in sorted(runs):
            if spans and began <= spans[-1][1]:
                spans[-1][1] = max(spans[-1][1], ended)
            else:
                spans.append([began, ended])
        at_work = sum(ended - began for began, ended in spans)
        pauses = [
            (float(before[1]), float(after[0] - before[1]))
            for before, after in itertools.pairwise(spans)
            if after[0] - before[1] > _LONG_RATIO * at_work
        ]
        whole = spans[-1][1] - spans[0][0] - sum(length for _, length in pauses)
        return cls(start=spans[0][0], length=float(whole), pauses=tuple(pauses))

    @property
    def paused_s(self) -> float:
        """Seconds that are left out."""
        return sum(length for _, length in self.pauses)

    def at(self, moment: float) -> float:
        """Return the seconds at work before a moment in which a trial ran."""
        gone = sum(length for begin, length in self.pauses if begin < moment)
        return float(moment - self.start - gone)
