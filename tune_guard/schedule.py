"""A trial's learning rate so far, summarised in bounded memory for rules and holds."""

from __future__ import annotations

from tune_guard.coercion import is_real, is_whole
from tune_guard.summary import Summary

_SAME = 1e-6


class Schedule(Summary):
    """Summary of the learning rates that a trial reported.

    It knows what was reported and guesses nothing about what is to come. Each
    step counts once, however many rates were reported for it.

    Args:
        count: Steps with a learning rate.

        first_step: First of them; ``last_step`` is the newest.

        last: The newest rate; ``peak`` is the highest, first reached at
            ``peak_step``.

        lowest: Lowest rate since the peak: a ramp that starts at 0 is no floor.

        fell_step: Newest step at which the rate was lower than before, or None.

        trough: Lowest rate to which it has ever fallen, or None; no later peak
            forgets it.

        level_count: Steps in a row at the present rate, the first of them
            ``level_step``; ``longest_level`` is the longest such run that has
            ended since the peak.

    Example:
        >>> schedule = Schedule()
        >>> for step, lr in enumerate([0.1, 0.1, 0.01, 0.01]):
        ...     schedule.add(step, lr)
        >>> schedule.fell_step, schedule.level_count, schedule.lowest
        (2, 2, 0.01)
    """

    __slots__ = (
        "count",
        "fell_step",
        "first_step",
        "last",
        "last_step",
        "level",
        "level_count",
        "level_step",
        "longest_level",
        "lowest",
        "peak",
        "peak_step",
        "trough",
    )

    def __init__(self) -> None:
        self.count = 0
        self.first_step: int | None = None
        self.last_step: int | None = None
        self.last: float | None = None
        self.peak: float | None = None
        self.peak_step: int | None = None
        self.lowest: float | None = None
        self.fell_step: int | None = None
        self.trough: float | None = None
        self.level = 0.0
        self.level_step: int | None = None
        self.level_count = 0
        self.longest_level = 0

    def add(self, step: int, lr: float) -> None:
        """Take in the learning rate at ``step``."""
        fresh = step != self.last_step
        self.count += fresh
        last = self.last
        self.last, self.last_step = lr, step
        if last is not None and abs(lr - self.level) <= _SAME * self.level:
            self.level_count += fresh
            return
        if last is None:
            self.first_step = step
        elif lr < last:
            self.fell_step = step
            self.trough = lr if self.trough is None else min(self.trough, lr)
        self._begin_level(step, lr)

    def _begin_level(self, step: int, lr: float) -> None:
        """Later rates are compared with this one, so that no slow drift is lost."""
        self.longest_level = max(self.longest_level, self.level_count)
        self.level, self.level_step, self.level_count = lr, step, 1
        if self.peak is None or self.lowest is None or lr > self.peak:
            self.peak, self.peak_step, self.lowest = lr, step, lr
            self.longest_level = 0
        self.lowest = min(self.lowest, lr)

    @property
    def warmup_steps(self) -> int:
        """Steps from the first rate to the first at the peak."""
        return (self.peak_step or 0) - (self.first_step or 0)

    def settled(self, consecutive: int) -> bool:
        """Whether the rate has decayed to a level and lies there for good.

        A staircase must not look settled between two of its stairs, nor a cosine
        in its last flat steps. So the level must be the lowest since the peak, at
        most half of the peak, and hold for at least ``consecutive`` steps, a
        quarter of all, and twice as long as any level before it.
        """
        if self.fell_step is None or self.peak is None or self.lowest is None:
            return False
        flat = self.level_count
        return (
            self.level <= 0.5 * self.peak
            and self.level <= 1.05 * self.lowest
            and flat >= consecutive
            and flat >= 0.25 * self.count
            and flat >= 2 * self.longest_level
        )

    def check(self) -> None:
        """Refuse what would fail at the next rate."""
        counts = (self.count, self.level_count, self.longest_level)
        steps = (
            *(self.first_step, self.last_step, self.peak_step),
            *(self.fell_step, self.level_step),
        )
        rates = (self.last, self.peak, self.lowest, self.trough)
        ok = (
            all(map(is_whole, counts))
            and all(step is None or is_whole(step) for step in steps)
            and all(rate is None or is_real(rate) for rate in rates)
            and is_real(self.level)
        )
        if not ok:
            msg = "a schedule must hold its counts and rates"
            raise ValueError(msg)
