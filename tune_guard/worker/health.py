"""What happened since the last report, in the few numbers that a report carries."""

from __future__ import annotations

import math
import statistics
from collections import deque
from collections.abc import Mapping
from typing import Any

_MOST_TIMES = 1001
"""Step times of which the median is taken: the newest, where there are more."""


class StepHealth:
    """Sum up the steps since the last report.

    The worst gradient norm of the steps that counted (not finite where one was
    not), the newest learning rate and loss scale, whether the scaler skipped all
    of them, and the medians of step and data time.
    """

    def __init__(self) -> None:
        self._times: deque[float] = deque(maxlen=_MOST_TIMES)
        self._data: deque[float] = deque(maxlen=_MOST_TIMES)
        self._newest: dict[str, Any] = {}
        self._norms: list[float | None] = [None, None]
        self._skipped: bool | None = None

    def add(
        self,
        signals: Mapping[str, Any],
        step_time_s: float | None,
        data_time_s: float | None,
    ) -> None:
        """Take in one step."""
        for name in ("lr", "amp_scale"):
            if name in signals:
                self._newest[name] = signals[name]
        skipped = signals.get("step_skipped")
        if skipped is not None:
            self._skipped = bool(skipped) and self._skipped is not False
        norm = signals.get("grad_norm")
        if norm is not None:
            place = int(bool(skipped))
            self._norms[place] = _worse(self._norms[place], norm)
        if step_time_s is not None:
            self._times.append(step_time_s)
        if data_time_s is not None:
            self._data.append(data_time_s)

    def take(self) -> dict[str, Any]:
        """Return the signals since the last call, and begin anew."""
        counted, skipped = self._norms
        found = {
            "grad_norm": skipped if counted is None else counted,
            "lr": self._newest.get("lr"),
            "amp_scale": self._newest.get("amp_scale"),
            "step_skipped": self._skipped,
            "step_time_s": statistics.median(self._times) if self._times else None,
            "data_time_s": statistics.median(self._data) if self._data else None,
        }
        self.__init__()  # type: ignore[misc]
        return {name: value for name, value in found.items() if value is not None}


def _worse(one: float | None, other: float) -> float:
    """Return the larger norm; one that is not finite is the worst."""
    if one is None or not math.isfinite(other):
        return other
    return max(one, other) if math.isfinite(one) else one
