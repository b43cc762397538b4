"""Where a bad step began: the module whose gradient, output or weight went first.

Looked at only when a step is bad. What can be told depends on what is left:
clipping by a NaN norm makes every gradient NaN, so the outputs (where traced) and
the weights are looked at too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tune_guard.worker.gradients import module_of, modules_of, norms_of

if TYPE_CHECKING:
    from torch import Tensor, nn

_MOST_GROWN = 3.0
"""A gradient is named for an explosion when it grew so many times over its usual."""


def by_gradients(model: nn.Module) -> str:
    """Say which module's gradient went bad first, from gradients that are there."""
    names, norms = gradients_of(model)
    return by_norms(names, norms)


def gradients_of(model: nn.Module) -> tuple[list[str], list[float]]:
    """Return the parameters that have a gradient, and the norm of each."""
    found = [(n, p.grad) for n, p in model.named_parameters() if p.grad is not None]
    if not found:
        return [], []
    norms: list[float] = norms_of([gradient for _, gradient in found]).tolist()
    return [name for name, _ in found], norms


def by_norms(names: Sequence[str], norms: Sequence[float]) -> str:
    """Say the same from each gradient's norm.

    Gradients flow from the loss backwards, and models list their parameters in
    the order of the forward pass: of the bad ones the last listed went first.

    Example:
        >>> nan = float("nan")
        >>> by_norms(["a.weight", "b.weight", "head.weight"], [nan, nan, 1.0])
        'The gradient of `b` went first, of 2 modules with bad gradients.'
    """
    bad = [n for n, norm in zip(names, norms, strict=True) if not math.isfinite(norm)]
    if not bad:
        return ""
    modules = modules_of(bad)
    if len(bad) == len(names):
        return "All gradients are bad: the loss was, or clipping made them so."
    others = f", of {len(modules)} modules with bad gradients" if modules[1:] else ""
    return f"The gradient of `{modules[-1]}` went first{others}."


def by_outputs(outputs: Sequence[tuple[str, Tensor]]) -> str:
    """Say which module's output went bad first, from traced flags in call order."""
    import torch

    if not outputs:
        return ""
    flags: list[bool] = torch.stack([flag.cpu() for _, flag in outputs]).tolist()
    for (name, _), finite in zip(outputs, flags, strict=True):
        if not finite:
            return f"The output of `{name}` went first."
    return ""


def by_weights(model: nn.Module) -> str:
    """Say which modules hold weights that are not finite, if not all do."""
    found = list(model.named_parameters())
    if not found:
        return ""
    names = [name for name, _ in found]
    norms: list[float] = norms_of([p.detach() for _, p in found]).tolist()
    bad = [n for n, norm in zip(names, norms, strict=True) if not math.isfinite(norm)]
    if not bad:
        return "All weights are still finite."
    if len(bad) == len(found):
        return "All weights are bad: an earlier step spoilt them."
    modules = modules_of(bad)
    more = f" and {len(modules) - 1} more" if modules[1:] else ""
    return f"The weights of `{modules[0]}`{more} are bad."


def by_growth(
    names: Sequence[str], norms: Sequence[float], usual: Sequence[float]
) -> str:
    """Say which module's gradient grew most over its usual norm.

    Example:
        >>> by_growth(["a.weight", "b.weight"], [2.0, 50.0], [1.0, 1.0])
        'The gradient of `b` grew most, 50 times its usual norm.'
    """
    grown = [n / u if u > 0.0 else 0.0 for n, u in zip(norms, usual, strict=True)]
    most = max(grown, default=0.0)
    if most < _MOST_GROWN:
        return ""
    module = module_of(names[grown.index(most)])
    return f"The gradient of `{module}` grew most, {most:.3g} times its usual norm."


def by_share(names: Sequence[str], norms: Sequence[float]) -> str:
    """Say which module's gradient makes up most of the whole.

    Example:
        >>> by_share(["a.weight", "b.weight"], [3.0, 4.0])
        'The gradient of `b` is the largest, 64% of the squared norm.'
    """
    squares = [norm * norm for norm in norms]
    whole = sum(squares)
    if not 0.0 < whole < math.inf:
        return ""
    most = max(squares)
    module = module_of(names[squares.index(most)])
    share = f"{most / whole:.0%} of the squared norm"
    return f"The gradient of `{module}` is the largest, {share}."
