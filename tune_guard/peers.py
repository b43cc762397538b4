"""What the finished trials of a sweep had reached at each share of their budget."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from statistics import median
from typing import Any

from tune_guard.summary import Summary

GRID = 100
"""Shares of the budget at which a course is kept, beside its start."""

_MOST_LEADERS = 64
_MOST_JUMPS = 64
_MOST_IDS = 4096
_LEAST_LEADERS = 2
_EARLIEST = GRID // 10
_NOISE_WEAKENS = 3.0
_NONE = -math.inf


class Course(Summary):
    """How a trial's best score grew over its budget, in bounded memory.

    A share of the budget holds the best score up to it, however often or seldom
    the trial reported. The noise is that of neighbouring readings: of a long
    trial every second, fourth, eighth ... pair is looked at.

    Args:
        reached: Best score at each share from 0 on, as far as the trial has come;
            None before its first reading.

        first: The first score; ``best`` and ``last`` likewise.

    Example:
        >>> course = Course()
        >>> for step in (1, 2, 4):
        ...     course.add(step / 4, step, budget_steps=4)
        >>> [course.at(share) for share in (25, 50, 75, 100)]
        [0.25, 0.5, 0.5, 1.0]
    """

    __slots__ = ("best", "first", "jumps", "last", "pairs", "reached", "stride")

    def __init__(self) -> None:
        self.reached: list[float | None] = []
        self.first: float | None = None
        self.best: float | None = None
        self.last: float | None = None
        self.jumps: list[float] = []
        self.pairs, self.stride = 0, 1

    def add(self, score: float, step: int, budget_steps: int) -> None:
        """Take in one finite score, reported at a step of the budget.

        What comes past the budget is not part of it.
        """
        if step > budget_steps:
            return
        before = -(-step * GRID // budget_steps)
        missing = before - len(self.reached)
        if missing > 0:
            self.reached += [self.best] * missing
        if self.best is None or score > self.best:
            self.best = score
        if self.last is None:
            self.first = score
        else:
            self._jump(score - self.last)
        self.last = score

    def _jump(self, by: float) -> None:
        if self.pairs % self.stride == 0 and math.isfinite(by):
            self.jumps.append(by)
            if len(self.jumps) == _MOST_JUMPS:
                self.jumps = self.jumps[::2]
                self.stride *= 2
        self.pairs += 1

    def at(self, share: int) -> float:
        """Return the best score up to a share of the budget; -inf before any."""
        reached = self.reached
        score = reached[share] if share < len(reached) else self.best
        return _NONE if score is None else score

    @property
    def noise(self) -> float:
        """Standard deviation of a reading around its level, robust."""
        if not self.jumps:
            return 0.0
        middle = median(self.jumps)
        rest = median([abs(jump - middle) for jump in self.jumps])
        return 1.4826 * rest / math.sqrt(2.0)

    def check(self) -> None:
        """Refuse what would grow without a bound, or cannot be compared."""
        single = (self.first, self.best, self.last)
        ok = (
            isinstance(self.reached, list)
            and isinstance(self.jumps, list)
            and len(self.reached) <= GRID + 1
            and len(self.jumps) < _MOST_JUMPS
            and all(map(_is_number, self.jumps))
            and all(v is None or _is_number(v) for v in (*self.reached, *single))
            and len({value is None for value in single}) == 1
            and all(type(n) is int for n in (self.pairs, self.stride))
            and self.stride >= 1
        )
        if not ok:
            msg = "a course must hold numbers"
            raise ValueError(msg)


def _is_number(value: object) -> bool:
    real = isinstance(value, (int, float)) and not isinstance(value, bool)
    return real and math.isfinite(value)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Bar:
    """What a running trial is measured against.

    Args:
        finished: Finished trials that stand behind it.

        leaders: The best of them, whose courses it is made of.

        scores: Least score at each share of the budget: below it a trial is
            behind. -inf where nothing is asked.

        goal: What the last of the leaders reached in the end.
    """

    finished: int
    leaders: int
    scores: tuple[float, ...]
    goal: float


class Peers:
    """The finished trials of one sweep: the best of them, and how many there were.

    One object is shared by the monitors of a sweep. Only trials that ran to their
    end count: how a trial that was cut would have gone on, nobody knows. At most
    64 courses are kept, so the size does not grow with the sweep. It holds plain
    values and can be pickled at any time.

    Example:
        >>> peers, course = Peers(), Course()
        >>> course.add(0.9, 10, budget_steps=10)
        >>> peers.add("a", course)
        >>> peers.finished
        1
    """

    def __init__(self) -> None:
        self.finished = 0
        self._leaders: list[tuple[str, Course]] = []
        self._ids: dict[str, None] = {}
        self._bars: dict[float, Bar] = {}

    def add(self, trial_id: str, course: Course) -> None:
        """Take in the course of a trial that ran to its end.

        A trial that was taken in before, or never had a finite score, adds nothing.
        """
        best = course.best
        if best is None or trial_id in self._ids:
            return
        self._ids[trial_id] = None
        if len(self._ids) > _MOST_IDS:
            del self._ids[next(islice(self._ids, 1))]
        kept = Course()
        kept.restore(course.state())
        ranked = sorted([*self._leaders, (trial_id, kept)], key=_best, reverse=True)
        self._leaders = ranked[:_MOST_LEADERS]
        self.finished += 1
        self._bars = {}

    def bar(self, growth: float) -> Bar:
        """Return what a running trial is measured against.

        It is made anew only when a further trial has finished.

        Args:
            growth: How the number of leaders grows with the number of finished
                trials: 2 and ``growth`` times its square root.
        """
        found = self._bars.get(growth)
        if found is None:
            found = self._bars[growth] = self._made(growth)
        return found

    def _made(self, growth: float) -> Bar:
        count = round(_LEAST_LEADERS + growth * math.sqrt(self.finished))
        leaders = [course for _, course in self._leaders[:count]]
        if not leaders:
            return Bar(0, 0, (_NONE,) * (GRID + 1), _NONE)
        finals = [course.at(GRID) for course in leaders]
        noise = median([course.noise for course in leaders])
        earlier = _earlier(
            noise, median([c.at(GRID) - (c.first or 0.0) for c in leaders])
        )
        margin = (
            0.5 * noise
            + 0.25 * (finals[0] - finals[-1])
            + 0.5 * _made_up(leaders, earlier)
        )
        scores = tuple(
            min(course.at(share) for course in leaders) - margin for share in earlier
        )
        return Bar(self.finished, len(leaders), scores, finals[-1])

    def state(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {
            "finished": self.finished,
            "ids": list(self._ids),
            "leaders": [[name, course.state()] for name, course in self._leaders],
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over what :meth:`state` returned.

        Raises:
            ValueError: If it is damaged; nothing is taken over then.
        """
        try:
            leaders = []
            for name, stored in state["leaders"][:_MOST_LEADERS]:
                course = Course()
                course.restore(stored)
                leaders.append((str(name), course))
            finished, ids = int(state["finished"]), map(str, state["ids"])
        except (KeyError, TypeError, OverflowError) as error:
            msg = f"the state of finished trials is damaged: {error!r}"
            raise ValueError(msg) from error
        self.finished = max(finished, len(leaders))
        self._leaders = sorted(leaders, key=_best, reverse=True)
        self._ids, self._bars = dict.fromkeys(ids), {}


def _best(entry: tuple[str, Course]) -> float:
    return entry[1].at(GRID)


def _earlier(noise: float, gain: float) -> list[int]:
    """Return for each share of the budget the earlier one that it is held against.

    0.57 of it at a tenth of the budget, 0.79 at half, 0.95 at its end; less where
    the noise is large beside what the leaders gained.
    """
    ratio = noise / gain if gain > 0.0 else math.inf
    weaker = 1.0 + _NOISE_WEAKENS * ratio if math.isfinite(ratio) else math.inf
    shares = [share / GRID for share in range(GRID + 1)]
    return [int(GRID * x * (0.4 + 0.55 * math.sqrt(x)) / weaker) for x in shares]


def _made_up(leaders: list[Course], earlier: list[int]) -> float:
    """Return the largest lag behind this bar that a better leader has made up."""
    courses = [[course.at(share) for share in range(GRID + 1)] for course in leaders]
    lags = [
        worse[earlier[share]] - better[share]
        for i, worse in enumerate(courses)
        for better in courses[:i]
        if better[GRID] > worse[GRID]
        for share in range(_EARLIEST, GRID + 1)
        if better[share] > _NONE
    ]
    return max(0.0, max(lags, default=0.0))
