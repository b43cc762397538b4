"""States of model and optimizer as plain values, which `weights_only` reads back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_DEEPEST = 16
_PLAIN = (int, float, complex, bool, str, bytes, type(None))


def plain_state(value: Any, *, copy: bool = False) -> Any:
    """Return a state whose parts ``torch.load(weights_only=True)`` reads back.

    Tensors come to the host; of a tensor that is spread over ranks, this rank's
    part. What is neither a tensor nor a plain value becomes a text that says what
    was left out.

    Args:
        value: A ``state_dict()``, or a part of one.

        copy: Whether tensors that are on the host already are copied, too.

    Example:
        >>> plain_state({"step": 3, "hook": print})["step"]
        3
    """
    return _plain(value, copy, _DEEPEST)


def _plain(value: Any, copy: bool, depth: int) -> Any:  # noqa: FBT001 - passed on
    if isinstance(value, _PLAIN):
        return value
    if hasattr(value, "detach"):
        return _on_host(value, copy)
    if depth and isinstance(value, Mapping):
        items = value.items()
        return {_key(k): _plain(v, copy, depth - 1) for k, v in items}
    if depth and isinstance(value, (list, tuple)):
        return [_plain(item, copy, depth - 1) for item in value]
    if hasattr(value, "dtype"):
        return _of_numpy(value)
    return f"<left out: {type(value).__module__}.{type(value).__qualname__}>"


def _key(key: Any) -> Any:
    return key if isinstance(key, (str, int)) else str(key)


def _on_host(tensor: Any, copy: bool) -> Any:  # noqa: FBT001 - passed on
    local = tensor.to_local() if hasattr(tensor, "to_local") else tensor
    found = local.detach()
    if found.device.type != "cpu":
        return found.cpu()
    return found.clone() if copy else found


def _of_numpy(value: Any) -> Any:
    import torch

    try:
        return torch.as_tensor(value)
    except (TypeError, ValueError):
        return f"<left out: numpy {value.dtype}>"


def size_bytes(value: Any) -> int:
    """Return the bytes of all tensors in a state, without copying any."""
    return sum(_tensor_bytes(tensor) for tensor in _tensors(value, _DEEPEST))


def _tensor_bytes(tensor: Any) -> int:
    local = tensor.to_local() if hasattr(tensor, "to_local") else tensor
    return int(local.numel() * local.element_size())


def _tensors(value: Any, depth: int) -> Iterator[Any]:
    if hasattr(value, "detach"):
        yield value
    elif depth and isinstance(value, (Mapping, list, tuple)):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from _tensors(item, depth - 1)
