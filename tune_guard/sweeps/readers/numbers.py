"""What was written under a metric's name, as the number that a live guard reads."""

from __future__ import annotations

from tune_guard.coercion import to_bits, to_number
from tune_guard.observation import Keys

_BITS = frozenset(Keys().aliases("gpu_reasons"))


def number_of(name: str, value: object) -> float | None:
    """Read a value, or return None; throttle reasons may be hexadecimal text.

    Example:
        >>> number_of("gpu_reasons", "0x60"), number_of("loss", "0x60")
        (96.0, None)
    """
    number = to_number(value)
    if number is None and name.strip() in _BITS:
        return to_bits(value)
    return number
