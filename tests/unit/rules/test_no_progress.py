"""NoProgress: exact steps of the trigger, and what must not fire it."""

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
from tune_guard.rules import NoProgress
from tune_guard.rules.curve_holds import NearCeiling, NothingYet, RateRamp

ACC = {"metric": "acc", "mode": "max", "budget_steps": 100}


def plain(**parameters: Any) -> NoProgress:
    """Return the trigger without holds."""
    return NoProgress(holds=(), **parameters)


class TestTrigger:
    """Never left its start, and flat now."""

    def test_a_stuck_classifier_stops_once_the_window_is_past(self) -> None:
        """A tenth of 100 readings is 10, and there must be more than those."""
        reports = losses([0.1] * 100, key="acc")
        assert stop_step(plain(), reports, **ACC) == 10

    def test_a_short_budget_takes_ten_readings(self) -> None:
        """A tenth of 20 is 2: five must be flat, and ten be there."""
        reports = losses([0.1] * 20, key="acc")
        assert stop_step(plain(), reports, **ACC | {"budget_steps": 20}) == 9

    def test_steps_that_skip_count_as_readings_of_the_budget(self) -> None:
        """Every 500th of 50,000 steps is the same as 100 readings."""
        from tune_guard import Monitor, Policy

        policy = Policy(metric="acc", mode="max", rules=(plain(),), budget_steps=50_000)
        monitor = Monitor(policy)
        stops = [monitor.observe(500 * i, {"acc": 0.1}).stop for i in range(1, 101)]
        assert stops.index(True) == 10

    def test_without_a_budget_the_trial_must_be_older(self) -> None:
        """It is taken to give 200 readings: twenty must be flat."""
        reports = losses([0.1] * 100, key="acc")
        fields = {"metric": "acc", "mode": "max"}
        assert stop_step(plain(), reports, **fields) == 20

    def test_a_gain_within_the_tolerance_is_none(self) -> None:
        """0.1002 is 0.2% above the start, 0.1004 is 0.4%."""
        little = losses([0.1] * 5 + [0.1002] * 95, key="acc")
        assert stop_step(plain(), little, **ACC) == 10
        enough = losses([0.1] * 5 + [0.1004] * 95, key="acc")
        assert stop_step(plain(), enough, **ACC) is None

    def test_a_trial_that_fell_and_lies_flat_stops(self) -> None:
        """It fell at step 1 and lies flat for ten readings from there."""
        reports = losses([0.5] + [0.1] * 99, key="acc")
        assert stop_step(plain(), reports, **ACC) == 10

    def test_a_trial_that_still_moves_goes_on(self) -> None:
        """It never beats its start, and swings by a tenth of it."""
        rng = random.Random(1)
        values = [1.0] + [0.8 + 0.1 * rng.random() for _ in range(99)]
        assert stop_step(plain(), losses(values, key="acc"), **ACC) is None

    def test_a_late_learner_is_not_cut_before_its_window(self) -> None:
        """Nine flat readings, then it learns."""
        values = [0.1] * 9 + [0.2 + 0.01 * i for i in range(91)]
        assert stop_step(plain(), losses(values, key="acc"), **ACC) is None

    def test_a_loss_that_stays_at_the_logarithm_of_its_classes(self) -> None:
        """A minimised metric: 2.303 and its rounding."""
        rng = random.Random(2)
        values = [2.303 + 0.001 * rng.random() for _ in range(100)]
        cause = watch(plain(), losses(values), budget_steps=100)[-1].cause
        assert cause is not None
        assert cause.step == 10
        assert "was never better than at its start" in cause.message

    def test_flat_readings_of_the_warm_up_do_not_count(self) -> None:
        """Ten must be flat after it."""
        reports = losses([0.1] * 100, key="acc")
        assert stop_step(plain(), reports, warmup_steps=30, **ACC) == 40


class TestNothingYet:
    """A reward of exactly 0 was not found yet."""

    def test_a_silent_reward_is_held_and_warned_about_once(self) -> None:
        """The trigger is met at step 10 and holds on."""
        reports = losses([0.0] * 100, key="acc")
        assert stop_step(plain(), reports, **ACC) == 10
        rule = NoProgress(holds=(NothingYet(),))
        assert stop_step(rule, reports, **ACC) is None
        assert warn_steps(rule, reports, **ACC) == [10]


