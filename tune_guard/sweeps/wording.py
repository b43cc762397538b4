"""Words that several texts about sweeps share."""

from __future__ import annotations


def counted(number: int, thing: str = "trial") -> str:
    """Return a number of things in words.

    Example:
        >>> counted(1), counted(2000), counted(1, "sweep")
        ('1 trial', '2,000 trials', '1 sweep')
    """
    return f"{number:,} {thing}" + ("" if number == 1 else "s")
