"""The errors that tune_guard raises on purpose: all of them at construction."""

from __future__ import annotations

import difflib
import re
import reprlib
from collections.abc import Iterable


class TuneGuardError(Exception):
    """Base of every error that tune_guard raises on purpose."""


class ConfigError(TuneGuardError, ValueError):
    """A configuration that cannot be meant: wrong value, name or combination."""


class SourceError(TuneGuardError):
    """A sweep that cannot be read: missing, of an unknown kind, or empty."""


_MOST_NAMED = 20
_PASSWORD = re.compile(r"(://[^/\s:@]*):[^/\s]*@")
_SHOWN = reprlib.Repr()
_SHOWN.maxother = _SHOWN.maxstring = 200


def brief(value: object) -> str:
    """Return a value's representation in short; never raises, as ``repr`` may.

    Example:
        >>> brief(ValueError("x"))
        "ValueError('x')"
    """
    return _SHOWN.repr(value)


def hide_password(address: str) -> str:
    """Return an address that can be shown: the password of each URL in it is masked.

    Example:
        >>> hide_password("postgresql://me:secret@db/optuna")
        'postgresql://me:***@db/optuna'
    """
    return _PASSWORD.sub(r"\1:***@", address)


def did_you_mean(word: object, known: Iterable[str]) -> str:
    """Return a hint that names the nearest known words, or all of them.

    Example:
        >>> did_you_mean("patiense", ["patience", "window"])
        'Did you mean `patience`?'
        >>> did_you_mean("x", ["a", "b"])
        'Known: `a`, `b`.'
        >>> did_you_mean("x", [])
        'Known: none.'
    """
    names = sorted(known)
    if not names:
        return "Known: none."
    near = difflib.get_close_matches(str(word), names, n=3)
    if near:
        return "Did you mean " + " or ".join(f"`{name}`" for name in near) + "?"
    shown = ", ".join(f"`{name}`" for name in names[:_MOST_NAMED])
    more = len(names) - _MOST_NAMED
    return f"Known: {shown}" + (f" and {more} more." if more > 0 else ".")
