"""The norm of all gradients, in one fused pass and without waiting for a device."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor, nn

_LOOK_AGAIN = 100
"""Measurements after which a model's parameters are listed anew."""

_WRAPPERS = {"_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module"}
"""What wrappers put into names: torch.compile, FSDP, activation checkpointing."""


@dataclass(slots=True)
class Norms:
    """The gradients' norms at one step, still on their device.

    Args:
        total: Norm over all gradients, a scalar tensor.

        each: Norm of each gradient, in the order of ``names``.

        names: Names of the parameters that had a gradient.
    """

    total: Tensor
    each: Tensor
    names: Sequence[str]


class GradientNorm:
    """Measure the norm of a model's gradients.

    All gradients of a kind are reduced in one call, on their device; nothing is
    read back. Frozen parameters and those without a gradient do not count.
    Sparse gradients count by their coalesced values, complex ones by their
    modulus, half-precision ones are summed in float32. For a DTensor (FSDP2,
    tensor parallelism) the norm is the global one: it costs a collective, so that
    every rank of its mesh must measure at the same step.
    """

    def __init__(self) -> None:
        self._model: nn.Module | None = None
        self._listed: list[tuple[str, Tensor]] = []
        self._age = 0

    def measure(self, model: nn.Module) -> Norms | None:
        """Return the norms, or None when no parameter has a gradient."""
        import torch

        if model is not self._model or self._age >= _LOOK_AGAIN:
            self._model, self._age = model, 0
            self._listed = list(model.named_parameters())
        self._age += 1
        found = [(n, p.grad) for n, p in self._listed if p.grad is not None]
        if not found:
            self._age = _LOOK_AGAIN
            return None
        with torch.no_grad():
            each = norms_of([gradient for _, gradient in found])
            total = torch.linalg.vector_norm(each)
        return Norms(total, each, [name for name, _ in found])

    def forget(self) -> None:
        """Let go of the model."""
        self._model, self._listed = None, []


def norms_of(gradients: Sequence[Tensor]) -> Tensor:
    """Return the norm of each gradient as one tensor, on the first one's device."""
    import torch

    kinds = {(g.dtype, g.device, g.layout, type(g)) for g in gradients}
    if len(kinds) == 1 and _is_plain(gradients[0]):
        return torch.stack(_fused(gradients))
    groups: dict[Any, list[int]] = {}
    for place, gradient in enumerate(gradients):
        groups.setdefault(_kind(gradient), []).append(place)
    norms: list[Any] = [None] * len(gradients)
    for places in groups.values():
        dense = [_dense(gradients[place]) for place in places]
        for place, norm in zip(places, _fused(dense), strict=True):
            norms[place] = whole(norm)
    device = norms[0].device
    return torch.stack([norm.to(device, torch.float64) for norm in norms])


def _fused(gradients: Sequence[Tensor]) -> list[Tensor]:
    """Return the norms of gradients of one kind, in one call where there is one."""
    import torch

    half = gradients[0].dtype in (torch.float16, torch.bfloat16)
    dtype = torch.float32 if half else None
    try:
        return list(torch._foreach_norm(list(gradients), 2, dtype))  # noqa: SLF001 - a beta API
    except (AttributeError, NotImplementedError, RuntimeError, TypeError):
        return [torch.linalg.vector_norm(g, dtype=dtype) for g in gradients]


def _is_plain(gradient: Tensor) -> bool:
    import torch

    strided = gradient.layout is torch.strided
    return strided and gradient.is_floating_point() and not is_sharded(gradient)


def _kind(gradient: Tensor) -> tuple[Any, ...]:
    mesh = getattr(gradient, "device_mesh", None)
    return gradient.dtype, gradient.device, mesh


def _dense(gradient: Tensor) -> Tensor:
    """Return the gradient's values as a dense tensor of real numbers."""
    import torch

    if gradient.layout is not torch.strided:
        gradient = gradient.coalesce() if gradient.is_sparse else gradient
        gradient = gradient.values()
    return torch.view_as_real(gradient) if gradient.is_complex() else gradient


def is_sharded(tensor: object) -> bool:
    """Whether it is a DTensor: a tensor that lies on several ranks."""
    return hasattr(tensor, "full_tensor")


def whole(tensor: Any) -> Tensor:
    """Return a tensor of which every rank has all: a collective for a DTensor."""
    found: Tensor = tensor.full_tensor() if is_sharded(tensor) else tensor
    return found


def module_of(parameter: str) -> str:
    """Return the name of the module that a parameter belongs to.

    Example:
        >>> module_of("module.encoder.0.weight")
        'encoder.0'
    """
    parts = [p for p in parameter.split(".") if p not in _WRAPPERS]
    if parts[0] == "module":  # DistributedDataParallel
        parts = parts[1:]
    return ".".join(parts[:-1] or parts)


def modules_of(parameters: Iterable[str]) -> list[str]:
    """Return the modules of several parameters, each once, in order."""
    return list(dict.fromkeys(map(module_of, parameters)))
