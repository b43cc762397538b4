"""Numbers on their way from the device to the host, without waiting for them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from torch import Tensor

MOST_LATE = 2
"""Steps by which a number may be late at most."""


class Transfer(Protocol):
    """A copy of some numbers to the host that is under way."""

    def done(self) -> bool:
        """Whether it has arrived. Does not wait."""

    def wait(self) -> None:
        """Wait until it has arrived."""

    def numbers(self) -> Tensor:
        """Return the numbers as a vector on the host; only when it is done."""

    def since(self, earlier: Transfer) -> float | None:
        """Return the seconds between two transfers on the device, if known."""


@dataclass(slots=True)
class Reading:
    """What one optimizer step brought, complete once its transfer is done.

    Args:
        step: The optimizer step.

        names: What the transferred numbers are.

        known: Numbers that were on the host already.

        step_time_s: Host seconds since the step before; None after a break.

        context: What is needed to look closer if the step turns out bad.
    """

    step: int
    names: Sequence[str] = ()
    known: dict[str, float] = field(default_factory=dict)
    step_time_s: float | None = None
    context: Any = None
    transfer: Transfer | None = None

    def numbers(self) -> dict[str, float]:
        """Return all numbers of the step by name; only when it is done."""
        if self.transfer is None:
            return self.known
        values = self.transfer.numbers()[: len(self.names)].tolist()
        return {**self.known, **dict(zip(self.names, values, strict=True))}

    def rest(self) -> Tensor | None:
        """Return the vector that was transferred behind the named numbers."""
        if self.transfer is None:
            return None
        rest = self.transfer.numbers()[len(self.names) :]
        return rest if len(rest) else None


class Ring:
    """The readings that are under way, the oldest first.

    A reading is taken out when its copy has arrived. The host waits for one only
    where it has run more than two steps ahead of the device: then the device has
    two whole steps of work queued, and loses nothing by it.

    Args:
        copy: Starts the transfer of some device tensors.
    """

    def __init__(self, copy: Callable[[Sequence[Tensor]], Transfer]) -> None:
        self._copy = copy
        self._waiting: deque[Reading] = deque()
        self._last: Transfer | None = None

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, reading: Reading, tensors: Sequence[Tensor]) -> None:
        """Start the transfer of a reading's tensors; none are needed."""
        if tensors:
            reading.transfer = self._copy(tensors)
        self._waiting.append(reading)

    def take(self, *, most_late: int = MOST_LATE) -> list[Reading]:
        """Return the readings that have arrived, in order.

        Args:
            most_late: Readings that may stay under way; 0 waits for all.
        """
        arrived = []
        while self._waiting:
            transfer = self._waiting[0].transfer
            late = len(self._waiting) > most_late
            if transfer is not None and not transfer.done():
                if not late:
                    break
                transfer.wait()
            arrived.append(self._timed(self._waiting.popleft()))
        return arrived

    def _timed(self, reading: Reading) -> Reading:
        """Replace the host's step time by the device's own."""
        last, self._last = self._last, reading.transfer
        if reading.step_time_s is not None and last is not None and self._last:
            on_device = self._last.since(last)
            reading.step_time_s = on_device or reading.step_time_s
        return reading


class PinnedCopies:
    """Copies to page-locked host memory, in a ring of few buffers.

    One small kernel gathers the numbers and one asynchronous copy carries them;
    an event tells when it has arrived. Nothing here waits for the device.
    """

    def __init__(self, slots: int = MOST_LATE + 2) -> None:
        self._buffers: list[Tensor | None] = [None] * slots
        self._next = 0

    def __call__(self, tensors: Sequence[Tensor]) -> Transfer:
        """Start the copy of several scalars and vectors."""
        import torch

        with torch.no_grad():
            flat = [tensor.reshape(-1) for tensor in tensors]
            wide = torch.promote_types(torch.float32, _widest(flat))
            packed = torch.cat([tensor.to(wide) for tensor in flat])
            buffer = self._buffer(packed)
            buffer.copy_(packed, non_blocking=True)
            event: Any = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
            event.record(torch.cuda.current_stream(packed.device))
        return _Pinned(buffer, event)

    def _buffer(self, like: Tensor) -> Tensor:
        import torch

        slot, self._next = self._next, (self._next + 1) % len(self._buffers)
        buffer = self._buffers[slot]
        if buffer is None or buffer.shape != like.shape or buffer.dtype != like.dtype:
            buffer = torch.empty(like.shape, dtype=like.dtype, pin_memory=True)
            self._buffers[slot] = buffer
        return buffer


class _Pinned:
    def __init__(self, buffer: Tensor, event: Any) -> None:
        self._buffer = buffer
        self._event = event

    def done(self) -> bool:
        return bool(self._event.query())

    def wait(self) -> None:
        self._event.synchronize()

    def numbers(self) -> Tensor:
        return self._buffer

    def since(self, earlier: Transfer) -> float | None:
        before: Any = getattr(earlier, "_event", None)
        try:
            return float(before.elapsed_time(self._event)) / 1000.0
        except (AttributeError, RuntimeError):  # an event of another device
            return None


def _widest(tensors: Sequence[Tensor]) -> Any:
    import torch

    widest = torch.float32
    for tensor in tensors:
        widest = torch.promote_types(widest, tensor.dtype)
    return widest
