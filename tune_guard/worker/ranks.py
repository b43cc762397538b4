"""One decision for all ranks of a distributed training, at the same step."""

from __future__ import annotations

import datetime as dt
import sys
from dataclasses import dataclass, replace
from typing import Any

from tune_guard.notices import Notices
from tune_guard.stored_state import load_verdict, store_verdict
from tune_guard.strict_json import from_json, number, to_json
from tune_guard.verdict import HEALTHY, Tier, Verdict

_MESSAGE_BYTES = 8192
_NOTHING, _DECIDED, _FATAL = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Told:
    """What all ranks agree on.

    Args:
        verdict: The same on every rank.

        host: Where the rank that found it runs; ``gpu_uuid`` likewise.

        own: Whether this rank is the one that found it.
    """

    verdict: Verdict
    host: str = ""
    gpu_uuid: str = ""
    own: bool = True


class Ranks:
    """Carry the decision of one rank to all of them.

    A fatal finding of any rank stops all (logical or; the lowest such rank is
    named). What is a matter of judgement, such as a plateau, is decided by the
    deciding rank alone, whatever the others think. It costs one reduction of one
    number for each check, on every rank, also on one that has nothing to judge;
    one broadcast more when the decision is to stop. Both go over a group of
    their own on the CPU, so that no device waits.

    Where the group fails, each rank goes on by itself, with one notice.

    Args:
        deciding_rank: Whose judgement counts.

        timeout_s: How long a rank waits for the others.

        notices: Where a failed group is named.
    """

    def __init__(
        self, *, deciding_rank: int = 0, timeout_s: float = 600.0, notices: Notices
    ) -> None:
        self.deciding_rank = deciding_rank
        self.collectives = 0
        self._timeout = dt.timedelta(seconds=timeout_s)
        self._notices = notices
        self._group: Any = None
        self._broken = False

    @property
    def shared(self) -> bool:
        """Whether there are other ranks to agree with."""
        return not self._broken and _has_others()

    def share(self, mine: Verdict, *, host: str = "", gpu_uuid: str = "") -> Told:
        """Return what all ranks agree on. Never raises.

        Args:
            mine: This rank's own verdict.

            host: Where this rank runs.

            gpu_uuid: The GPU that it runs on.
        """
        own = Told(mine, host, gpu_uuid)
        try:
            return self._agree(own)
        except Exception as error:  # noqa: BLE001 - whatever a lost peer leads to
            self._broken, self._group = True, None
            self._notices.once(
                "ranks",
                f"The ranks could not agree ({error!r}): from now on each goes by"
                " its own verdict.",
            )
            return own

    def _agree(self, own: Told) -> Told:
        import torch
        import torch.distributed as dist

        if self._group is None:
            self._group = dist.new_group(backend="gloo", timeout=self._timeout)
        rank, world = dist.get_rank(), dist.get_world_size()
        claim = torch.tensor([self._claim(own.verdict, rank, world)])
        self.collectives += 1
        dist.all_reduce(claim, dist.ReduceOp.MAX, group=self._group)
        agreed = int(claim)
        if agreed == _NOTHING:
            return Told(_harmless(own.verdict))
        origin = self.deciding_rank
        if agreed >= _FATAL:
            origin = world - 1 - (agreed - _FATAL)
        message = torch.zeros(_MESSAGE_BYTES, dtype=torch.uint8)
        if rank == origin:
            message = _packed(own, rank)
        self.collectives += 1
        dist.broadcast(message, origin, group=self._group)
        return replace(_unpacked(message), own=rank == origin)

    def _claim(self, verdict: Verdict, rank: int, world: int) -> int:
        """Return how loudly this rank calls for a stop; the lowest fatal wins."""
        if not verdict.stop:
            return _NOTHING
        cause = verdict.cause
        if cause is not None and cause.tier is Tier.FATAL:
            return _FATAL + world - 1 - rank
        return _DECIDED if rank == self.deciding_rank else _NOTHING

    def close(self) -> None:
        """Let go of the group."""
        self._group = None


def _has_others() -> bool:
    if "torch.distributed" not in sys.modules:
        return False
    import torch.distributed as dist

    ready = dist.is_available() and dist.is_initialized()
    return ready and dist.get_world_size() > 1


def _harmless(verdict: Verdict) -> Verdict:
    """Return a verdict without the stop that was not this rank's to decide."""
    return HEALTHY if verdict.stop else verdict


def _packed(own: Told, rank: int) -> Any:
    """Write a verdict into the bytes that all ranks receive."""
    import torch

    named = [
        replace(found, message=f"{found.message} (rank {rank})")
        for found in own.verdict.findings
    ]
    content: dict[str, Any] = {"host": own.host, "gpu_uuid": own.gpu_uuid}
    while True:
        findings = store_verdict(Verdict(own.verdict.level, tuple(named)))
        text = to_json({**content, "findings": findings}).encode()
        if len(text) <= _MESSAGE_BYTES:
            break
        named = _shorter(named)
    return torch.tensor(list(text.ljust(_MESSAGE_BYTES)), dtype=torch.uint8)


def _shorter(findings: list[Any]) -> list[Any]:
    """Leave out the last finding, or shorten the only one's message."""
    if len(findings) > 1:
        return findings[:-1]
    found = findings[0]
    return [replace(found, message=found.message[: len(found.message) // 2])]


def _unpacked(message: Any) -> Told:
    content = from_json(bytes(message.tolist()).decode().strip())
    findings = [
        {**found, "threshold": number(found["threshold"])}
        for found in content["findings"]
    ]
    return Told(load_verdict(findings), content["host"], content["gpu_uuid"])
