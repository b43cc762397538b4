"""Small models, losses and policies that the tests of the worker share."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from tune_guard import Policy, TrialGuard
from tune_guard.rules import NonFinite
from tune_guard.rules.base import Rule

NAN = float("nan")
INF = float("inf")


def policy(*rules: Rule, metric: str = "val_loss", **more: Any) -> Policy:
    """Return a policy of few rules; NaN alone when none is named."""
    return Policy(metric=metric, mode="min", rules=rules or (NonFinite(),), **more)


def guarded(*rules: Rule, **more: Any) -> TrialGuard:
    """Return a guard under a policy of few rules."""
    return TrialGuard(policy(*rules), **more)


def chain(*widths: int) -> nn.Sequential:
    """Return a model of linear layers named 0, 1, 2 and so on."""
    torch.manual_seed(0)
    pairs = itertools.pairwise(widths)
    return nn.Sequential(*(nn.Linear(a, b) for a, b in pairs))


def backward(model: nn.Module, scale: float = 1.0) -> torch.Tensor:
    """Run one batch through a model and back; return the loss."""
    first = next(model.parameters())
    inputs = torch.ones(4, first.shape[-1], dtype=first.dtype)
    loss: torch.Tensor = (model(inputs) ** 2).mean() * scale
    model.zero_grad()
    loss.backward()
    return loss


def stops(guard: TrialGuard, losses: Sequence[Any], **given: Any) -> list[bool]:
    """Return for each step whether it is stopped."""
    return [guard.check_step(loss, **given).stop for loss in losses]
