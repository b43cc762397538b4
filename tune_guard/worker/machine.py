"""The machine under a training: its GPU and its pace, as the rules judge them."""

from __future__ import annotations

import statistics
import sys
from typing import Any

from tune_guard.notices import Notices
from tune_guard.worker import memory
from tune_guard.worker.gpu.sampler import GpuSampler
from tune_guard.worker.pace import Pace
from tune_guard.worker.settings import Gpu

PULSE_S = 10.0
"""Seconds between two looks of the rules at the machine."""

_MOST_TIMES = 1001


class Machine:
    """Watch the machine that a process trains on.

    Args:
        gpu: Which GPU: a number of CUDA's, ``auto`` for the one that the loss
            lies on, or ``off``.

        pace: Times the steps.

        notices: Where trouble is named.
    """

    def __init__(self, gpu: Gpu, pace: Pace, notices: Notices) -> None:
        self._gpu = gpu
        self._pace = pace
        self._notices = notices
        self._sampler: GpuSampler | None = None
        self._times: list[float] = []
        self._data: list[float] = []
        self._due_s = PULSE_S
        if isinstance(gpu, int):
            self._start(gpu)

    @property
    def gpu_uuid(self) -> str:
        """UUID of the GPU, or empty."""
        return "" if self._sampler is None else self._sampler.uuid

    def trains_on(self, device: int | None) -> None:
        """Say on which GPU the loss lies; None for none."""
        if self._gpu == "auto" and self._sampler is None and device is not None:
            self._start(device)

    def _start(self, device: int) -> None:
        uuid = _uuid_from_cuda(device)
        self._sampler = GpuSampler(device, uuid=uuid, notices=self._notices)
        self._sampler.start()

    def add(self, step_time_s: float | None, data_time_s: float | None) -> None:
        """Take in the times of one step."""
        for times, seconds in ((self._times, step_time_s), (self._data, data_time_s)):
            if seconds is not None and len(times) < _MOST_TIMES:
                times.append(seconds)

    def pulse(self) -> dict[str, Any] | None:
        """Return the signals since the last pulse, when one is due.

        One is due every ten seconds, and at once when the GPU is lost.
        """
        now = self._pace.total_s()
        lost = self._sampler is not None and self._sampler.lost
        if now < self._due_s and not lost:
            return None
        self._due_s = now + PULSE_S
        signals: dict[str, Any] = {"time_s": now}
        for name, times in (("step_time_s", self._times), ("data_time_s", self._data)):
            if times:
                signals[name] = statistics.median(times)
                times.clear()
        if self._sampler is not None:
            signals |= self._sampler.since_pulse()
        return signals

    def report(self) -> dict[str, Any]:
        """Return the GPU's signals since the last report."""
        if self._sampler is None:
            return {}
        signals = {**self._sampler.since_report(), **memory.in_report()}
        return {**signals, "gpu_uuid": self.gpu_uuid} if self.gpu_uuid else signals

    def now(self) -> dict[str, Any]:
        """Look at the GPU once more, and return its signals; empty without one."""
        if self._sampler is None:
            return {}
        self._sampler.look()
        return {**self._sampler.since_pulse(), "gpu_uuid": self.gpu_uuid}

    def close(self) -> None:
        """End the sampler's thread."""
        if self._sampler is not None:
            self._sampler.close()


def _uuid_from_cuda(device: int) -> str:
    """Return the UUID that CUDA gives a device, or "" where it cannot be asked."""
    torch = sys.modules.get("torch")
    try:
        if torch is None or not torch.cuda.is_initialized():
            return ""
        uuid = str(torch.cuda.get_device_properties(device).uuid)
    except Exception:  # noqa: BLE001 - an older torch, or a device that is gone
        return ""
    return uuid if uuid.startswith(("GPU-", "MIG-")) else f"GPU-{uuid}"
