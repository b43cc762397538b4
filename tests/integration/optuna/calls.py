"""What a study asks of its storage, whatever kind that is."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any

from optuna.storages import BaseStorage

if TYPE_CHECKING:
    from collections.abc import Callable


class Calls:
    """Names of the methods of a storage that were called since the last look.

    Heartbeats are none: they come when they like.
    """

    def __init__(self, storage: BaseStorage) -> None:
        self._names: list[str] = []
        for name, _ in inspect.getmembers(BaseStorage, inspect.isfunction):
            if not name.startswith("_"):
                setattr(storage, name, self._noted(name, getattr(storage, name)))

    def _noted(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(method)
        def call(*args: Any, **kwargs: Any) -> Any:
            self._names.append(name)
            return method(*args, **kwargs)

        return call

    def take(self) -> tuple[str, ...]:
        """Return and forget them."""
        names, self._names = self._names, []
        return tuple(names)
