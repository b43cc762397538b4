"""Two copies of a training's state in host memory: one is from before the bad step."""

from __future__ import annotations

from collections import deque
from typing import Any

from tune_guard.evidence.rng import rng_states
from tune_guard.worker.states import plain_state

_DEEP = 2


class Checkpoints:
    """Copy model, optimizer and generators every so many steps, and keep two copies.

    Args:
        every_steps: Optimizer steps between two copies; None for none at all.
    """

    def __init__(self, every_steps: int | None) -> None:
        self._every_steps = every_steps
        self._copies: deque[dict[str, Any]] = deque(maxlen=_DEEP)

    def is_due(self, step: int) -> bool:
        """Whether a copy is to be taken at a step."""
        every = self._every_steps
        return every is not None and step % every == 0

    def take(self, step: int, parts: dict[str, Any]) -> None:
        """Copy the states of what is there, before the optimizer's step ``step``.

        Args:
            step: Number of the step; a step that is repeated replaces its copy.

            parts: Model, optimizer and others by name; None for what is missing.
        """
        while self._copies and self._copies[-1]["step"] >= step:
            self._copies.pop()
        states = {
            name: plain_state(part.state_dict(), copy=True)
            for name, part in parts.items()
            if part is not None
        }
        self._copies.append({"step": step, **states, "rng": rng_states()})

    def before(self, step: int | None) -> dict[str, Any] | None:
        """Return the newest copy from before a step; the newest of all for None."""
        found = [c for c in self._copies if step is None or c["step"] < step]
        return found[-1] if found else None

    def forget(self) -> None:
        """Let go of the copies."""
        self._copies.clear()
