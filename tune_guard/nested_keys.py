"""Keys of the form ``a/b``, in reports that are flat, nested or partly flat."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_MOST_KEYS_NAMED = 500
_DEEPEST_KEY = 12


def lookup(report: Mapping[str, Any], key: str) -> Any:
    """Find ``a/b`` in a report: flat, nested or partly flat; None if it is absent.

    Example:
        >>> lookup({"eval": {"by/class": 1}}, "eval/by/class")
        1
    """
    found = _entry(report, key)
    if found is not None:
        return found
    head, slash, rest = key.partition("/")
    while slash:
        inner = _entry(report, head)
        found = lookup(inner, rest) if isinstance(inner, Mapping) else None
        if found is not None:
            return found
        part, slash, rest = rest.partition("/")
        head = f"{head}/{part}"
    return None


def _entry(report: Mapping[str, Any], key: str) -> Any:
    """Return the entry of a key, also where the report has blanks around it."""
    if key in report:
        return report[key]
    for name, value in report.items():
        if isinstance(name, str) and name.strip() == key:
            return value
    return None


def flat_keys(report: Mapping[str, Any]) -> list[str]:
    """Return the keys of a nested report in the form ``a/b``, the shallow first.

    Example:
        >>> flat_keys({"loss": 1, "eval": {"acc": 2}})
        ['loss', 'eval/acc']
    """
    keys: list[str] = []
    levels: list[tuple[str, Mapping[Any, Any]]] = [("", report)]
    seen = {id(report)}
    for prefix, level in levels:  # grows while it is walked
        for key, value in level.items():
            name = prefix + _text(key)
            if not isinstance(value, Mapping):
                keys.append(name)
            elif id(value) not in seen and name.count("/") < _DEEPEST_KEY:
                seen.add(id(value))
                levels.append((f"{name}/", value))
        if len(keys) >= _MOST_KEYS_NAMED:
            break
    return keys[:_MOST_KEYS_NAMED]


def _text(key: object) -> str:
    try:
        return str(key)
    except Exception:  # noqa: BLE001 - a foreign object's text may raise anything
        return type(key).__name__
