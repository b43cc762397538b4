"""Out of memory on the GPU: an end with a reason of its own, in bytes."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from tune_guard.verdict import Blame, Finding, Level, Tier, Verdict

RULE = "cuda_oom"

_OTHERS_SHARE = 0.1
"""Share of the GPU's memory that other processes must hold to be to blame."""

_GIB = 2**30


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuMemory:
    """How a GPU's memory was used when it ran out, in bytes.

    Args:
        allocated_bytes: Held by tensors.

        reserved_bytes: Held by the allocator, tensors included.

        free_bytes: Free on the whole GPU.

        total_bytes: All of it.

        retries: How often the allocator had to give back its cache so far.
    """

    allocated_bytes: int
    reserved_bytes: int
    free_bytes: int
    total_bytes: int
    retries: int

    @property
    def others_bytes(self) -> int:
        """What other processes, and this one outside its allocator, hold."""
        return max(0, self.total_bytes - self.free_bytes - self.reserved_bytes)


def is_out_of_memory(error: BaseException | None) -> bool:
    """Whether an error says that a GPU's memory has run out."""
    torch = sys.modules.get("torch")
    kinds = [getattr(torch, "OutOfMemoryError", None)]
    kinds.append(getattr(getattr(torch, "cuda", None), "OutOfMemoryError", None))
    if isinstance(error, tuple(kind for kind in kinds if kind is not None)):
        return True
    if not isinstance(error, RuntimeError):
        return False
    text = str(error).lower()
    return "cuda" in text and "out of memory" in text


def gpu_memory() -> GpuMemory | None:
    """Return how the current GPU's memory is used; None without one."""
    torch = sys.modules.get("torch")
    try:
        if torch is None or not torch.cuda.is_initialized():
            return None
        free, total = torch.cuda.mem_get_info()
        return GpuMemory(
            allocated_bytes=torch.cuda.memory_allocated(),
            reserved_bytes=torch.cuda.memory_reserved(),
            free_bytes=free,
            total_bytes=total,
            retries=torch.cuda.memory_stats().get("num_alloc_retries", 0),
        )
    except Exception:  # noqa: BLE001 - a device that failed answers nothing
        return None


def in_report() -> dict[str, int]:
    """Return this process's share of a GPU's memory, for a report; empty without one.

    Retries of the allocator are memory pressure: it had to give back its cache,
    which stalls the training, before it found room.
    """
    torch = sys.modules.get("torch")
    try:
        if torch is None or not torch.cuda.is_initialized():
            return {}
        retries = torch.cuda.memory_stats().get("num_alloc_retries", 0)
        return {
            "gpu_memory_allocated_bytes": torch.cuda.max_memory_allocated(),
            "gpu_memory_reserved_bytes": torch.cuda.max_memory_reserved(),
            "gpu_memory_retries": retries,
        }
    except Exception:  # noqa: BLE001 - a device that failed answers nothing
        return {}


def verdict_of(step: int, used: GpuMemory | None) -> Verdict:
    """Return the verdict on a training that ran out of memory.

    The configuration is to blame, unless other processes hold a tenth of the GPU:
    then the same configuration may well fit elsewhere.
    """
    blame, more = Blame.CONFIG, "Use smaller batches or a smaller model."
    seen, value = "", 0.0
    if used is not None:
        value = float(used.allocated_bytes)
        seen = (
            f": {_gib(used.allocated_bytes)} allocated, {_gib(used.reserved_bytes)}"
            f" reserved of {_gib(used.total_bytes)}"
        )
        if used.retries:
            seen += f", after {used.retries} retries"
        if used.others_bytes > _OTHERS_SHARE * used.total_bytes:
            blame = Blame.INFRASTRUCTURE
            more = f"Other processes hold {_gib(used.others_bytes)}: run it elsewhere."
    found = Finding(
        rule=RULE,
        step=step,
        tier=Tier.FATAL,
        blame=blame,
        metric="gpu_memory_allocated_bytes",
        value=value,
        threshold=None if used is None else float(used.total_bytes),
        message=f"The GPU ran out of memory at step {step}{seen}. {more}",
    )
    return Verdict(Level.STOP, (found,))


def _gib(size: int) -> str:
    return f"{size / _GIB:.2f} GiB ({size} bytes)"
