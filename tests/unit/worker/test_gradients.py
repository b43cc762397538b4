from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from tests.unit.worker.support import INF, NAN, backward, chain
from tune_guard.worker.gradients import GradientNorm, module_of, modules_of


def measured(model: nn.Module) -> float:
    """Return the norm of a model's gradients."""
    norms = GradientNorm().measure(model)
    assert norms is not None
    return norms.total.item()


def looped(model: nn.Module) -> float:
    """Return it the slow way: one parameter after the other."""
    norms = [p.grad.norm(2).item() for p in model.parameters() if p.grad is not None]
    return math.hypot(*norms)


def test_the_norm_is_that_of_all_gradients_together() -> None:
    """As ``clip_grad_norm_`` computes it."""
    model = chain(5, 7, 3)
    backward(model)
    assert measured(model) == pytest.approx(looped(model))


def test_each_gradient_has_its_norm() -> None:
    """In the order of the model's parameters, by name."""
    model = chain(2, 3)
    backward(model)
    norms = GradientNorm().measure(model)
    assert norms is not None
    assert list(norms.names) == ["0.weight", "0.bias"]
    each = [p.grad.norm() for p in model.parameters() if p.grad is not None]
    torch.testing.assert_close(norms.each, torch.stack(each))


def test_frozen_parameters_do_not_count() -> None:
    """They have no gradient."""
    model = chain(2, 3, 1)
    model[0].requires_grad_(requires_grad=False)
    backward(model)
    norms = GradientNorm().measure(model)
    assert norms is not None
    assert list(norms.names) == ["1.weight", "1.bias"]


def test_a_model_without_gradients_has_no_norm() -> None:
    """None, not 0: nothing was measured."""
    assert GradientNorm().measure(chain(2, 3)) is None


def test_parameters_that_are_thawed_later_count() -> None:
    """A gradient counts from the step in which it first comes."""
    model, norm = chain(2, 3, 1), GradientNorm()
    model[0].requires_grad_(requires_grad=False)
    backward(model)
    norm.measure(model)
    model[0].requires_grad_(requires_grad=True)
    backward(model)
    norms = norm.measure(model)
    assert norms is not None
    assert len(norms.names) == 4


def test_parameters_that_are_added_count_within_a_hundred_steps() -> None:
    """The list of parameters is made anew now and then, not every step."""
    model, norm = chain(2, 3), GradientNorm()
    backward(model)
    norm.measure(model)
    model.append(nn.Linear(3, 1))
    backward(model)
    found = [norm.measure(model) for _ in range(101)]
    assert found[-1] is not None
    assert len(found[-1].names) == 4


@pytest.mark.parametrize("bad", [NAN, INF, -INF])
def test_one_bad_element_makes_the_norm_bad(bad: float) -> None:
    """Wherever it is."""
    model = chain(5, 7, 3)
    backward(model)
    assert model[1].weight.grad is not None
    model[1].weight.grad[2, 3] = bad
    assert not math.isfinite(measured(model))


def test_a_sparse_gradient_counts_by_its_coalesced_values() -> None:
    """Two rows of the same word add up before they are measured."""
    embedding = nn.Embedding(4, 1, sparse=True)
    embedding(torch.tensor([1, 1, 2])).sum().backward()
    assert measured(embedding) == pytest.approx(math.hypot(2.0, 1.0))


def test_sparse_and_dense_gradients_count_together() -> None:
    """Of one model."""
    model = nn.Sequential(nn.Embedding(4, 2, sparse=True), nn.Linear(2, 1))
    model(torch.tensor([0, 3])).sum().backward()
    dense = nn.Sequential(nn.Embedding(4, 2), nn.Linear(2, 1))
    dense.load_state_dict(model.state_dict())
    dense(torch.tensor([0, 3])).sum().backward()
    assert measured(model) == pytest.approx(looped(dense))


def test_a_complex_gradient_counts_by_its_modulus() -> None:
    """Real and imaginary parts alike."""
    model = nn.ParameterList([nn.Parameter(torch.tensor([1 + 1j]))])
    model[0].grad = torch.tensor([3 + 4j])
    assert measured(model) == pytest.approx(5.0)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_gradients_do_not_overflow(dtype: torch.dtype) -> None:
    """Their squares are summed in float32."""
    model = nn.ParameterList([nn.Parameter(torch.ones(100, dtype=dtype))])
    model[0].grad = torch.full((100,), 60000.0, dtype=dtype)
    assert measured(model) == pytest.approx(600000.0, rel=0.01)


def test_gradients_of_several_types_count_together() -> None:
    """Double, single and half precision in one model."""
    kinds = (torch.float64, torch.float32, torch.bfloat16)
    model = nn.ParameterList(nn.Parameter(torch.ones(1, dtype=k)) for k in kinds)
    for parameter in model:
        parameter.grad = torch.full_like(parameter, 2.0)
    assert measured(model) == pytest.approx(math.sqrt(12.0))


def test_measuring_leaves_the_gradients_alone() -> None:
    """And builds no graph."""
    model = chain(2, 3)
    backward(model)
    before = [p.grad.clone() for p in model.parameters() if p.grad is not None]
    norms = GradientNorm().measure(model)
    assert norms is not None
    assert not norms.total.requires_grad
    after = [p.grad for p in model.parameters() if p.grad is not None]
    assert all(torch.equal(a, b) for a, b in zip(before, after, strict=True))


@pytest.mark.parametrize(
    ("parameter", "module"),
    [
        ("encoder.0.weight", "encoder.0"),
        ("module.encoder.0.weight", "encoder.0"),
        ("_orig_mod.module.head.bias", "head"),
        ("layers.0._fsdp_wrapped_module.linear.weight", "layers.0.linear"),
        ("submodule.weight", "submodule"),
        ("scale", "scale"),
    ],
)
def test_a_module_is_named_as_in_the_users_model(parameter: str, module: str) -> None:
    """Without what wrappers put into the name."""
    assert module_of(parameter) == module


def test_each_module_is_named_once() -> None:
    """In the order of its parameters."""
    assert modules_of(["a.weight", "a.bias", "b.weight"]) == ["a", "b"]
