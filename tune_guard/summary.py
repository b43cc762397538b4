"""Summaries of a trial in bounded memory, and how they are stored and taken back."""

from __future__ import annotations

from collections import deque
from typing import Any, ClassVar


class Summary:
    """Base of what is known of a trial so far, as plain values.

    A subclass names its state in ``__slots__``, and is made without arguments. The
    order of the slots is the stored format: it may not change.
    """

    __slots__ = ()

    _stored: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, *, derived: tuple[str, ...] = ()) -> None:
        """Work out what is stored: every slot but those ``derived`` from others."""
        super().__init_subclass__()
        slots: tuple[str, ...] = cls.__slots__
        own = (name for name in slots if name not in derived)
        cls._stored = (*cls._stored, *own)

    def state(self) -> list[Any]:
        """Return the summary as plain values."""
        values = (getattr(self, name) for name in self._stored)
        return [list(v) if isinstance(v, (list, deque)) else v for v in values]

    def restore(self, state: object) -> None:
        """Take over what :meth:`state` returned.

        Raises:
            ValueError: If it is damaged; nothing is taken over then.
        """
        if not isinstance(state, list) or len(state) != len(self._stored):
            msg = f"a {type(self).__name__.lower()} must be a list of its values"
            raise ValueError(msg)
        found = type(self)()
        for name, value in zip(self._stored, state, strict=True):
            setattr(found, name, list(value) if isinstance(value, list) else value)
        found.check()
        for name in self._stored:
            setattr(self, name, getattr(found, name))
        self.derive()

    def derive(self) -> None:
        """Work out anew what is not stored."""

    def check(self) -> None:
        """Refuse what would grow without a bound, or fail later.

        Raises:
            ValueError: If the values cannot be meant.
        """
        raise NotImplementedError
