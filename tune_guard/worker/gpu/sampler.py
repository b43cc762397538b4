"""A thread that looks at the GPU once a second, and what it has seen."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any

from tune_guard.notices import Notices
from tune_guard.rules.gpu_fault import FATAL_XIDS
from tune_guard.worker.gpu.identity import UnknownGpu, uuid_of
from tune_guard.worker.gpu.nvml import GpuLost, Nvml, NvmlUnavailable
from tune_guard.worker.gpu.window import Sample, Window

INTERVAL_S = 1.0
_FATAL = frozenset(FATAL_XIDS)
_MOST_FAILURES = 3
"""Looks in a row at which nothing answered, after which NVML is given up."""


def _found(nvml: Nvml, uuid: str) -> tuple[Any, str]:
    """Return handle and UUID of a physical GPU; CUDA names slices like GPUs.

    Raises:
        UnknownGpu: If NVML knows none.
    """
    for name in (uuid, uuid.replace("GPU-", "MIG-", 1)):
        found = nvml.physical(name)
        if found is not None:
            return found
    msg = f"NVML knows no {uuid}"
    raise UnknownGpu(msg)


class GpuSampler:
    """Look at one GPU again and again, in a thread of its own.

    It opens NVML in the process that uses it: after a fork, or pickled to
    another process, it begins anew there. Whatever fails is named once; training
    never notices.

    Args:
        device: CUDA's number of the device, from 0.

        uuid: Its UUID, where CUDA has told it; "" to work it out.

        notices: Where trouble is named.

        interval_s: Seconds between two looks.
    """

    def __init__(
        self,
        device: int,
        *,
        uuid: str = "",
        notices: Notices,
        interval_s: float = INTERVAL_S,
    ) -> None:
        self.device = device
        self.uuid = uuid
        self._told_uuid = uuid
        self._notices = notices
        self._interval_s = interval_s
        self._forget()

    def _forget(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None
        self._since_report, self._since_pulse = Window(), Window()
        self._nvml: Nvml | None = None
        self._handle: Any = None
        self._over = False
        self._failures = 0
        self.lost = False

    def __getstate__(self) -> dict[str, Any]:
        """Leave the thread and NVML out: they belong to this process."""
        return {
            "device": self.device,
            "uuid": self._told_uuid,
            "notices": self._notices,
            "interval_s": self._interval_s,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(  # type: ignore[misc]
            state["device"],
            uuid=state["uuid"],
            notices=state["notices"],
            interval_s=state["interval_s"],
        )

    def start(self) -> None:
        """Start the thread, unless it runs. Never raises."""
        if self._pid != os.getpid():
            self._forget()
        if self._thread is None and not self._over and self.open():
            self._thread = threading.Thread(
                target=self._run, name="tune_guard-gpu", daemon=True
            )
            self._thread.start()

    def open(self) -> bool:
        """Open NVML and find the GPU; return whether there is one. Never raises."""
        if self._handle is not None:
            return True
        try:
            self._nvml = nvml = Nvml(self._notices)
            wanted = self._told_uuid or uuid_of(
                self.device, os.environ, nvml.uuids(), nvml.names()
            )
            self._handle, self.uuid = _found(nvml, wanted)
        except (NvmlUnavailable, UnknownGpu) as error:
            self._give_up(f"{error}")
        except Exception as error:  # noqa: BLE001 - a driver may answer anything
            self._give_up(repr(error))
        return self._handle is not None

    def _give_up(self, why: str) -> None:
        self._over = True
        self._notices.once(
            "gpu", f"No GPU telemetry: {why}. Training is watched without it."
        )

    def _run(self) -> None:
        while not self._over:
            self.look()
            if self._wake.wait(self._interval_s):
                return

    def look(self) -> None:
        """Take one sample. Never raises."""
        if self._nvml is None or self._handle is None or self._over:
            return
        try:
            sample = self._nvml.sample(self._handle)
        except GpuLost:
            self.lost = self._over = True
            sample = Sample(lost=True)
        except NvmlUnavailable as error:
            self._failures += 1
            if self._failures >= _MOST_FAILURES:
                self._give_up(f"{error}")
            return
        except Exception as error:  # noqa: BLE001 - a driver may answer anything
            self._give_up(f"NVML failed with {error!r}")
            return
        self._failures = 0
        with self._lock:
            self._since_report.add(sample)
            self._since_pulse.add(sample)

    def since_report(self) -> dict[str, Any]:
        """Return the signals since the last call of this, for a report."""
        return self._take(lambda: self._since_report)

    def since_pulse(self) -> dict[str, Any]:
        """Return the signals since the last call of this, for the worker's rules."""
        return self._take(lambda: self._since_pulse)

    def _take(self, window: Callable[[], Window]) -> dict[str, Any]:
        if self._pid != os.getpid():
            self.start()
        with self._lock:
            return window().take(_FATAL)

    def close(self) -> None:
        """End the thread and close NVML."""
        self._over = True
        self._wake.set()
        thread, self._thread = self._thread, None
        if thread is not None and self._pid == os.getpid():
            thread.join(self._interval_s + 1.0)
        if self._nvml is not None and self._pid == os.getpid():
            self._nvml.close()
        self._nvml = self._handle = None
