"""Relapse: exact steps of both windows, and what each hold keeps."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.unit.rules.watching import (
    losses,
    stop_step,
    stop_step_restarted,
    warn_steps,
    watch,
)
from tune_guard.exceptions import ConfigError
from tune_guard.rules import Relapse
from tune_guard.rules.curve_holds import RareReward, RateRestarted, RisingAgain

ACC = {"metric": "acc", "mode": "max", "budget_steps": 100}
RISE = [0.02 * i for i in range(40)]


def plain(**parameters: Any) -> Relapse:
    """Return the trigger without holds."""
    return Relapse(holds=(), **parameters)


class TestTrigger:
    """A level that was held and left."""

    def test_a_fall_stops_after_the_window(self) -> None:
        """A quarter of 100, a third of it for an accuracy: nine readings."""
        reports = losses([*RISE, *[0.4] * 60], key="acc")
        assert stop_step(plain(), reports, **ACC) == 48

    def test_a_reward_is_watched_three_times_as_long(self) -> None:
        """25 readings: past step 64 they lie two in a bucket, and 13 hold 26."""
        reports = losses([*RISE, *[0.4] * 60], key="reward")
        assert stop_step(plain(), reports, **ACC | {"metric": "reward"}) == 65

    def test_six_readings_are_the_least(self) -> None:
        """A twelfth of 30 is three."""
        reports = losses([*RISE[:15], *[0.1] * 15], key="acc")
        assert stop_step(plain(), reports, **ACC | {"budget_steps": 30}) == 20

    def test_a_level_that_was_touched_once_was_not_held(self) -> None:
        """One lucky reading of 0.9 on a way up."""
        values = [*RISE[:30], 0.9, *RISE[30:], *[0.78] * 40]
        assert stop_step(plain(), losses(values, key="acc"), **ACC) is None

    def test_a_level_within_the_reach_of_noise_is_not_lost(self) -> None:
        """0.5 lies 0.1 above the middle: twice that more falls short of 0.74."""
        fall = [0.5 if i % 5 == 4 else 0.4 for i in range(60)]
        reports = losses([*RISE, *fall], key="acc")
        assert stop_step(plain(margin=2), reports, **ACC) == 48
        assert stop_step(plain(margin=3), reports, **ACC) is None

    def test_one_reading_at_the_level_begins_a_new_window(self) -> None:
        """It was reached again at step 45: nine readings from 46 on."""
        values = [*RISE, *[0.4] * 5, 0.78, *[0.4] * 54]
        assert stop_step(plain(), losses(values, key="acc"), **ACC) == 54

    def test_a_trial_that_stays_at_its_level_goes_on(self) -> None:
        """Flat is not fallen."""
        reports = losses([*RISE, *[0.78] * 60], key="acc")
        assert stop_step(plain(), reports, **ACC) is None

    def test_a_trial_that_keeps_gaining_goes_on(self) -> None:
        """However noisy."""
        rng = random.Random(1)
        values = [0.01 * i + 0.2 * rng.random() for i in range(100)]
        assert stop_step(plain(), losses(values, key="acc"), **ACC) is None

    def test_readings_of_the_warm_up_are_in_no_window(self) -> None:
        """Nine readings from step 60 on, in buckets of two."""
        reports = losses([*RISE, *[0.4] * 60], key="acc")
        found = stop_step(plain(), reports, warmup_steps=60, **ACC)
        assert found == 69


class TestHolds:
    """Each alone against the trigger."""

    def test_a_rising_metric_is_held(self) -> None:
        """It fell at step 5 and has climbed since, quarter by quarter."""
        values = [0.9] * 5 + [0.1 + 0.005 * i for i in range(95)]
        reports = losses(values, key="acc")
        assert stop_step(plain(), reports, **ACC) == 13
        rule = Relapse(holds=(RisingAgain(),), window_ratio=0.5)
        assert stop_step(plain(window_ratio=0.5), reports, **ACC) == 21
        assert stop_step(rule, reports, **ACC) is None

    def test_rare_rewards_are_held(self) -> None:
        """A streak of luck early, then nothing but single successes."""
        values = [1.0] * 6 + ([0.0] * 39 + [1.0]) * 10
        fields = {"metric": "reward", "mode": "max", "budget_steps": 400}
        reports = losses(values, key="reward")
        rule = plain(window_ratio=0.05)
        assert stop_step(rule, reports, **fields) == 25
        rule = Relapse(holds=(RareReward(),), window_ratio=0.05)
        assert stop_step(rule, reports, **fields) is None

    def test_a_restarted_learning_rate_holds_until_it_has_come_down(self) -> None:
        """It falls to 0.01, restarts at 0.1 with the level, and never gets back."""
        rates = [0.1] * 20 + [0.01] * 20 + [0.1] * 20 + [0.01] * 40
        values = [*RISE, *[0.4] * 60]
        reports = [
            {"acc": value, "lr": rate}
            for value, rate in zip(values, rates, strict=True)
        ]
        rule = Relapse(holds=(RateRestarted(),))
        assert warn_steps(rule, reports, **ACC) == [48]
        assert stop_step(rule, reports, **ACC) == 60

    def test_a_rate_that_only_falls_or_ramps_up_holds_nothing(self) -> None:
        """As many schedules do once, at their start."""
        values = [*RISE, *[0.4] * 60]
        ramp = [0.001 * (i + 1) for i in range(100)]
        for rates in (ramp, ramp[::-1]):
            reports = [
                {"acc": value, "lr": rate}
                for value, rate in zip(values, rates, strict=True)
            ]
            assert stop_step(Relapse(holds=(RateRestarted(),)), reports, **ACC) == 48

    def test_a_held_trigger_warns_once(self) -> None:
        """And not at every report."""
        values = [0.9] * 5 + [0.1 + 0.005 * i for i in range(95)]
        rule = Relapse(holds=(RisingAgain(),), window_ratio=0.5)
        assert warn_steps(rule, losses(values, key="acc"), **ACC) == [21]


def test_numbers_are_shown_as_they_were_reported() -> None:
    """A minimised metric keeps its sign."""
    values = [3.0 - 0.05 * i for i in range(40)] + [2.5] * 60
    cause = watch(Relapse(), losses(values), budget_steps=100)[-1].cause
    assert cause is not None
    assert (cause.value, cause.threshold) == (2.5, pytest.approx(1.15))
    assert "loss once held 1.15" in cause.message


@pytest.mark.parametrize("seed", range(4))
def test_a_restart_before_every_report_changes_nothing(seed: int) -> None:
    """The same step on a noisy fall."""
    rng = random.Random(seed)
    values = [x + 0.02 * rng.random() for x in [*RISE, *[0.3] * 60]]
    reports = losses(values, key="acc")
    found = stop_step(Relapse(), reports, **ACC)
    assert found is not None
    assert stop_step_restarted(Relapse(), reports, **ACC) == found


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"window_ratio": -1}, "`window_ratio` must be >= 0, but got -1"),
        ({"margin": -2}, "`margin` must be >= 0, but got -2"),
        ({"margin": float("nan")}, "`margin` must be >= 0, but got nan"),
        ({"holds": [1]}, "`holds` must be a tuple of holds"),
    ],
)
def test_a_wrong_parameter_is_named(parameters: dict[str, Any], message: str) -> None:
    """In the error at construction."""
    with pytest.raises(ConfigError, match=message):
        Relapse(**parameters)
