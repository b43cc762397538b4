"""What the ranks of the distributed tests run: each function is one program."""

from __future__ import annotations

import os
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from tune_guard import Policy, TrialGuard
from tune_guard.rules import GradientExplosion, NonFinite, Plateau

NAN = float("nan")
POLICY = Policy(
    metric="val_loss",
    mode="min",
    rules=(
        NonFinite(),
        GradientExplosion(min_history=3, k=1, holds=()),
        Plateau(patience=3, holds=()),
    ),
)


def told(guard: TrialGuard, verdicts: list[Any]) -> dict[str, Any]:
    """Return what a rank saw, as plain values."""
    return {
        "stops": [verdict.stop for verdict in verdicts],
        "reason": guard.verdict.reason,
        "step": guard.verdict.step,
        "message": guard.record().message,
        "collectives": guard._trial.ranks.collectives,
    }


def plateau(rank: int) -> dict[str, Any]:
    """Rank 0 does not improve, the others do; rank 3 misses two values."""
    values: list[list[float | None]] = [
        [1.0, 1.0, 1.0, 1.0, 1.0],
        [1.0, 0.9, 0.8, 0.7, 0.6],
        [1.0, 0.9, 0.8, 0.7, 0.6],
        [1.0, None, None, 0.7, 0.6],
    ]
    guard, verdicts = TrialGuard(POLICY), []
    for value in values[rank]:
        verdicts.append(guard.check_epoch(value))
        if verdicts[-1].stop:
            break
    return told(guard, verdicts)


def nan_on_one(rank: int) -> dict[str, Any]:
    """The loss of rank 1 alone becomes NaN at step 3."""
    guard, verdicts = TrialGuard(POLICY), []
    for step in range(6):
        loss = NAN if rank == 1 and step == 3 else 1.0
        verdicts.append(guard.check_step(loss))
        if verdicts[-1].stop:
            break
    return told(guard, verdicts)


def nan_on_two(rank: int) -> dict[str, Any]:
    """Ranks 1 and 2 become NaN at the same step: the lower one is named."""
    guard = TrialGuard(POLICY)
    return told(guard, [guard.check_step(NAN if rank else 1.0)])


def without_a_loss(rank: int) -> dict[str, Any]:
    """Rank 1 never has a loss, as in a pipeline; rank 0's becomes NaN."""
    guard, verdicts = TrialGuard(POLICY), []
    for step in range(4):
        loss = None if rank else (NAN if step == 2 else 1.0)
        verdicts.append(guard.check_step(loss))
    return told(guard, verdicts)


def judged_by_another(rank: int) -> dict[str, Any]:
    """Rank 1 explodes, which is a matter of judgement, and rank 0 decides."""
    guard, verdicts = TrialGuard(POLICY), []
    for step in range(8):
        norm = 100.0 if rank == 1 and step >= 4 else 1.0
        loss = NAN if rank == 1 and step == 7 else 1.0
        verdicts.append(guard.check_step(loss, grad_norm=norm))
    return told(guard, verdicts)


def judged_by_rank_one(rank: int) -> dict[str, Any]:
    """The same with rank 1 as the deciding rank."""
    guard = TrialGuard(POLICY, deciding_rank=1)
    verdicts = []
    for step in range(8):
        norm = 100.0 if rank == 1 and step >= 4 else 1.0
        verdicts.append(guard.check_step(1.0, grad_norm=norm))
        if verdicts[-1].stop:
            break
    return told(guard, verdicts)


def accumulated(rank: int) -> dict[str, Any]:
    """Four calls make up one optimizer step."""
    guard = TrialGuard(POLICY, accumulate=4)
    verdicts = [guard.check_step(1.0) for _ in range(12)]
    return told(guard, verdicts) | {"rank": rank}


def peer_dies(rank: int) -> dict[str, Any]:
    """Rank 1 dies after two steps; rank 0 goes on, and turns NaN at step 5."""
    guard, verdicts = TrialGuard(POLICY), []
    for step in range(6):
        if rank == 1 and step == 2:
            os._exit(3)
        verdicts.append(guard.check_step(NAN if step == 5 else 1.0))
    notices = list(guard._notices.messages)
    return told(guard, verdicts) | {"notices": notices}


def sharded(rank: int) -> dict[str, Any]:
    """The norm of a model whose parameters are sharded (FSDP2)."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 8), nn.Linear(8, 2))
    whole = nn.Sequential(nn.Linear(6, 8), nn.Linear(8, 2))
    whole.load_state_dict(model.state_dict())
    fully_shard(model, mesh=init_device_mesh("cpu", (dist.get_world_size(),)))
    for one in (model, whole):
        (one(torch.ones(3, 6)) ** 2).mean().backward()
    guard = TrialGuard(POLICY)
    guard.check_step(1.0, model)
    mine = guard.row({"val_loss": 1.0})["grad_norm"]
    norm = nn.utils.clip_grad_norm_(model.parameters(), 0.1)
    clipped = TrialGuard(POLICY)
    clipped.check_step(1.0, model, grad_norm=norm)
    given = clipped.row({"val_loss": 1.0})["grad_norm"]
    expected = nn.utils.get_total_norm([p.grad for p in whole.parameters()]).item()
    return {"mine": mine, "given": given, "expected": expected, "rank": rank}


def replicated(rank: int) -> dict[str, Any]:
    """A real training with DistributedDataParallel in which rank 1's data is bad."""
    from torch.nn.parallel import DistributedDataParallel

    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    guard, verdicts = TrialGuard(POLICY), []
    for step in range(6):
        inputs = torch.full((2, 4), NAN if rank == 1 and step == 3 else 1.0)
        loss = (model(inputs) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        verdicts.append(guard.check_step(loss, model, grad_norm=norm))
        if verdicts[-1].stop:
            break
        optimizer.step()
    finite = all(torch.isfinite(p).all() for p in model.parameters())
    return told(guard, verdicts) | {"finite": bool(finite)}
