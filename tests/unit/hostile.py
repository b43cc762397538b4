"""Values that no report should hold, and some do."""

from __future__ import annotations

from typing import Any

import numpy as np

RECURSIVE: list[Any] = []
RECURSIVE.append(RECURSIVE)


class Hostile:
    """An object of which every conversion raises."""

    def __init__(self, error: type[Exception] = RuntimeError) -> None:
        self.error = error

    def _raise(self, *_: object) -> Any:
        raise self.error

    __float__ = __int__ = __bool__ = __str__ = __repr__ = __eq__ = __gt__ = _raise
    __iter__ = __len__ = _raise
    __hash__ = object.__hash__


OF_ANY_KIND = (
    np.array([1.0, 2.0]),
    np.longdouble("0.5"),
    {1, 2},
    b"x",
    object(),
    1j,
    10**400,
    10**5000,
    RECURSIVE,
    Hostile(),
    {Hostile(): Hostile()},
)
"""What JSON has no type for."""
