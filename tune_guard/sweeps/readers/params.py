"""Hyperparameters as a flat table row."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tune_guard.exceptions import brief

if TYPE_CHECKING:
    from collections.abc import Mapping


_DEEPEST = 20


def flat_params(params: Mapping[str, Any]) -> dict[str, Any]:
    """Name nested hyperparameters ``a/b``; a list becomes its JSON text.

    Example:
        >>> flat_params({"lr": 0.1, "opt": {"name": "adam", "betas": [0.9, 0.99]}})
        {'lr': 0.1, 'opt/name': 'adam', 'opt/betas': '[0.9, 0.99]'}
    """
    flat: dict[str, Any] = {}
    _flatten("", params, flat, _DEEPEST)
    return flat


def _flatten(
    prefix: str, params: Mapping[str, Any], flat: dict[str, Any], depth: int
) -> None:
    for key, value in params.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict) and depth:
            _flatten(f"{name}/", value, flat, depth - 1)
        elif isinstance(value, (dict, list, tuple)):
            flat[name] = _as_text(value)
        else:
            flat[name] = value


def _as_text(value: Any) -> str:
    try:
        return json.dumps(value, default=str)
    except (TypeError, ValueError, RecursionError):
        return brief(value)
