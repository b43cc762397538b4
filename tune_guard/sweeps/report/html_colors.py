"""Colours of reasons: the same in every figure and every report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tune_guard.record import Outcome
from tune_guard.sweeps.sweep import INTERRUPTED, NO_FINDING, UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Iterable

HEALTHY = "#7d93a8"
_NOT_KNOWN = {UNKNOWN: "#b3a58f", NO_FINDING: "#b3a58f", INTERRUPTED: "#d0a95b"}
"""Quiet colours: nobody says that these trials were sick."""
_KNOWN = {
    "non_finite": "#d6293e",
    "divergence": "#e8710a",
    "gradient_explosion": "#a34a00",
    "amp_scale_collapse": "#c2378e",
    "plateau": "#7b4fd6",
    "no_progress": "#2f6fde",
    "relapse": "#0f8f8f",
    "behind": "#5a7d00",
    "lr_floor": "#1c9c4f",
    "thermal_throttle": "#b8860b",
    "slow_step": "#8a6d3b",
    "gpu_fault": "#9c1c6b",
    "stalled": "#6b4423",
}
_FIXED = _KNOWN | _NOT_KNOWN
_OTHERS = ("#4b5fa8", "#b0506b", "#3d8a6e", "#9a5fb0", "#8c7a1e", "#5e6b78")
_HEALTHY = frozenset({Outcome.COMPLETED, Outcome.CRITERION})


def colors(reasons: Iterable[tuple[str, Outcome | None]]) -> dict[str, str]:
    """Return a colour for each reason; healthy ends share a quiet one.

    Example:
        >>> found = colors([("non_finite", Outcome.GUARD), ("mine", Outcome.GUARD)])
        >>> found["non_finite"], found["mine"]
        ('#d6293e', '#4b5fa8')
    """
    found: dict[str, str] = {}
    others = 0
    for reason, outcome in reasons:
        if reason in found:
            continue
        if outcome in _HEALTHY:
            found[reason] = HEALTHY
        elif reason in _FIXED:
            found[reason] = _FIXED[reason]
        else:
            found[reason] = _OTHERS[others % len(_OTHERS)]
            others += 1
    return found
