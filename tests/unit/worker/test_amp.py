from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.unit.worker.support import INF, NAN
from tune_guard.worker import amp


@pytest.fixture
def scaler() -> torch.amp.GradScaler:
    """Return a scaler that has scaled something."""
    made = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=1)
    made.scale(torch.ones(()))
    return made


def optimizer_with(gradient: float, scaler: torch.amp.GradScaler) -> Any:
    """Return an optimizer of one parameter whose gradient is scaled."""
    parameter = torch.nn.Parameter(torch.zeros(1))
    parameter.grad = torch.tensor([gradient]) * scaler.get_scale()
    return torch.optim.SGD([parameter], lr=0.1)


def test_the_scale_is_a_copy(scaler: torch.amp.GradScaler) -> None:
    """``update`` changes the scaler's own tensor in place."""
    scale = amp.scale_of(scaler)
    optimizer = optimizer_with(1.0, scaler)
    scaler.step(optimizer)
    scaler.update()
    assert (float(scale), scaler.get_scale()) == (1024.0, 2048.0)


def test_a_scaler_that_is_off_says_nothing() -> None:
    """Nor does one that is not there."""
    assert not amp.is_scaling(torch.amp.GradScaler("cpu", enabled=False))
    assert not amp.is_scaling(None)


def test_unscaled_gradients_are_recognised(scaler: torch.amp.GradScaler) -> None:
    """After ``unscale_`` the norm is the true one; ``update`` begins anew."""
    optimizer = optimizer_with(1.0, scaler)
    assert not amp.is_unscaled(scaler)
    scaler.unscale_(optimizer)
    assert amp.is_unscaled(scaler)
    scaler.step(optimizer)
    scaler.update()
    assert not amp.is_unscaled(scaler)


def test_a_scaled_norm_is_divided_by_the_scale() -> None:
    """A norm taken before ``unscale_`` is too large by the scale."""
    numbers = {"grad_norm": 2048.0, "amp_scale": 1024.0}
    assert amp.ScaleWatch().signals(numbers, scaled_norm=True)["grad_norm"] == 2.0
    assert amp.ScaleWatch().signals(numbers, scaled_norm=False)["grad_norm"] == 2048.0


@pytest.mark.parametrize("norm", [NAN, INF])
def test_a_bad_norm_is_a_skipped_step(norm: float) -> None:
    """The scaler sees the same gradients and skips."""
    numbers = {"grad_norm": norm, "amp_scale": 1024.0}
    assert amp.ScaleWatch().signals(numbers, scaled_norm=True)["step_skipped"]


def test_the_scaler_does_skip_such_a_step(scaler: torch.amp.GradScaler) -> None:
    """What the rule above rests on."""
    optimizer = optimizer_with(INF, scaler)
    before = optimizer.param_groups[0]["params"][0].clone()
    scaler.step(optimizer)
    scaler.update()
    assert torch.equal(optimizer.param_groups[0]["params"][0], before)
    assert scaler.get_scale() == 512.0


def test_without_a_norm_a_falling_scale_says_it_one_step_later() -> None:
    """All that a loop without norms lets one see."""
    watch = amp.ScaleWatch()
    scales = [1024.0, 1024.0, 512.0, 1024.0]
    found = [watch.signals({"amp_scale": s}, scaled_norm=False) for s in scales]
    assert [signals.get("step_skipped") for signals in found] == [
        None,
        False,
        True,
        False,
    ]


def test_a_foreign_scaler_is_asked_for_its_scale() -> None:
    """One that has ``get_scale`` alone."""

    class Foreign:
        def get_scale(self) -> float:
            return 256.0

    assert amp.is_scaling(Foreign())
    assert amp.scale_of(Foreign()) == 256.0
    assert not amp.is_unscaled(Foreign())
