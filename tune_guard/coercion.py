"""Whatever a training reports or a state holds, read as a number, a step or a flag."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import islice
from typing import Any

_MOST_STEPS = 2**63
_MOST_RATES = 1000


def to_number(value: object) -> float | None:
    """Read a reported value as a number, or return None. Never raises.

    Numbers, numeric text, and arrays, tensors or lists of one element are
    numbers; so are the texts NaN and Infinity. None, bools, other text and
    several elements are no observation. An integer too large for a float is
    infinite.

    Example:
        >>> to_number("1e-3"), to_number([2.5]), to_number(True)
        (0.001, 2.5, None)
    """
    kind = type(value)
    if kind is float:
        return value  # type: ignore[return-value]
    if value is None or kind is bool:
        return None
    try:
        return _slow_number(value)
    except OverflowError:
        return _infinite(value)
    except Exception:  # noqa: BLE001 - a foreign object's conversion may raise anything
        return None


def _infinite(value: Any) -> float | None:
    """Return the infinity that stands for a number too large for a float."""
    try:
        return math.inf if value > 0 else -math.inf
    except Exception:  # noqa: BLE001 - a foreign object's comparison may raise anything
        return None


def _slow_number(value: Any) -> float | None:
    if isinstance(value, (int, float)):
        return float(value)
    if isinstance(value, str):
        return None if "_" in value else float(value)
    if isinstance(value, (list, tuple)):
        return to_number(value[0]) if len(value) == 1 else None
    if isinstance(value, (bytes, bytearray, complex, Mapping, set, frozenset)):
        return None
    kind = str(getattr(value, "dtype", ""))
    if kind.endswith("bool") or "time" in kind:
        return None
    size = getattr(value, "size", 1)
    size = value.numel() if hasattr(value, "numel") else size
    if callable(size) or size != 1:
        return None
    item = value.item() if hasattr(value, "item") else float(value)
    return float(item) if type(item) is type(value) else to_number(item)


def to_step(value: object) -> int | None:
    """Read a whole step, or None: what does not fit into 64 bits counts nothing.

    Example:
        >>> to_step("3"), to_step(1e300), to_step(float("nan"))
        (3, None, None)
    """
    if type(value) is int:  # nearly always
        return value if -_MOST_STEPS < value < _MOST_STEPS else None
    number = to_number(value)
    if number is None:
        return None
    return int(number) if -_MOST_STEPS < number < _MOST_STEPS else None


def is_whole(value: object) -> bool:
    """Whether a stored value is a count or a step: an integer of 64 bits."""
    return type(value) is int and -_MOST_STEPS <= value < _MOST_STEPS


def is_real(value: object) -> bool:
    """Whether a stored value is a number that arithmetic takes, NaN included."""
    return isinstance(value, float) or is_whole(value)


def to_largest(value: object) -> float | None:
    """Read the largest of several numbers: the learning rates of all groups.

    NaN counts only where there is nothing else. Of more than a thousand the first
    thousand count: no optimizer has as many groups. Never raises.

    Example:
        >>> to_largest([0.0, 1e-4])
        0.0001
    """
    number = to_number(value)
    if number is not None or value is None or isinstance(value, (str, bytes)):
        return number
    try:
        items: Any = value.values() if isinstance(value, Mapping) else value
        first = islice(items, _MOST_RATES)
        numbers = [n for n in map(to_number, first) if n is not None]
    except Exception:  # noqa: BLE001 - a foreign object's iteration may raise anything
        return None
    known = [n for n in numbers if not math.isnan(n)]
    return max(known or numbers, default=None)


def to_flag(value: object) -> bool | None:
    """Read a flag: a bool, a number (0 is false), or the texts true and false.

    Anything else is None: NaN, a table's empty cell, says neither. Never raises.

    Example:
        >>> to_flag("True"), to_flag(0), to_flag(float("nan"))
        (True, False, None)
    """
    if isinstance(value, bool):
        return value
    number = to_number(value)
    if number is not None:
        return None if math.isnan(number) else number != 0.0
    try:
        if isinstance(value, (list, tuple)):
            return to_flag(value[0]) if len(value) == 1 else None
        item = value.item() if hasattr(value, "item") else value
        return {"true": True, "false": False}.get(str(item).strip().lower())
    except Exception:  # noqa: BLE001 - a foreign object's conversion may raise anything
        return None


def to_bits(value: object) -> float | None:
    """Read a bit mask: a number, or text as ``nvidia-smi`` prints it. Never raises.

    Example:
        >>> to_bits("0x0000000000000060"), to_bits(["0x60"]), to_bits("[N/A]")
        (96.0, 96.0, None)
    """
    try:
        if isinstance(value, (list, tuple)):
            return to_bits(value[0]) if len(value) == 1 else None
        if isinstance(value, str) and value.strip().lower().startswith("0x"):
            return float(int(value, 16))
    except (ValueError, OverflowError, RecursionError):
        return None
    return to_number(value)
