"""What a GPU was like since the last report, in the few numbers that it carries."""

from __future__ import annotations

import statistics
from collections import deque
from dataclasses import dataclass
from typing import Any

THERMAL_BITS = 0x20 | 0x40
"""NVML's software and hardware thermal slowdown. The power cap is 0x4."""

_MOST_SAMPLES = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One look at a GPU. What it does not support is None, never 0.

    Args:
        reasons: NVML's bits of why the clocks are not higher.

        clock_mhz: Clock of the multiprocessors.

        ecc_uncorrected: Uncorrectable memory errors since the driver was loaded.

        xid: The newest XID event since the sample before.

        throttled_s: Seconds that the GPU was throttled by heat, a counter.

        lost: Whether the GPU has fallen off the bus.
    """

    temperature_celsius: float | None = None
    clock_mhz: float | None = None
    utilization_ratio: float | None = None
    power_watts: float | None = None
    memory_used_bytes: int | None = None
    memory_total_bytes: int | None = None
    reasons: int | None = None
    ecc_uncorrected: int | None = None
    xid: int | None = None
    throttled_s: float | None = None
    lost: bool = False


class Window:
    """Sum up the samples since the last report."""

    def __init__(self) -> None:
        self._samples: deque[Sample] = deque(maxlen=_MOST_SAMPLES)
        self._xids: list[int] = []
        self._throttled_s: float | None = None

    def __len__(self) -> int:
        return len(self._samples)

    def add(self, sample: Sample) -> None:
        """Take in one sample."""
        self._samples.append(sample)
        if sample.xid is not None and len(self._xids) < _MOST_SAMPLES:
            self._xids.append(sample.xid)

    def take(self, fatal_xids: frozenset[int]) -> dict[str, Any]:
        """Return the signals since the last call, and begin anew.

        The highest temperature, power and memory, the share of the samples with
        a thermal bit, all bits that were set, the median clock, the mean
        utilisation, the newest error count. Of several XIDs a fatal one.
        """
        samples = list(self._samples)
        xids, self._xids = self._xids, []
        self._samples.clear()
        if not samples:
            return {}
        fatal = [xid for xid in xids if xid in fatal_xids]
        found = {
            **_of_reasons(_known(samples, "reasons")),
            "gpu_temperature_celsius": max(
                _known(samples, "temperature_celsius"), default=None
            ),
            "gpu_clock_mhz": _median(_known(samples, "clock_mhz")),
            "gpu_utilization_ratio": _mean(_known(samples, "utilization_ratio")),
            "gpu_power_watts": max(_known(samples, "power_watts"), default=None),
            "gpu_memory_used_bytes": max(
                _known(samples, "memory_used_bytes"), default=None
            ),
            "gpu_throttled_s": self._growth(_known(samples, "throttled_s")),
            "gpu_ecc_uncorrected": _last(_known(samples, "ecc_uncorrected")),
            "gpu_xid": _last(fatal or xids),
            "gpu_lost": True if samples[-1].lost else None,
        }
        return {name: value for name, value in found.items() if value is not None}

    def _growth(self, counter: list[Any]) -> float | None:
        """Return how far a counter rose since the window before."""
        if not counter:
            return None
        first = counter[0] if self._throttled_s is None else self._throttled_s
        self._throttled_s = float(counter[-1])
        return max(0.0, self._throttled_s - first)


def _of_reasons(reasons: list[Any]) -> dict[str, Any]:
    if not reasons:
        return {}
    seen = 0
    for bits in reasons:
        seen |= bits
    hot = sum(1 for bits in reasons if bits & THERMAL_BITS)
    return {"gpu_reasons": seen, "gpu_thermal_ratio": hot / len(reasons)}


def _known(samples: list[Sample], name: str) -> list[Any]:
    values = (getattr(sample, name) for sample in samples)
    return [value for value in values if value is not None]


def _median(values: list[Any]) -> float | None:
    return float(statistics.median(values)) if values else None


def _mean(values: list[Any]) -> float | None:
    return statistics.fmean(values) if values else None


def _last(values: list[Any]) -> Any:
    return values[-1] if values else None
