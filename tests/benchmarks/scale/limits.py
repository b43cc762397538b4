"""Figures against their limits, printed as they come."""

from __future__ import annotations


class Limits:
    """Print figures; remember whether one was over its limit."""

    def __init__(self) -> None:
        self.kept = True

    def say(self, text: str) -> None:
        """Print a figure that has no limit."""
        print(f"  {text}", flush=True)

    def at_most(self, what: str, value: float, limit: float) -> None:
        """Print a figure that must not be higher."""
        self._note(f"{what}: {value:.3g} (limit {limit:g})", ok=value <= limit)

    def at_least(self, what: str, value: float, limit: float) -> None:
        """Print a figure that must not be lower."""
        self._note(f"{what}: {value:.3g} (at least {limit:g})", ok=value >= limit)

    def _note(self, text: str, *, ok: bool) -> None:
        self.kept = self.kept and ok
        self.say(f"{text}: {'ok' if ok else 'FAILED'}")
