from __future__ import annotations

import pytest
import torch

from tests.unit.worker.support import INF, NAN, backward, chain, guarded
from tune_guard.rules import GradientExplosion, NonFinite
from tune_guard.worker import first_bad


def poison(model: torch.nn.Sequential, *layers: int, value: float = NAN) -> None:
    """Put one bad element into the gradients of some layers."""
    for layer in layers:
        gradient = model[layer].weight.grad
        assert gradient is not None
        gradient[0, 0] = value


def test_the_module_nearest_to_the_loss_went_first() -> None:
    """Gradients flow backwards: from layer 2 they spoil 1 and 0."""
    model = chain(3, 3, 3, 3)
    backward(model)
    poison(model, 0, 1)
    told = first_bad.by_gradients(model)
    assert told == "The gradient of `1` went first, of 2 modules with bad gradients."


def test_a_single_bad_module_is_named_alone() -> None:
    """No others to speak of."""
    model = chain(3, 3, 3)
    backward(model)
    poison(model, 0, value=INF)
    assert first_bad.by_gradients(model) == "The gradient of `0` went first."


def test_healthy_gradients_say_nothing() -> None:
    """There is no first one."""
    model = chain(3, 3)
    backward(model)
    assert first_bad.by_gradients(model) == ""
    assert first_bad.by_gradients(chain(3, 3)) == ""


def test_where_all_are_bad_the_origin_is_not_guessed() -> None:
    """A bad loss spoils every gradient, and so does clipping by a bad norm."""
    model = chain(3, 3, 3)
    backward(model, NAN)
    assert first_bad.by_gradients(model).startswith("All gradients are bad")


def test_bad_weights_are_named() -> None:
    """The first module in the model's order, and how many more."""
    model = chain(3, 3, 3)
    assert first_bad.by_weights(model) == "All weights are still finite."
    with torch.no_grad():
        model[1].bias[0] = NAN
    assert first_bad.by_weights(model) == "The weights of `1` are bad."
    for parameter in model.parameters():
        parameter.data.fill_(NAN)
    assert first_bad.by_weights(model).startswith("All weights are bad")


def test_outputs_are_looked_at_in_call_order() -> None:
    """The first that is not finite is named."""
    yes, no = torch.tensor(data=True), torch.tensor(data=False)
    outputs = [("embed", yes), ("block.3", no), ("head", no)]
    assert first_bad.by_outputs(outputs) == "The output of `block.3` went first."
    assert first_bad.by_outputs([("embed", yes)]) == ""
    assert first_bad.by_outputs([]) == ""


def test_a_small_growth_names_nobody() -> None:
    """Under three times the usual norm says nothing."""
    assert first_bad.by_growth(["a.weight"], [2.0], [1.0]) == ""
    assert first_bad.by_growth(["a.weight"], [2.0], [0.0]) == ""


def test_the_share_of_nothing_names_nobody() -> None:
    """Neither zeros nor infinities have a share."""
    assert first_bad.by_share(["a.weight"], [0.0]) == ""
    assert first_bad.by_share(["a.weight"], [INF]) == ""


def test_the_verdict_names_the_module() -> None:
    """Measured by the guard, the step's own norms say which."""
    guard, model = guarded(NonFinite(norm_alone=0)), chain(3, 3, 3, 3)
    loss = backward(model)
    poison(model, 0, 1)
    verdict = guard.check_step(loss, model)
    assert "The gradient of `1` went first" in verdict.message
    assert "The gradient of `1` went first" in guard.record().message


def test_the_first_bad_step_is_the_one_that_is_told() -> None:
    """A bad norm warns; the loss that it spoils stops, and names the step before."""
    guard, model = guarded(), chain(3, 3, 3)
    guard.check_step(backward(model), model)
    loss = backward(model)
    poison(model, 0)
    assert not guard.check_step(loss, model).stop
    verdict = guard.check_step(backward(model, NAN), model)
    assert verdict.step == 2
    assert "Step 1: The gradient of `0` went first." in verdict.message


def test_a_healthy_step_ends_the_row() -> None:
    """A bad norm that came to nothing is not told later."""
    guard, model = guarded(), chain(3, 3, 3)
    loss = backward(model)
    poison(model, 0)
    guard.check_step(loss, model)
    guard.check_step(backward(model), model)
    verdict = guard.check_step(backward(model, NAN), model)
    assert "`0`" not in verdict.message


def test_clipping_through_the_guard_keeps_the_trace() -> None:
    """Afterwards every gradient is NaN, but the norms are from before."""
    guard, model = guarded(NonFinite(norm_alone=0)), chain(3, 3, 3)
    loss = backward(model)
    poison(model, 0)
    guard.clip_grad_norm_(model, 1.0)
    verdict = guard.check_step(loss, model)
    assert "The gradient of `0` went first." in verdict.message


def test_clipping_through_the_guard_is_the_usual_one() -> None:
    """Same norm, same gradients as torch's own."""
    ours, theirs = chain(3, 3), chain(3, 3)
    backward(ours)
    backward(theirs)
    norm = guarded().clip_grad_norm_(ours, 0.1)
    expected = torch.nn.utils.clip_grad_norm_(theirs.parameters(), 0.1)
    assert norm.item() == pytest.approx(expected.item())
    for mine, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert mine.grad is not None
        assert other.grad is not None
        torch.testing.assert_close(mine.grad, other.grad)


def test_an_explosion_names_the_module_that_grew() -> None:
    """Measured against its own usual norm, not by size."""
    rule = GradientExplosion(min_history=5, k=1, holds=())
    guard, model = guarded(rule), chain(3, 3, 3)
    for _ in range(6):
        guard.check_step(backward(model), model)
    loss = backward(model)
    gradient = model[0].weight.grad
    assert gradient is not None
    gradient.mul_(1000.0)
    verdict = guard.check_step(loss, model)
    assert verdict.reason == "gradient_explosion"
    assert "The gradient of `0` grew most" in verdict.message


def test_an_explosion_of_given_norms_names_the_largest() -> None:
    """Without a history of each gradient, its share is what can be told."""
    rule = GradientExplosion(min_history=5, k=1, holds=())
    guard, model = guarded(rule), chain(3, 3, 3)
    for _ in range(6):
        guard.check_step(1.0, model, grad_norm=1.0)
    backward(model)
    gradient = model[1].weight.grad
    assert gradient is not None
    gradient.mul_(1000.0)
    verdict = guard.check_step(1.0, model, grad_norm=1000.0)
    assert "The gradient of `1` is the largest" in verdict.message


def test_a_look_that_fails_leaves_the_verdict(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The reason is the reason, with or without the module."""
    monkeypatch.setattr(first_bad, "by_weights", lambda _: 1 / 0)
    guard, model = guarded(), chain(3, 3)
    verdict = guard.check_step(backward(model, NAN), model)
    assert verdict.reason == "non_finite"
