"""Which module's output went bad first: forward hooks, only when asked for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from tune_guard.worker.gradients import module_of

if TYPE_CHECKING:
    from torch import Tensor, nn

_MOST_OUTPUTS = 4096


class OutputTrace:
    """Note for each leaf module's output whether all of it is finite.

    The notes stay on the device until somebody asks. It reads every output once
    more, which costs time in proportion to the activations: for hunting a fault,
    not for every run.
    """

    def __init__(self) -> None:
        self._handles: list[Any] = []
        self._model: nn.Module | None = None
        self._notes: list[tuple[str, Tensor]] = []

    def watch(self, model: nn.Module) -> None:
        """Hook into a model's leaf modules; once per model."""
        if model is self._model:
            return
        self.close()
        self._model = model
        for name, module in model.named_modules():
            if not any(module.children()):
                self._handles.append(
                    module.register_forward_hook(self._hook(_plain(name)))
                )

    def _hook(self, name: str) -> Any:
        def note(_module: nn.Module, _inputs: Any, output: Any) -> None:
            import torch

            if len(self._notes) >= _MOST_OUTPUTS or not torch.is_grad_enabled():
                return
            with torch.no_grad():
                for tensor in _tensors(output):
                    self._notes.append((name, torch.isfinite(tensor).all()))

        return note

    def take(self) -> list[tuple[str, Tensor]]:
        """Return the notes since the last call, in the order of the calls."""
        notes, self._notes = self._notes, []
        return notes

    def close(self) -> None:
        """Take the hooks off."""
        for handle in self._handles:
            handle.remove()
        self._handles, self._model, self._notes = [], None, []


def _plain(name: str) -> str:
    """Return a module's name without what wrappers put into it."""
    return module_of(f"{name}.output") if name else "the model"


def _tensors(output: Any) -> Iterator[Tensor]:
    """Yield the tensors of real numbers in a module's output."""
    import torch

    if isinstance(output, torch.Tensor):
        if output.is_floating_point():
            yield output
    elif isinstance(output, (tuple, list)):
        for part in output:
            yield from _tensors(part)
    elif isinstance(output, dict):
        for part in output.values():
            yield from _tensors(part)
