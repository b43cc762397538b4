from __future__ import annotations

import torch
from torch import nn

from tests.unit.worker.support import NAN, chain
from tune_guard.worker.first_bad import by_outputs
from tune_guard.worker.trace import OutputTrace


class Two(nn.Module):
    """A leaf with several outputs, one of them bad."""

    def forward(self, inputs: torch.Tensor) -> dict[str, object]:
        """Return a nest of tensors."""
        bad = inputs * NAN
        return {"ok": inputs, "more": (inputs, [bad]), "index": torch.tensor(1)}


def test_outputs_are_noted_in_call_order() -> None:
    """Leaf modules only, by name."""
    model, trace = chain(2, 2, 2), OutputTrace()
    trace.watch(model)
    model(torch.ones(1, 2))
    assert [name for name, _ in trace.take()] == ["0", "1"]
    assert trace.take() == []


def test_evaluation_is_not_noted() -> None:
    """Without gradients nothing is trained, and nothing is kept."""
    model, trace = chain(2, 2), OutputTrace()
    trace.watch(model)
    with torch.no_grad():
        model(torch.ones(1, 2))
    assert trace.take() == []


def test_nested_outputs_are_looked_into() -> None:
    """A bad tensor deep in a dictionary is found."""
    model, trace = nn.ModuleDict({"two": Two()}), OutputTrace()
    trace.watch(model)
    model["two"](torch.ones(1))
    assert by_outputs(trace.take()) == "The output of `two` went first."


def test_a_model_is_hooked_once() -> None:
    """Watching it at every step adds nothing."""
    model, trace = chain(2, 2), OutputTrace()
    for _ in range(3):
        trace.watch(model)
    assert len(model[0]._forward_hooks) == 1


def test_another_model_takes_the_hooks_over() -> None:
    """The one before is let go."""
    first, second, trace = chain(2, 2), chain(2, 2), OutputTrace()
    trace.watch(first)
    trace.watch(second)
    assert not first[0]._forward_hooks
    assert second[0]._forward_hooks
