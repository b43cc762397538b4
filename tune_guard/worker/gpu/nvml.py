"""NVML through ``pynvml``: one value at a time, none of them a reason to fail.

What a GPU or driver does not support is None: asked once, named once, and not
asked again. Calls that newer drivers drop are tried after those that replace
them. Of NVML's field ids only none is used that moved between drivers: the
thermal counters were 251-253 in release 580 and are 269-271 since, where the old
ids mean something else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from tune_guard.notices import Notices
from tune_guard.worker.gpu.window import Sample

T = TypeVar("T")

_THERMAL_POLICY = 1
"""``NVML_PERF_POLICY_THERMAL``; the time is documented in nanoseconds."""

_MOST_EVENTS = 16
"""Events taken at one look; the rest wait for the next."""


class NvmlUnavailable(Exception):  # noqa: N818 - it says what is the case
    """NVML cannot be used at all: no library, no driver, no permission."""


class GpuLost(Exception):  # noqa: N818 - it says what happened
    """The GPU has fallen off the bus or is out of order; only a reset helps."""


class Nvml:
    """NVML, opened for this process.

    Args:
        notices: Where what is not supported is named.

    Raises:
        NvmlUnavailable: If there is none to open.
    """

    def __init__(self, notices: Notices) -> None:
        self._notices = notices
        self._unsupported: set[str] = set()
        self._answers = 0
        self._errors: dict[str, Exception] = {}
        self._events: Any = None
        try:
            import pynvml
        except ImportError as error:
            msg = "the package `nvidia-ml-py` is not installed (tune-guard[gpu])"
            raise NvmlUnavailable(msg) from error
        self._api: Any = pynvml
        try:
            self._gone = (pynvml.NVMLError_GpuIsLost, pynvml.NVMLError_ResetRequired)
            pynvml.nvmlInit()
        except Exception as error:
            raise NvmlUnavailable(repr(error)) from error

    # ------------------------------------------------------------- devices

    def uuids(self) -> list[str]:
        """Return the UUIDs of all GPUs in NVML's order; "" for one that is lost."""
        count = self._api.nvmlDeviceGetCount()
        return [self._uuid(index) for index in range(count)]

    def _uuid(self, index: int) -> str:
        api = self._api
        try:
            return str(api.nvmlDeviceGetUUID(api.nvmlDeviceGetHandleByIndex(index)))
        except api.NVMLError:
            return ""

    def names(self) -> list[str]:
        """Return the models of all GPUs in NVML's order; "" where unknown."""
        found = []
        for index in range(self._api.nvmlDeviceGetCount()):
            try:
                handle = self._api.nvmlDeviceGetHandleByIndex(index)
                found.append(str(self._api.nvmlDeviceGetName(handle)))
            except self._api.NVMLError:
                found.append("")
        return found

    def physical(self, uuid: str) -> tuple[Any, str] | None:
        """Return handle and UUID of the physical GPU behind a UUID, or None.

        A MIG slice has neither clocks nor temperature of its own: its GPU has.
        """
        api = self._api
        try:
            handle = api.nvmlDeviceGetHandleByUUID(uuid)
            if uuid.startswith("MIG-"):
                handle = api.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(handle)
            return handle, str(api.nvmlDeviceGetUUID(handle))
        except api.NVMLError:
            return None

    # -------------------------------------------------------------- values

    def sample(self, handle: Any) -> Sample:
        """Look at a GPU once.

        Raises:
            GpuLost: If it is gone.
            NvmlUnavailable: If every single call failed.
        """
        self._answers, self._errors = 0, {}
        sample = self._sample(handle)
        if self._errors and not self._answers:
            msg = f"every call failed ({next(iter(self._errors.values()))!r})"
            raise NvmlUnavailable(msg)
        for what, error in self._errors.items():
            self._notices.once(
                f"nvml:{what}:{error!r}",
                f"NVML could not read the GPU's {what} ({error!r}): unknown for now.",
            )
        return sample

    def _sample(self, handle: Any) -> Sample:
        memory = self._memory(handle)
        return Sample(
            temperature_celsius=self._temperature(handle),
            clock_mhz=self._clock(handle),
            utilization_ratio=self._utilization(handle),
            power_watts=self._power(handle),
            reasons=self._reasons(handle),
            ecc_uncorrected=self._ecc(handle),
            throttled_s=self._throttled(handle),
            xid=self._xid(handle),
            memory_used_bytes=None if memory is None else int(memory.used),
            memory_total_bytes=None if memory is None else int(memory.total),
        )

    def _temperature(self, handle: Any) -> float | None:
        api, sensor = self._api, self._api.NVML_TEMPERATURE_GPU
        return self._first(
            "temperature",
            lambda: float(api.nvmlDeviceGetTemperatureV(handle, sensor)),
            lambda: float(api.nvmlDeviceGetTemperature(handle, sensor)),
        )

    def _clock(self, handle: Any) -> float | None:
        info, kind = self._api.nvmlDeviceGetClockInfo, self._api.NVML_CLOCK_SM
        return self._first("clock", lambda: float(info(handle, kind)))

    def _utilization(self, handle: Any) -> float | None:
        rates = self._api.nvmlDeviceGetUtilizationRates
        return self._first("utilization", lambda: float(rates(handle).gpu) / 100.0)

    def _power(self, handle: Any) -> float | None:
        usage = self._api.nvmlDeviceGetPowerUsage
        return self._first("power", lambda: float(usage(handle)) / 1000.0)

    def _reasons(self, handle: Any) -> int | None:
        api = self._api
        return self._first(
            "clock event reasons",
            lambda: int(api.nvmlDeviceGetCurrentClocksEventReasons(handle)),
            lambda: int(api.nvmlDeviceGetCurrentClocksThrottleReasons(handle)),
        )

    def _ecc(self, handle: Any) -> int | None:
        api = self._api
        kind, since = api.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, api.NVML_VOLATILE_ECC
        errors = api.nvmlDeviceGetTotalEccErrors
        return self._first("ECC errors", lambda: int(errors(handle, kind, since)))

    def _throttled(self, handle: Any) -> float | None:
        status = self._api.nvmlDeviceGetViolationStatus
        return self._first(
            "thermal violation time",
            lambda: float(status(handle, _THERMAL_POLICY).violationTime) / 1e9,
        )

    def _memory(self, handle: Any) -> Any:
        info = self._api.nvmlDeviceGetMemoryInfo
        return self._first("memory", lambda: info(handle))

    def _xid(self, handle: Any) -> int | None:
        """Return the newest XID since the last call; does not wait for one."""
        api = self._api
        if self._events is None:
            self._events = self._first("XID events", lambda: self._listen(handle))
        newest = None
        for _ in range(_MOST_EVENTS if self._events is not None else 0):
            try:
                event = api.nvmlEventSetWait_v2(self._events, 0)
            except self._gone as error:
                raise GpuLost from error
            except api.NVMLError:  # a timeout: nothing has happened
                break
            newest = int(event.eventData)
        return newest

    def _listen(self, handle: Any) -> Any:
        api = self._api
        events = api.nvmlEventSetCreate()
        api.nvmlDeviceRegisterEvents(handle, api.nvmlEventTypeXidCriticalError, events)
        return events

    def _first(self, what: str, *ways: Callable[[], T]) -> T | None:
        """Return what the first way that is supported gives; None where none is.

        Raises:
            GpuLost: If the GPU is gone.
        """
        if what in self._unsupported:
            return None
        api = self._api
        for way in ways:
            try:
                found = way()
            except (api.NVMLError_NotSupported, api.NVMLError_FunctionNotFound):
                continue
            except self._gone as error:
                raise GpuLost from error
            except api.NVMLError as error:
                self._errors[what] = error
                return None
            self._answers += 1
            return found
        self._unsupported.add(what)
        self._notices.once(
            f"nvml:{what}",
            f"This GPU or driver does not report its {what}: what needs it is not"
            " judged.",
        )
        return None

    def close(self) -> None:
        """Close NVML for this process."""
        try:
            if self._events is not None:
                self._api.nvmlEventSetFree(self._events)
            self._api.nvmlShutdown()
        except self._api.NVMLError:
            pass
        self._events = None
