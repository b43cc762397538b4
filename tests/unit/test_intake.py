"""Which reports are observations: new steps, moved markers, nothing to ignore."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from tests.unit.probes import Probe, feed, steps_of, watch
from tune_guard.rules import NonFinite, Plateau


def test_a_step_that_was_seen_is_no_observation() -> None:
    """Conventions: state goes on at new steps only, and repetition is named once."""
    monitor = watch(Probe())
    feed(monitor, {0: 1.0, 1: 1.0})
    monitor.observe(1, {"loss": 99.0})
    monitor.observe(0, {"loss": 99.0})
    assert steps_of(monitor) == [0, 1]
    assert list(monitor.notices.messages) == ["repeated"]


@pytest.mark.parametrize(
    "step", [3, 3.0, 3.9, " 3", np.int64(3), np.array([3]), torch.tensor(3)]
)
def test_a_step_in_any_wrapping_is_a_whole_number(step: Any) -> None:
    """The record holds a plain int, which every storage takes."""
    monitor = watch(NonFinite())
    monitor.observe(step, {"loss": math.nan})
    assert type(monitor.verdict.step) is int
    assert monitor.verdict.step == 3


@pytest.mark.parametrize("step", [math.nan, math.inf, "abc", True, object(), [1, 2]])
def test_a_step_that_is_no_number_is_named_once(step: Any) -> None:
    """Such reports are passed over, and the next is judged."""
    monitor = watch(NonFinite())
    assert not monitor.observe(step, {"loss": math.nan}).stop
    assert list(monitor.notices.messages) == ["step"]
    assert feed(monitor, {0: math.nan}) == [0]


def test_signals_between_reports_count_for_the_last_step() -> None:
    """They neither advance the step nor repeat it."""
    monitor = watch(NonFinite(metrics=("norm",)))
    monitor.observe(None, {"norm": 1.0})
    monitor.observe(4, {"loss": 1.0})
    assert monitor.observe(None, {"norm": math.nan}).step == 4
    assert monitor.notices.messages == {}


@pytest.mark.parametrize(
    "markers",
    [
        [0, 0, 5, 5],
        ["a", "a", "b", "b"],
        [False, False, True, True],
        [np.int64(0), 0, 5.0, torch.tensor(5)],
        [0, None, 5, math.nan],
        [0, math.inf, 5, -math.inf],
    ],
    ids=str,
)
def test_a_value_counts_only_when_its_marker_moved(markers: list[Any]) -> None:
    """The same number under an unmoved marker is a copy."""
    monitor = watch(Plateau(patience=2, holds=()), fresh_key="eval_epoch")
    for step, marker in enumerate(markers):
        monitor.observe(step, {"loss": 1.0, "eval_epoch": marker})
    assert monitor.state()["rules"]["plateau"][0] == 1


def test_the_marker_may_lie_nested_and_have_blanks() -> None:
    """It is found as any other key is."""
    monitor = watch(Plateau(patience=1, holds=()), fresh_key=" eval/epoch ")
    stops = [
        monitor.observe(i, {"loss": 1.0, "eval": {"epoch ": i // 2}}).stop
        for i in range(3)
    ]
    assert stops == [False, False, True]


def test_a_copy_is_no_loss_either_where_the_metric_is_the_loss() -> None:
    """A rule on the loss must not take copies for readings."""
    monitor = watch(NonFinite(metrics=("loss",), consecutive=2), fresh_key="epoch")
    for step in range(3):
        monitor.observe(step, {"loss": math.nan, "epoch": 0})
    assert not monitor.verdict.stop


def test_a_copied_metric_leaves_another_loss_alone() -> None:
    """Only the metric is carried forward; the loss is of its own step."""
    monitor = watch(NonFinite(), metric="val_loss", fresh_key="epoch")
    monitor.observe(0, {"val_loss": 1.0, "loss": 1.0, "epoch": 0})
    assert monitor.observe(1, {"val_loss": 1.0, "loss": math.nan, "epoch": 0}).stop


def test_signals_before_the_first_report_count_for_step_0() -> None:
    """A gradient may be NaN before anything was reported."""
    monitor = watch(NonFinite(metrics=("norm",)))
    assert monitor.observe(None, {"norm": math.nan}).step == 0


def test_reports_to_ignore_are_not_judged() -> None:
    """A sanity check before training may hold anything."""
    monitor = watch(NonFinite(), ignore_where={"phase": "sanity", "a/b": True})
    report = {"loss": math.nan, "phase": "sanity", "a": {"b": np.bool_(True)}}
    assert not monitor.observe(0, report).stop
    assert monitor.observe(0, {**report, "a": {}}).stop


def test_an_array_where_a_text_was_expected_is_not_to_ignore() -> None:
    """What cannot be compared is not the same."""
    monitor = watch(NonFinite(), ignore_where={"phase": "sanity"})
    assert monitor.observe(0, {"loss": math.nan, "phase": np.array([1, 2])}).stop
