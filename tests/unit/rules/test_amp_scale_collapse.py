from __future__ import annotations

import math
from typing import Any

import pytest

from tests.unit.rules.watching import losses, stop_step, stop_step_restarted, watch
from tune_guard import Keys
from tune_guard.rules import AmpScaleCollapse

TEN = AmpScaleCollapse(consecutive=10)


def flags(*runs: tuple[bool | None, int]) -> list[dict[str, Any]]:
    """Return reports of skipped steps, in runs of so many."""
    return losses([flag for flag, count in runs for _ in range(count)], "step_skipped")


def test_so_many_skipped_steps_in_a_row_stop_at_the_last() -> None:
    """The tenth of ten, and not the ninth."""
    assert stop_step(TEN, flags((True, 30))) == 9
    assert stop_step(TEN, flags((True, 9))) is None


def test_twenty_are_the_default() -> None:
    """From PyTorch's first scale, sixteen halvings lead to 1."""
    assert stop_step(AmpScaleCollapse(), flags((True, 40))) == 19


def test_a_step_that_was_taken_starts_the_count_anew() -> None:
    """The total does not matter: overflows come back every 2,000 steps."""
    assert stop_step(TEN, flags(*[(True, 9), (False, 1)] * 20)) is None
    assert stop_step(TEN, flags((True, 9), (False, 1), (True, 10))) == 19


def test_a_step_that_says_nothing_neither_counts_nor_resets() -> None:
    """Missing telemetry is neither healthy nor unhealthy."""
    assert stop_step(TEN, flags((True, 9), (None, 5), (True, 1))) == 14


def test_a_flag_may_be_a_number() -> None:
    """GradScaler's `found_inf` is 0.0 or 1.0."""
    assert stop_step(TEN, losses([1.0] * 10, "step_skipped")) == 9


@pytest.mark.parametrize(
    ("scales", "step"),
    [([2.0, 1.0, 0.5], 2), ([65536.0, 1.0, 1.0], None), ([math.nan, math.inf], None)],
)
def test_a_scale_under_the_limit_stops(scales: list[float], step: int | None) -> None:
    """Below 1 no scale is left; 1 itself is one, and NaN says nothing."""
    assert stop_step(AmpScaleCollapse(), losses(scales, "amp_scale")) == step


def test_the_limit_of_the_scale_can_be_moved_and_switched_off() -> None:
    """Fairseq gives up at 1e-4 only."""
    scales = losses([1.0, 1e-3, 1e-5], "amp_scale")
    assert stop_step(AmpScaleCollapse(min_scale=1e-4), scales) == 2
    assert stop_step(AmpScaleCollapse(min_scale=0.0), scales) is None


def test_it_has_no_warm_up() -> None:
    """Fatal rules are always armed."""
    assert stop_step(TEN, flags((True, 10)), warmup_steps=100) == 9


def test_reports_without_either_signal_are_passed_over() -> None:
    """Full precision has no scaler."""
    assert stop_step(AmpScaleCollapse(consecutive=1), losses([1.0] * 30)) is None


def test_the_finding_names_the_key_and_the_numbers() -> None:
    """Under the key that the trainer reports."""
    keys = Keys(step_skipped="opt/skipped", amp_scale="opt/scale")
    skipped = watch(
        AmpScaleCollapse(consecutive=2), [{"opt/skipped": True}] * 2, keys=keys
    )
    found = skipped[1].findings[0]
    assert (found.metric, found.value, found.threshold) == ("opt/skipped", 2.0, 2.0)
    assert "skipped 2 steps in a row" in found.message
    scaled = watch(AmpScaleCollapse(), [{"opt": {"scale": 0.25}}], keys=keys)
    found = scaled[0].findings[0]
    assert (found.metric, found.value, found.threshold) == ("opt/scale", 0.25, 1.0)


def test_the_count_survives_a_restart_after_every_report() -> None:
    """It is stored with the trial."""
    reports = flags((True, 5), (False, 1), (True, 10))
    assert stop_step_restarted(TEN, reports) == 15
