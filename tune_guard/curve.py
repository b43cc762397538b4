"""A trial's metric so far, summarised in bounded memory for rules and holds."""

from __future__ import annotations

from collections import deque
from itertools import chain, pairwise
from statistics import median

from tune_guard.coercion import is_real, is_whole
from tune_guard.summary import Summary

_MOST_BUCKETS = 64
_RECENT = 5


class Curve(Summary, derived=("recent_top",)):
    """Summary of a trial's metric so far, as scores: higher is better.

    The readings lie in at most 64 buckets. While there are fewer readings, each
    has its own; when all are full, neighbours merge and the width doubles. A
    bucket keeps its best reading and its *middle*: the mean, over its readings,
    of the median of the last five. So one odd reading moves no middle, and a
    merged bucket holds the very numbers that it would hold if it had been wide
    from the start. A reading costs the same at step 100 and at step 100,000.

    Args:
        count: Readings so far; ``warm`` of them during warm-up.

        best: The best reading; ``last`` is the newest, ``early`` the first five.

        held: Best level held so far: the highest median of five readings in a
            row. One lucky reading is no level.

        recent_top: Best of the last five readings.

        start: Level at the start: the median of the first five readings. The first
            alone is often a lucky one, with rewards above all.

        first_step: Step of the first reading; ``last_step`` of the newest.

        width: Readings in a bucket.

        pending: Readings since the newest full bucket. Rules that look at
            windows judge at 0, when a bucket has just become full.

        tops: Best reading of each full bucket, oldest first; ``middles`` are
            their middles.

    Example:
        >>> curve = Curve()
        >>> for step in range(100):
        ...     curve.add(float(step), step)
        >>> curve.width, len(curve.tops), curve.held, curve.top(2)
        (2, 50, 97.0, 99.0)
    """

    __slots__ = (
        "_mean",
        "_recent",
        "_top",
        "best",
        "count",
        "early",
        "first_step",
        "held",
        "last",
        "last_step",
        "middles",
        "pending",
        "recent_top",
        "start",
        "tops",
        "warm",
        "width",
    )

    def __init__(self) -> None:
        self.count = self.warm = self.pending = 0
        self.width = 1
        self.best: float | None = None
        self.held: float | None = None
        self.last: float | None = None
        self.first_step = self.last_step = 0
        self.early: list[float] = []
        self.start: float | None = None
        self.tops: list[float] = []
        self.middles: list[float] = []
        self._recent: deque[float] = deque(maxlen=_RECENT)
        self._top = self._mean = self.recent_top = 0.0

    def add(self, score: float, step: int, *, warming: bool = False) -> None:
        """Take in one finite score, reported at ``step``."""
        self.count += 1
        self.last, self.last_step = score, step
        recent = self._recent
        recent.append(score)
        ordered = sorted(recent)
        middle, self.recent_top = ordered[len(ordered) // 2], ordered[-1]
        if self.count <= _RECENT:
            self._begin(score, step)
        if warming:
            self.warm = self.count
        if self.best is None or score > self.best:
            self.best = score
        if self.held is None or middle > self.held:
            self.held = middle if len(ordered) == _RECENT else None
        pending = self.pending + 1
        if pending == 1 or score > self._top:
            self._top = score
        self._mean += (middle - self._mean) / pending
        self.pending = pending
        if pending == self.width:
            self._fill()

    def _begin(self, score: float, step: int) -> None:
        if self.count == 1:
            self.first_step = step
        self.early.append(score)
        self.start = median(self.early)

    def _fill(self) -> None:
        tops, middles = self.tops, self.middles
        tops.append(self._top)
        middles.append(self._mean)
        self._mean, self.pending = 0.0, 0
        if len(tops) == _MOST_BUCKETS:
            self.tops = list(map(max, tops[::2], tops[1::2]))
            pairs = zip(middles[::2], middles[1::2], strict=True)
            self.middles = [0.5 * older + 0.5 * newer for older, newer in pairs]
            self.width *= 2

    @property
    def first(self) -> float | None:
        """The first reading."""
        return self.early[0] if self.early else None

    def window(self, readings: float) -> int:
        """Return how many of the newest buckets hold at least so many readings.

        0 when that is not fewer than all readings outside warm-up: there is
        nothing to compare the window with.
        """
        if not readings < self.count - self.warm:
            return 0
        return -int(-readings // self.width)

    def top(self, buckets: int) -> float:
        """Return the best reading in the newest buckets."""
        return max(self.tops[-buckets:])

    @property
    def levels(self) -> list[float]:
        """Level of each bucket: its middle; the reading itself where it has one."""
        return self.tops if self.width == 1 else self.middles

    def middle(self, buckets: int) -> float:
        """Return the median level of the newest buckets."""
        return median(self.levels[-buckets:])

    def noise(self, buckets: int) -> float:
        """Return how far the best of the newest buckets lies above their middle."""
        return max(0.0, self.top(buckets) - self.middle(buckets))

    def low(self, buckets: int) -> float:
        """Return the lowest level of the newest buckets."""
        return min(self.levels[-buckets:])

    def quarters(self) -> tuple[float, ...]:
        """Return the median level of each quarter of the history, oldest first.

        The history past the warm-up; empty while it has fewer than four buckets.
        """
        levels = self.levels[self.warm // self.width :]
        n = len(levels)
        if n < 4:  # noqa: PLR2004 - quarters
            return ()
        cuts = (0, n // 4, n // 2, 3 * n // 4, n)
        return tuple(median(levels[begin:end]) for begin, end in pairwise(cuts))

    def derive(self) -> None:
        """Work out anew what is not stored: the bound of the last five, their best."""
        self._recent = deque(self._recent, _RECENT)
        self.recent_top = max(self._recent, default=0.0)

    def check(self) -> None:
        """Refuse what would grow without a bound, or fail at the next reading."""
        counts = (self.count, self.warm, self.pending, self.width)
        lists = (self.early, self.tops, self.middles, self._recent)
        single = (self.best, self.held, self.last, self.start)
        ok = (
            all(map(is_whole, (*counts, self.first_step, self.last_step)))
            and self.width >= 1
            and 0 <= self.pending < self.width
            and all(isinstance(values, (list, deque)) for values in lists)
            and all(map(is_real, chain(*lists, (self._top, self._mean))))
            and all(value is None or is_real(value) for value in single)
            and len(self.tops) == len(self.middles) < _MOST_BUCKETS
            and len(self.early) <= _RECENT
        )
        if not ok:
            msg = "a curve must hold its counts and readings"
            raise ValueError(msg)
