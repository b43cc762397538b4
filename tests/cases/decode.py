"""Values of a case file that JSON has no type for."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np


def _tensor(value: Any) -> Any:
    import torch

    return torch.tensor(value)


_KINDS: dict[str, Callable[[Any], Any]] = {
    "$float": float,
    "$int": int,
    "$numpy_float16": np.float16,
    "$numpy_float32": np.float32,
    "$numpy_float64": np.float64,
    "$numpy_int32": np.int32,
    "$numpy_int64": np.int64,
    "$numpy_bool": np.bool_,
    "$numpy0d": np.array,
    "$numpy1d": np.array,
    "$numpy": np.array,
    "$array": np.array,
    "$tensor": _tensor,
    "$tuple": tuple,
    "$decimal": Decimal,
    "$bytes": str.encode,
}


class UnknownEncodingError(ValueError):
    """A ``$name`` that this module does not know."""


def decode(value: Any) -> Any:
    """Return a value with every ``{"$name": x}`` in it replaced by such an object.

    Raises:
        UnknownEncodingError: If a name is not known.
    """
    if isinstance(value, list):
        return [decode(item) for item in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        ((name, inner),) = value.items()
        if name.startswith("$"):
            if name not in _KINDS:
                msg = f"unknown encoding {name}"
                raise UnknownEncodingError(msg)
            return _KINDS[name](decode(inner))
    return {key: decode(inner) for key, inner in value.items()}
