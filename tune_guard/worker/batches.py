"""Which data a step saw: ids as they are, anything larger as a hash."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

_MOST_IDS = 4096
_DEEPEST = 8


def batch_as_json(batch: Any) -> dict[str, Any]:
    """Return what tells a batch from others, as plain values.

    A sequence of whole numbers or texts is taken for ids. Tensors, arrays and
    what holds them give a SHA-256 over their bytes, shapes and kinds, and their
    shapes.

    Example:
        >>> batch_as_json([3, 1, 4])
        {'ids': [3, 1, 4]}
    """
    ids = _ids(batch)
    if ids is not None:
        return {"ids": ids}
    digest, shapes = hashlib.sha256(), []
    for kind, shape, data in _pieces(batch, _DEEPEST):
        digest.update(f"{kind}{shape}".encode())
        digest.update(data)
        shapes.append([kind, *shape])
    return {"sha256": digest.hexdigest(), "shapes": shapes[:_MOST_IDS]}


def _ids(batch: Any) -> list[Any] | None:
    """Return ids, if that is what the loop gave; None for data."""
    if isinstance(batch, (int, str)):
        return [batch]
    if hasattr(batch, "tolist") and getattr(batch, "ndim", 2) <= 1:
        is_float = "float" in str(batch.dtype) or "complex" in str(batch.dtype)
        batch = None if is_float else batch.tolist()
        batch = [batch] if isinstance(batch, int) else batch
    if not isinstance(batch, (list, tuple, range)) or len(batch) > _MOST_IDS:
        return None
    return list(batch) if all(isinstance(i, (int, str)) for i in batch) else None


def _pieces(batch: Any, depth: int) -> Iterable[tuple[str, list[int], bytes]]:
    """Yield kind, shape and bytes of everything that a batch holds, in order."""
    if hasattr(batch, "detach"):
        batch = _array(batch)
    if hasattr(batch, "tobytes"):
        shape = [int(size) for size in getattr(batch, "shape", ())]
        yield str(getattr(batch, "dtype", "bytes")), shape, batch.tobytes()
    elif depth and isinstance(batch, Mapping):
        for key, value in batch.items():
            yield "key", [], str(key).encode()
            yield from _pieces(value, depth - 1)
    elif depth and isinstance(batch, (list, tuple)):
        for value in batch:
            yield from _pieces(value, depth - 1)
    else:
        yield type(batch).__name__, [], repr(batch).encode(errors="replace")


def _array(tensor: Any) -> Any:
    """Return a tensor's bytes as an array; bfloat16 is no kind of NumPy's."""
    import torch

    local = tensor.to_local() if hasattr(tensor, "to_local") else tensor
    host = local.detach().cpu().contiguous()
    if host.dtype == torch.bfloat16:
        host = host.view(torch.int16)
    return host.resolve_conj().resolve_neg().numpy()
