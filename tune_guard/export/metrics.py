"""The metrics of a sweep, as Prometheus reads them.

Names have one prefix, base units and no trial in a label; a number that is not
finite is left out rather than exported.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from tune_guard.export.tally import Snapshot, Tally
from tune_guard.record import version

PREFIX = "tuneguard"

MHZ = 1e6

GPU_GAUGES = {
    "gpu_temperature_celsius": ("temperature_celsius", 1.0, "Temperature of the GPU."),
    "gpu_utilization_ratio": ("utilization_ratio", 1.0, "Share of time it was busy."),
    "gpu_clock_mhz": ("clock_hertz", MHZ, "Clock of its streaming multiprocessors."),
    "gpu_thermal_ratio": (
        "thermal_throttle_ratio",
        1.0,
        "Share of the last samples in which it was throttled for its temperature.",
    ),
    "gpu_lost": ("lost", 1.0, "Whether the driver has lost it: 0 or 1."),
    "gpu_xid": ("last_xid", 1.0, "Number of the last XID error; 0 for none."),
    "gpu_ecc_uncorrected": (
        "ecc_uncorrected_errors",
        1.0,
        "Uncorrected memory errors since the driver was loaded.",
    ),
}
"""Signal to name, factor into the base unit, and help."""


class SweepCollector:
    """Turns a tally into metrics, anew for each scrape."""

    def __init__(self, tally: Tally) -> None:
        self._tally = tally

    def collect(self) -> Iterator[Metric]:
        """Return every metric."""
        now = self._tally.snapshot()
        yield from _guard(now)
        yield from _trials(now)
        yield from _gpus(now)

    def describe(self) -> list[Metric]:
        """Return nothing: no metric of others can collide in an own registry."""
        return []


def registry_of(tally: Tally) -> CollectorRegistry:
    """Return a registry that holds the tally's metrics alone."""
    registry = CollectorRegistry(auto_describe=False)
    collector: Any = SweepCollector(tally)
    registry.register(collector)
    return registry


def _name(name: str) -> str:
    return f"{PREFIX}_{name}"


def _guard(now: Snapshot) -> Iterator[Metric]:
    info = GaugeMetricFamily(
        _name("build_info"), "Version of the guard; always 1.", labels=["version"]
    )
    info.add_metric([version()], 1.0)
    yield info
    yield GaugeMetricFamily(
        _name("guard_healthy"),
        "Whether the guard could do all of its work so far: 0 or 1.",
        0.0 if now.errors else 1.0,
    )
    errors = CounterMetricFamily(
        _name("guard_errors"), "Failures of the guard itself.", labels=["kind"]
    )
    for kind, count in sorted(now.errors.items()):
        errors.add_metric([kind], count)
    yield errors
    yield CounterMetricFamily(
        _name("sweeps_started"), "Sweeps that began.", now.sweeps_started
    )
    yield GaugeMetricFamily(
        _name("sweeps_running"), "Sweeps that have not ended.", now.sweeps_running
    )


def _trials(now: Snapshot) -> Iterator[Metric]:
    yield CounterMetricFamily(
        _name("trials_started"), "Trials that began.", now.trials_started
    )
    labels = ["outcome", "reason", "blame"]
    ended = CounterMetricFamily(
        _name("trials_ended"), "Trials that ended, by what ended them.", labels=labels
    )
    for end, count in sorted(now.ended.items()):
        ended.add_metric(list(end), count)
    yield ended
    lost = CounterMetricFamily(
        _name("attempts_lost"),
        "Attempts that the machine broke and that were tried again.",
        labels=["reason"],
    )
    for reason, count in sorted(now.lost.items()):
        lost.add_metric([reason], count)
    yield lost
    spent = CounterMetricFamily(
        _name("compute_spent_seconds"),
        "Compute of the trials that ended.",
        labels=labels,
    )
    for end, seconds in sorted(now.spent_s.items()):
        spent.add_metric(list(end), seconds)
    yield spent
    saved = CounterMetricFamily(
        _name("compute_saved_seconds"),
        "Compute that cut trials would still have taken, at their own pace.",
        labels=["reason"],
    )
    for reason, seconds in sorted(now.saved_s.items()):
        saved.add_metric([reason], seconds)
    yield saved


def _gpus(now: Snapshot) -> Iterator[Metric]:
    for signal, (name, factor, help_text) in GPU_GAUGES.items():
        gauge = GaugeMetricFamily(
            _name(f"gpu_{name}"), help_text, labels=["uuid", "host"]
        )
        for gpu in now.gpus:
            if signal in gpu.values:
                gauge.add_metric([gpu.uuid, gpu.host], gpu.values[signal] * factor)
        yield gauge
    seen = GaugeMetricFamily(
        _name("gpu_last_sample_timestamp_seconds"),
        "When the GPU was last heard of.",
        labels=["uuid", "host"],
    )
    for gpu in now.gpus:
        seen.add_metric([gpu.uuid, gpu.host], gpu.at)
    yield seen
