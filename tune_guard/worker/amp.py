"""What a gradient scaler says about a step, read without waiting for its device.

The only module that touches private attributes of ``torch.amp.GradScaler``. A
scaler that lacks them is asked through its public methods, which wait.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from tune_guard.coercion import to_number

_READY = 0
"""``torch.amp.grad_scaler.OptState.READY``: gradients are still scaled."""


def is_scaling(scaler: Any) -> bool:
    """Whether a scaler is there and switched on."""
    if scaler is None:
        return False
    enabled = getattr(scaler, "is_enabled", None)
    return bool(enabled()) if callable(enabled) else True


def scale_of(scaler: Any) -> Any:
    """Return the scale: a tensor on its device, or a number.

    The tensor is a copy, because ``update()`` changes the scaler's in place.
    """
    scale = getattr(scaler, "_scale", None)
    if scale is not None and hasattr(scale, "detach"):
        return scale.detach().clone()
    get_scale = getattr(scaler, "get_scale", None)
    return to_number(get_scale()) if callable(get_scale) else None


def is_unscaled(scaler: Any) -> bool:
    """Whether the gradients were divided by the scale already (``unscale_``)."""
    states = getattr(scaler, "_per_optimizer_states", None) or {}
    stages = [_stage(state) for state in states.values()]
    return any(stage != _READY for stage in stages)


def _stage(state: Any) -> int:
    stage = state.get("stage") if hasattr(state, "get") else None
    return int(getattr(stage, "value", _READY))


class ScaleWatch:
    """Tell the steps that the scaler skips from those that are truly bad.

    The scaler skips a step whose gradients hold a NaN or an infinity, so that a
    norm that is none says so before the scaler does. Without a norm, a scale that
    fell since the last step says that the step before was skipped.

    Example:
        >>> watch = ScaleWatch()
        >>> numbers = {"grad_norm": 131072.0, "amp_scale": 65536.0}
        >>> watch.signals(numbers, scaled_norm=True)
        {'grad_norm': 2.0, 'amp_scale': 65536.0, 'step_skipped': False}
    """

    def __init__(self) -> None:
        self._last: float | None = None

    def signals(
        self, numbers: Mapping[str, float], *, scaled_norm: bool
    ) -> dict[str, Any]:
        """Return a step's numbers as signals: the true norm, and whether it counts.

        Args:
            numbers: Those of the step, with ``amp_scale``.

            scaled_norm: Whether the norm was taken of gradients still scaled.
        """
        signals: dict[str, Any] = dict(numbers)
        norm, scale = numbers.get("grad_norm"), numbers.get("amp_scale")
        last, self._last = self._last, scale
        if norm is not None:
            if scaled_norm and scale:
                signals["grad_norm"] = norm / scale
            signals["step_skipped"] = not math.isfinite(norm)
        elif scale is not None and last is not None:
            signals["step_skipped"] = scale < last
        return signals
