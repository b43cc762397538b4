"""Strict JSON of any value: what storages and other programs read without trouble."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

_LARGEST_INT = 2**63 - 1
_DEEPEST = 8


def to_json(detail: Mapping[str, Any]) -> str:
    """Write strict JSON: a non-finite number is text, never a bare token."""
    return json.dumps(plain(detail), allow_nan=False, ensure_ascii=False)


def from_json(text: str) -> Any:
    """Read JSON, or return None if it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def plain(value: Any) -> Any:
    """Turn a value into strict JSON's types; non-finite numbers become text.

    What JSON has no type for becomes text. Never raises.

    Example:
        >>> plain({"a": (float("nan"), 1)})
        {'a': ['NaN', 1]}
    """
    return _plain(value, _DEEPEST)


def _plain(value: Any, depth: int) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return clean(str(value))
    if isinstance(value, int) and abs(value) <= _LARGEST_INT:
        return int(value)
    if isinstance(value, (int, float)):
        return _plain_float(number(value))
    if depth and isinstance(value, Mapping):
        return {text_of(k): _plain(v, depth - 1) for k, v in value.items()}
    if depth and isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(v, depth - 1) for v in value]
    try:
        return _plain(value.item(), depth - 1) if depth else text_of(value)
    except Exception:  # noqa: BLE001 - no single number: an array, a foreign object
        return text_of(value)


def _plain_float(value: float | None) -> float | str | None:
    if value is None or math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def text_of(value: object) -> str:
    """Return a value's text, or its type's name where it has none. Never raises."""
    try:
        return clean(str(value))
    except Exception:  # noqa: BLE001 - a foreign object's text may raise anything
        return type(value).__name__


def clean(text: str) -> str:
    """Replace what is no text: a file's name may hold any bytes."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def number(value: Any) -> float | None:
    """Read back a number that :func:`plain` wrote."""
    if value is None or isinstance(value, bool):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    except (TypeError, ValueError):
        return None
