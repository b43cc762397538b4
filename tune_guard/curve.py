"""A trial's metric so far, summarised in bounded memory for rules and holds."""

from __future__ import annotations


class Curve:
    """Summary of a trial's metric so far, as scores: higher is better."""

    __slots__ = ("best", "count", "first", "last")

    def __init__(self) -> None:
        self.count = 0
        self.first: float | None = None
        self.best: float | None = None
        self.last: float | None = None

    def add(self, score: float) -> None:
        """Take in one finite score."""
        self.count += 1
        self.last = score
        if self.first is None:
            self.first = score
        if self.best is None or score > self.best:
            self.best = score

    def state(self) -> list[object]:
        """Return the summary as plain values."""
        return [self.count, self.first, self.best, self.last]

    def restore(self, state: list[object]) -> None:
        """Take over what :meth:`state` returned."""
        self.count, self.first, self.best, self.last = state  # type: ignore[assignment]
