from __future__ import annotations

import math
from typing import Any

import pytest

from tune_guard import ConfigError, Keys, Policy
from tune_guard.ray.report_callback import GuardReportCallback, worst_of
from tune_guard.record import StopRecord
from tune_guard.row_stamp import RUNNING, to_row
from tune_guard.verdict import Blame

NAN = float("nan")
POLICY = Policy.default("val_loss", "min")


def reduced(*reports: dict[str, Any], policy: Policy = POLICY) -> dict[str, Any]:
    """Return the row that Tune sees."""
    return worst_of(reports, policy)


def test_healthy_ranks_report_what_rank_zero_says() -> None:
    """Nothing is added."""
    assert reduced({"val_loss": 0.5, "n": 3}, {"val_loss": 0.6, "n": 4}) == {
        "val_loss": 0.5,
        "n": 3,
    }


@pytest.mark.parametrize("key", ["val_loss", "loss", "train/loss"])
def test_a_nan_of_any_rank_is_seen(key: str) -> None:
    """In the metric and in the loss, whatever key it has."""
    row = reduced({"val_loss": 0.5, key: 0.5}, {key: 0.5}, {key: NAN})
    assert math.isnan(row[key])
    assert row["worst_rank"] == 2


def test_a_rank_without_the_metric_is_none() -> None:
    """It neither hides nor spoils the others'."""
    assert reduced({"val_loss": 0.5}, {}) == {"val_loss": 0.5}


@pytest.mark.parametrize(
    ("key", "first", "second", "worst"),
    [
        ("grad_norm", 1.0, 9.0, 9.0),
        ("step_time_s", 0.1, 0.4, 0.4),
        ("gpu_temperature_celsius", 60.0, 90.0, 90.0),
        ("gpu_thermal_ratio", 0.0, 1.0, 1.0),
        ("gpu_clock_mhz", 1980.0, 1200.0, 1200.0),
        ("amp_scale", 1024.0, 2.0, 2.0),
        ("gpu_xid", None, 79, 79),
        ("gpu_lost", None, True, True),
    ],
)
def test_the_worst_of_each_signal_is_passed_on(
    key: str, first: Any, second: Any, worst: Any
) -> None:
    """With the rank that it comes from."""
    row = reduced({key: first}, {key: second})
    assert (row[key], row["worst_rank"]) == (worst, 1)
    assert reduced({key: second}, {key: first})[key] == worst


def test_a_norm_that_is_not_finite_is_the_worst() -> None:
    """Higher than any number."""
    row = reduced({"grad_norm": 5.0}, {"grad_norm": NAN}, {"grad_norm": 7.0})
    assert math.isnan(row["grad_norm"])
    assert row["worst_rank"] == 1


def test_the_bits_of_all_gpus_are_joined() -> None:
    """The power cap of one and the heat of another."""
    assert reduced({"gpu_reasons": 4}, {"gpu_reasons": 0x20})["gpu_reasons"] == 0x24
    texts = reduced({"gpu_reasons": "0x04"}, {"gpu_reasons": "0x20"})
    assert texts["gpu_reasons"] == 0x24


def test_an_overflow_of_one_rank_excuses_no_other() -> None:
    """Only where all skipped was the step skipped."""
    both = {"step_skipped": True}
    assert reduced(both, both)["step_skipped"] is True
    assert reduced(both, {"step_skipped": False})["step_skipped"] is False


def test_the_gpu_of_the_worst_rank_is_named() -> None:
    """Not rank 0's."""
    row = reduced(
        {"gpu_uuid": "GPU-a", "grad_norm": 1.0}, {"gpu_uuid": "GPU-b", "grad_norm": NAN}
    )
    assert row["gpu_uuid"] == "GPU-b"


def test_a_stop_of_the_workers_ends_the_trial() -> None:
    """The record is passed on, and Tune told that the trial is done."""
    record = StopRecord(reason="non_finite", blame=Blame.CONFIG, message="x")
    stopped = {"val_loss": 0.5, **to_row(record)}
    row = reduced({"val_loss": 0.5, **RUNNING}, stopped)
    assert (row["done"], row["tune_guard/reason"]) == (True, "non_finite")


def test_the_policys_keys_are_followed() -> None:
    """A signal under another name is reduced there."""
    policy = Policy(metric="m", mode="max", keys=Keys(grad_norm="optim/norm"))
    row = reduced({"optim/norm": 1.0}, {"optim/norm": 3.0}, policy=policy)
    assert row["optim/norm"] == 3.0


def test_it_is_made_in_a_tune_function() -> None:
    """Elsewhere there is no trial to report to; and a policy needs a mode."""
    with pytest.raises(RuntimeError, match="Tune session"):
        GuardReportCallback(POLICY)
    with pytest.raises(ConfigError, match="mode"):
        GuardReportCallback(Policy.default("val_loss"))
