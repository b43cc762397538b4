"""Hyperparameters as a flat table row."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


def flat_params(params: Mapping[str, Any]) -> dict[str, Any]:
    """Name nested hyperparameters ``a/b``; a list becomes its JSON text.

    Example:
        >>> flat_params({"lr": 0.1, "opt": {"name": "adam", "betas": [0.9, 0.99]}})
        {'lr': 0.1, 'opt/name': 'adam', 'opt/betas': '[0.9, 0.99]'}
    """
    flat: dict[str, Any] = {}
    for key, value in params.items():
        if isinstance(value, dict):
            flat |= {f"{key}/{name}": v for name, v in flat_params(value).items()}
        elif isinstance(value, (list, tuple)):
            flat[str(key)] = json.dumps(value, default=str)
        else:
            flat[str(key)] = value
    return flat