class TestRateRamp:
    """A learning rate that is still warming up."""

    def test_nothing_is_expected_before_the_rate_is_there(self) -> None:
        """24 steps of ramp hold for 72; past 64 every second reading is judged."""
        rates = [0.01 * min(i + 1, 25) for i in range(100)]
        reports = [{"acc": 0.1, "lr": rate} for rate in rates]
        known = {"metric": "acc", "mode": "max", "budget_steps": 100}
        assert stop_step(plain(), reports, **known) == 10
        assert stop_step(NoProgress(holds=(RateRamp(),)), reports, **known) == 73


class TestRisingAgain:
    """A trial that was good from its first reading on is not stuck."""

    def test_a_trial_that_creeps_up_is_held(self) -> None:
        """Fine-tuning: 0.91 at the first reading, 0.9105 at the hundredth."""
        reports = losses([0.91 + 5e-6 * i for i in range(100)], key="acc")
        assert stop_step(plain(), reports, **ACC) == 10
        assert stop_step(NoProgress(), reports, **ACC) is None


class TestNearCeiling:
    """What is solved at its first evaluation has no way up."""

    @pytest.mark.parametrize(
        ("key", "ceiling"),
        [("acc", 1.0), ("acc", 100.0), ("value", 1.0), ("success_rate", 1.0)],
    )
    def test_a_perfect_score_is_no_trivial_level(
        self, key: str, ceiling: float
    ) -> None:
        """Every reading is the highest that there is, whatever its name."""
        reports = losses([ceiling] * 100, key=key)
        fields = {**ACC, "metric": key}
        assert stop_step(plain(), reports, **fields) == 10
        assert stop_step(NoProgress(), reports, **fields) is None

    @pytest.mark.parametrize("scale", [1.0, 100.0])
    def test_a_tenth_of_a_percent_is_much_above_99_percent(self, scale: float) -> None:
        """An accuracy of 0.991 that ends at 0.993, with the noise of its readings."""
        rng = random.Random(3)
        values = [0.991 + 2e-5 * i + rng.gauss(0, 3e-4) for i in range(100)]
        reports = losses([scale * value for value in values], key="acc")
        assert stop_step(plain(), reports, **ACC) == 10
        assert stop_step(NoProgress(), reports, **ACC) is None

    @pytest.mark.parametrize(
        "values",
        [[0.95] * 100, [0.7, 0.7002] * 50, [101.0, 101.1] * 50],
        ids=["one class", "far below", "beyond"],
    )
    def test_other_flat_scores_are_cut(self, values: list[float]) -> None:
        """One class is exactly as often right; 0.7 has a way up; 101 is no share."""
        reports = losses(values, key="acc")
        assert stop_step(NoProgress(holds=(NearCeiling(),)), reports, **ACC) == 10

    def test_a_reward_that_lies_still_at_its_best_is_at_its_ceiling(self) -> None:
        """The pole stays upright for all 1,000 steps of every episode."""
        reports = losses([1000.0] * 100, key="episode_reward")
        fields = {**ACC, "metric": "episode_reward"}
        assert stop_step(plain(), reports, **fields) == 10
        assert stop_step(NoProgress(), reports, **fields) is None

    @pytest.mark.parametrize("values", [[0.95, 0.951] * 50, [-21.0] * 100])
    def test_other_flat_rewards_are_cut(self, values: list[float]) -> None:
        """Below its best, or at the lowest that a game gives."""
        reports = losses(values, key="episode_reward")
        fields = {**ACC, "metric": "episode_reward"}
        assert stop_step(NoProgress(), reports, **fields) == 10

    def test_a_loss_has_none_either(self) -> None:
        """Minimised, 0.95 says nothing."""
        rule = NoProgress(holds=(NearCeiling(),))
        assert stop_step(rule, losses([0.95, 0.951] * 50), budget_steps=100) == 10


def test_a_restart_before_every_report_changes_nothing() -> None:
    """The same step."""
    reports = losses([0.1] * 100, key="acc")
    assert stop_step_restarted(NoProgress(), reports, **ACC) == 10


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"tolerance": -1}, "`tolerance` must be >= 0, but got -1"),
        ({"window_ratio": "a tenth"}, "`window_ratio` must be a number"),
        ({"holds": 3}, "`holds` must be a tuple of holds"),
    ],
)
def test_a_wrong_parameter_is_named(parameters: dict[str, Any], message: str) -> None:
    """In the error at construction."""
    with pytest.raises(ConfigError, match=message):
        NoProgress(**parameters)
