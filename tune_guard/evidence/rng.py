"""The state of the random number generators, as strict JSON, and back."""

from __future__ import annotations

import base64
import random
import sys
from collections.abc import Mapping
from typing import Any

_WORDS = 624


def rng_states() -> dict[str, Any]:
    """Return the states of Python's, NumPy's, torch's and CUDA's generators.

    Only those of loaded packages; NumPy's is the global one of ``numpy.random``.

    Example:
        >>> sorted(rng_states())[0:1] and "python" in rng_states()
        True
    """
    version, internal, gauss = random.getstate()
    found: dict[str, Any] = {"python": [version, list(internal), gauss]}
    numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    if numpy is not None:
        kind, keys, position, has_gauss, cached = numpy.random.get_state()
        found["numpy"] = [kind, keys.tolist(), int(position), int(has_gauss), cached]
    if torch is not None:
        found["torch"] = _packed(torch.get_rng_state())
        if torch.cuda.is_initialized():
            found["cuda"] = [_packed(s) for s in torch.cuda.get_rng_state_all()]
    return found


def restore_rng(states: Mapping[str, Any]) -> None:
    """Set the generators to what :func:`rng_states` returned, as read from JSON.

    Generators of packages that are not loaded, and CUDA's on another number of
    devices, are left alone.

    Raises:
        ValueError: Or ``TypeError``, if a state is damaged.
    """
    if "python" in states:
        version, internal, gauss = states["python"]
        random.setstate((version, tuple(internal), gauss))
    numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    if numpy is not None and "numpy" in states:
        kind, keys, position, has_gauss, cached = states["numpy"]
        words = numpy.array(keys[:_WORDS], dtype="uint32")
        numpy.random.set_state((kind, words, position, has_gauss, cached))
    if torch is not None and "torch" in states:
        torch.set_rng_state(_unpacked(torch, states["torch"]))
        cuda = states.get("cuda") or []
        if torch.cuda.is_initialized() and len(cuda) == torch.cuda.device_count():
            torch.cuda.set_rng_state_all([_unpacked(torch, state) for state in cuda])


def _packed(state: Any) -> str:
    return base64.b64encode(bytes(state.cpu().tolist())).decode("ascii")


def _unpacked(torch: Any, text: str) -> Any:
    return torch.tensor(list(base64.b64decode(text)), dtype=torch.uint8)
