"""How a long load says how far it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

Progress: TypeAlias = Callable[[int, int, str], None]
"""Called with how many are done, of how many, and of what."""


def silent(done: int, total: int, what: str) -> None:
    """Say nothing."""
    del done, total, what
