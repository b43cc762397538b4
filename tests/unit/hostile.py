"""Values that no report should hold, and some do."""

from __future__ import annotations

from typing import Any

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
