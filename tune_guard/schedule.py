"""A trial's learning rate so far, summarised in bounded memory for rules and holds."""

from __future__ import annotations


class Schedule:
    """Summary of the learning rates that a trial reported."""

    __slots__ = ("count", "last", "peak")

    def __init__(self) -> None:
        self.count = 0
        self.peak: float | None = None
        self.last: float | None = None

    def add(self, step: int, lr: float) -> None:
        """Take in the learning rate at ``step``."""
        del step
        self.count += 1
        self.last = lr
        if self.peak is None or lr > self.peak:
            self.peak = lr

    def state(self) -> list[object]:
        """Return the summary as plain values."""
        return [self.count, self.last, self.peak]

    def restore(self, state: list[object]) -> None:
        """Take over what :meth:`state` returned."""
        self.count, self.last, self.peak = state  # type: ignore[assignment]
