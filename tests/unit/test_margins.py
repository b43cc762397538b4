"""How near a rule's trigger is, for display."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tune_guard import Monitor, Policy
from tune_guard.rules import (
    AmpScaleCollapse,
    Divergence,
    GradientExplosion,
    LearningRateFloor,
    NonFinite,
    Plateau,
    SlowStep,
    ThermalThrottle,
)
from tune_guard.rules.base import Rule

WARM = [{"loss": 1.0, "grad_norm": 1.0, "step_time_s": 1.0, "lr": 0.1}] * 12


@pytest.mark.parametrize(
    ("rule", "reports", "margins"),
    [
        (
            Plateau(patience=4, holds=()),
            [{"loss": 1.0}] * 5,
            [0.0, 0.25, 0.5, 0.75, 1.0],
        ),
        (
            NonFinite(consecutive=2),
            [{"loss": 1.0}, *[{"loss": math.nan}] * 2],
            [0.0, 0.5, 1.0],
        ),
        (
            AmpScaleCollapse(consecutive=2),
            [{"step_skipped": False}, *[{"step_skipped": True}] * 2],
            [0.0, 0.5, 1.0],
        ),
        (
            SlowStep(consecutive=2),
            [*WARM, *[{"step_time_s": 9.0}] * 2],
            [*[0.0] * 12, 0.5, 1.0],
        ),
        (
            Divergence(consecutive=2, holds=()),
            [*WARM, *[{"loss": 99.0}] * 2],
            [*[0.0] * 12, 0.5, 1.0],
        ),
        (
            GradientExplosion(k=2, holds=()),
            [*WARM, *[{"grad_norm": 99.0}] * 2],
            [*[0.0] * 12, 0.5, 1.0],
        ),
        (
            LearningRateFloor(floor=0.01, consecutive=2, holds=()),
            [{"lr": 0.1}, {"lr": 0.01}, {"lr": 0.01}],
            [0.0, 0.5, 1.0],
        ),
        (
            ThermalThrottle(consecutive=2, holds=()),
            [{"gpu_reasons": 0}, {"gpu_reasons": 0x40}, {"gpu_reasons": 0x40}],
            [0.0, 0.5, 1.0],
        ),
    ],
    ids=lambda value: value.id if isinstance(value, Rule) else "",
)
def test_a_margin_rises_to_one_where_the_rule_fires(
    rule: Any, reports: list[dict[str, Any]], margins: list[float]
) -> None:
    """Step by step, and the cut comes with the one."""
    monitor = Monitor(Policy(metric="loss", mode="min", rules=(rule,)))
    found, stops = [], []
    for step, report in enumerate(reports):
        stops.append(monitor.observe(step, report).stop)
        found.append(monitor.margins()[rule.id])
    assert found == margins
    assert stops == [margin == 1.0 for margin in margins]


def test_rules_whose_state_does_not_tell_are_left_out() -> None:
    """The default policy has some of both kinds."""
    margins = Monitor(Policy.default("loss", "min")).margins()
    assert set(margins.values()) == {0.0}
    assert "non_finite" in margins
    assert "gpu_fault" not in margins
