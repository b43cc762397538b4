"""Divergence: exact steps of both triggers, and what each hold keeps."""

from __future__ import annotations

import math
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
from tune_guard import Monitor, Policy
from tune_guard.exceptions import ConfigError
from tune_guard.rules import Divergence
from tune_guard.rules.curve_holds import RareReward, RateRamp, RisingAgain
from tune_guard.rules.loss_holds import CameBack, GainKept, MetricKept, TooEarly

CALM = [1.02, 0.99, 1.01, 1.0, 0.98, 1.0, 1.01, 0.99, 1.0, 1.0]


def runaway(**parameters: Any) -> Divergence:
    """Return the trigger on a loss that runs away, without holds."""
    return Divergence(holds=(), start_ratio=0, **parameters)


def start(**parameters: Any) -> Divergence:
    """Return the trigger on a metric back at its start, without holds."""
    return Divergence(holds=(), factor=1e9, **parameters)


class TestRunsAway:
    """A loss far over its usual level."""

    def test_the_third_value_in_a_row_stops(self) -> None:
        """A lone spike at 10 recovers; 6, 9, 14 are over five times 1.0."""
        values = [*CALM, 1e6, *CALM, 6.0, 9.0, 14.0]
        assert stop_step(runaway(), losses(values)) == 23

    def test_the_default_rule_stops_there_too(self) -> None:
        """Past a fifth of the budget, as it gave back all that it had gained."""
        values = [*CALM, 1e6, *CALM, 6.0, 9.0, 14.0]
        assert stop_step(Divergence(), losses(values), budget_steps=115) == 23

    def test_a_value_below_the_limit_starts_the_count_anew(self) -> None:
        """Two over, one calm, three over."""
        values = [*CALM, 9.0, 9.0, 1.0, 9.0, 9.0, 9.0]
        assert stop_step(runaway(), losses(values)) == 15

    def test_exactly_factor_times_is_not_over(self) -> None:
        """Five times 1.0 is 5.0; the next larger number is over."""
        assert stop_step(runaway(), losses([1.0] * 5 + [5.0] * 9)) is None
        assert stop_step(runaway(), losses([1.0] * 5 + [5.001] * 9)) == 7

    def test_too_little_history_is_not_judged(self) -> None:
        """The fifth value completes the history; the sixth is the first judged."""
        rule = runaway(consecutive=1)
        assert stop_step(rule, losses([1.0] * 4 + [9.0, 1.0])) is None
        assert stop_step(rule, losses([1.0] * 5 + [9.0])) == 5

    def test_flagged_values_do_not_raise_the_median(self) -> None:
        """Pairs of spikes for ever leave the usual level at 1.0."""
        values = [1.0] * 5 + [9.0, 9.0, 1.0] * 50 + [9.0] * 3
        assert stop_step(runaway(), losses(values)) == 157

    def test_nan_neither_counts_nor_resets(self) -> None:
        """The rule on NaN decides about NaN."""
        values = [*CALM, 9.0, math.nan, 9.0, 9.0]
        assert stop_step(runaway(), losses(values)) == 13

    def test_a_negative_loss_is_measured_by_its_size(self) -> None:
        """-10 rises by more than four times 10 only above 30."""
        assert stop_step(runaway(), losses([-10.0] * 9 + [30.0] * 5)) is None
        assert stop_step(runaway(), losses([-10.0] * 9 + [31.0] * 5)) == 11

    def test_the_reported_loss_comes_before_the_metric(self) -> None:
        """A metric that jumps says nothing while the loss is calm."""
        reports = [{"loss": 1.0, "err": 0.1 if i < 9 else 9.0} for i in range(20)]
        assert stop_step(runaway(), reports, metric="err") is None

    def test_a_minimised_metric_is_the_loss_where_none_is_reported(self) -> None:
        """A maximised one is not."""
        reports = losses([*CALM, 9.0, 9.0, 9.0], key="err")
        assert stop_step(runaway(), reports, metric="err") == 12
        assert stop_step(runaway(), reports, metric="err", mode="max") is None

    def test_a_loss_that_comes_late_starts_its_own_history(self) -> None:
        """A loss of another size than the metric is no rise."""
        reports: list[dict[str, float]] = [*losses([1.0] * 9, key="err")]
        reports += losses([50.0] * 9)
        assert stop_step(runaway(), reports, metric="err") is None

    def test_a_named_key_is_watched(self) -> None:
        """Instead of the loss."""
        reports = [{"loss": 1.0, "kl": x} for x in [*CALM, 9.0, 9.0, 9.0]]
        assert stop_step(runaway(metric="kl"), reports) == 12

    def test_values_of_the_warm_up_do_not_count(self) -> None:
        """The loss was too high before step 12 as well: 12, 13, 14 decide."""
        values = [*CALM, *[9.0] * 9]
        assert stop_step(runaway(), losses(values), warmup_steps=12) == 14

    def test_the_message_names_the_numbers(self) -> None:
        """Value, limit, usual level and what to try."""
        cause = watch(runaway(), losses([*CALM, 6.0, 9.0, 14.0]))[-1].cause
        assert cause is not None
        assert (cause.metric, cause.value, cause.threshold) == ("loss", 14.0, 5.0)
        assert "loss = 14 at step 12 is over 5 (3 in a row), where" in cause.message


class TestTooEarly:
    """A loss that overshoots early comes back."""

    def test_an_early_rise_is_held_until_a_fifth_of_the_budget(self) -> None:
        """High from step 30 on; step 40 is past a fifth of 200."""
        values = [*CALM * 3, *[9.0] * 40]
        rule = Divergence(holds=(TooEarly(),), start_ratio=0)
        assert stop_step(rule, losses(values), budget_steps=200) == 40
        assert warn_steps(rule, losses(values), budget_steps=200) == [32]

    def test_without_a_budget_until_two_hundred_values(self) -> None:
        """The 200th value is that of step 199."""
        values = [*CALM * 12, *[9.0] * 300]
        rule = Divergence(holds=(TooEarly(),), start_ratio=0)
        assert stop_step(rule, losses(values)) == 199

    def test_what_was_high_for_half_of_its_life_does_not_come_back(self) -> None:
        """High from step 10 on: at step 19 it is ten of twenty values."""
        values = [*CALM, *[9.0] * 40]
        assert stop_step(Divergence(), losses(values)) == 19

    def test_a_loss_that_explodes_at_once_is_cut_without_a_budget(self) -> None:
        """25 times as high each step: the tenth value over the first five's median."""
        values = [25.0**step for step in range(40)]
        assert stop_step(Divergence(), losses(values)) == 14

    def test_a_steady_metric_back_at_its_start_is_held_too(self) -> None:
        """A reward is not: its window is three times as long."""
        values = [0.5] * 5 + [0.4] * 95
        rule = Divergence(holds=(TooEarly(),))
        fields = {"mode": "max", "budget_steps": 100}
        acc, reward = losses(values, key="acc"), losses(values, key="reward")
        assert stop_step(rule, acc, metric="acc", **fields) == 20
        assert stop_step(rule, reward, metric="reward", **fields) == 14


class TestGainKept:
    """A rise that takes nothing away."""

    def test_a_bounce_of_an_interpolating_model_is_held(self) -> None:
        """From 2.3 to 0.000001, then to 0.0001 for good: one warning."""
        values = [2.3 * 0.5**i for i in range(22)] + [1e-6] * 20 + [1e-4] * 50
        rule = Divergence(holds=(GainKept(),), start_ratio=0)
        assert stop_step(rule, losses(values)) is None
        assert warn_steps(rule, losses(values)) == [44]

    def test_a_bounce_that_goes_on_to_the_start_is_not(self) -> None:
        """Half of the gain given back, three times in a row."""
        values = [2.0] * 5 + [1e-6] * 40 + [1e-4] * 50 + [1.1, 1.1, 1.1]
        rule = Divergence(holds=(GainKept(),), start_ratio=0)
        assert stop_step(rule, losses(values)) == 97

    def test_a_loss_near_zero_does_not_fire_on_rounding(self) -> None:
        """Zero has no size: any rise is over, and nothing is given back."""
        values = [1.0] * 5 + [0.0] * 40 + [1e-12] * 20
        assert stop_step(Divergence(), losses(values)) is None


class TestCameBack:
    """A loss that is as high time and again."""

    def test_it_must_stay_twice_as_long_as_it_ever_did(self) -> None:
        """Pairs came back; the fifth in a row is more than twice as many."""
        values = [1.0] * 5 + [9.0, 9.0, 1.0] * 50 + [9.0] * 9
        rule = Divergence(holds=(CameBack(),), start_ratio=0)
        assert stop_step(rule, losses(values)) == 159
        assert stop_step_restarted(rule, losses(values)) == 159

    def test_a_lone_spike_of_any_size_does_not_delay(self) -> None:
        """How high it was says nothing."""
        values = [*CALM, 1e6, *CALM, 6.0, 9.0, 14.0]
        rule = Divergence(holds=(CameBack(),), start_ratio=0)
        assert stop_step(rule, losses(values)) == 23

    @pytest.mark.parametrize("offset", [0.0, 0.3])
    def test_a_loss_around_zero_is_left_alone(self, offset: float) -> None:
        """That of an actor or a critic: its median is no measure of its size."""
        rng = random.Random(1)
        values = [offset + rng.gauss(0.0, 1.0) for _ in range(1000)]
        assert stop_step(runaway(), losses(values)) is not None
        assert stop_step(Divergence(), losses(values)) is None


class TestMetricKept:
    """The loss is far above its past, and the metric beside it is the judge."""

    BESIDE = {"metric": "reward", "mode": "max", "budget_steps": 100}  # noqa: RUF012

    @staticmethod
    def reports(rewards: list[float], raised: list[float]) -> list[dict[str, float]]:
        """Return rewards beside a loss of 0.01 that is ``raised`` at the end."""
        calm = [0.01] * (len(rewards) - len(raised))
        both = zip(rewards, calm + raised, strict=True)
        return [{"reward": reward, "loss": loss} for reward, loss in both]

    def test_a_loss_that_grows_with_the_rewards_found_is_held(self) -> None:
        """The first rewards come at step 60, and with them something to learn."""
        found = [0.0] * 60 + [float(i) for i in range(1, 41)]
        reports = self.reports(found, [1.0] * 40)
        assert stop_step(runaway(), reports, **self.BESIDE) == 62
        rule = Divergence(holds=(MetricKept(),), start_ratio=0)
        assert stop_step(rule, reports, **self.BESIDE) is None
        assert stop_step(Divergence(), reports, **self.BESIDE) is None

    def test_the_first_rewards_of_a_long_trial_are_seen_at_once(self) -> None:
        """A bucket of its curve holds eight readings, and is not full yet."""
        found = [0.0] * 333 + [float(i) for i in range(1, 68)]
        reports = self.reports(found, [1.0] * 67)
        assert stop_step(Divergence(), reports, metric="reward", mode="max") is None

    def test_a_slow_gain_within_the_noise_is_seen(self) -> None:
        """Each quarter is better than the one before; not every fifth reading is."""
        rng = random.Random(4)
        slow = [0.05 * i + rng.gauss(0, 1) for i in range(400)]
        reports = self.reports(slow, [1.0] * 200)
        fields = self.BESIDE | {"budget_steps": 400}
        assert stop_step(runaway(), reports, **fields) == 202
        assert stop_step(Divergence(), reports, **fields) is None

    def test_a_metric_that_falls_with_the_loss_is_cut(self) -> None:
        """It falls from 59 to 10: six readings later, in pairs, none is at its best."""
        fallen = [float(i) for i in range(60)] + [10.0] * 40
        reports = self.reports(fallen, [1.0] * 40)
        assert stop_step(Divergence(), reports, **self.BESIDE) == 65

    def test_a_metric_that_never_moved_says_nothing(self) -> None:
        """One class of ten, while the loss runs away."""
        reports = self.reports([0.1] * 100, [1.0] * 40)
        rule = Divergence(holds=(MetricKept(),), start_ratio=0)
        assert stop_step(rule, reports, **self.BESIDE) == 62

    def test_the_loss_itself_is_not_its_own_judge(self) -> None:
        """It is the metric, minimised, and was better than ever just before."""
        values = [1.0 - 0.01 * i for i in range(60)] + [9.0] * 9
        rule = Divergence(holds=(MetricKept(),), start_ratio=0)
        assert stop_step(rule, losses(values), budget_steps=100) == 62

    def test_a_metric_that_was_not_reported_with_the_loss_says_nothing(self) -> None:
        """The last evaluation lies before the rise."""
        found = [float(i) for i in range(60)]
        reports: list[dict[str, float]] = [
            *self.reports(found, []),
            *({"loss": 1.0} for _ in range(9)),
        ]
        assert stop_step(Divergence(), reports, **self.BESIDE) == 62


class TestBackAtStart:
    """A metric that is worse than at its start for a whole window."""

    def test_a_window_below_the_start_stops(self) -> None:
        """A thirtieth of 300 readings is ten: steps 50 to 59."""
        values = [0.5] * 5 + [0.9] * 45 + [0.4] * 45
        reports = losses(values, key="acc")
        found = stop_step(start(), reports, metric="acc", mode="max", budget_steps=300)
        assert found == 59

    def test_a_single_reading_above_the_start_begins_a_new_window(self) -> None:
        """Once at 55; past step 64 readings lie two in a bucket: 56 to 65."""
        values = [0.5] * 5 + [0.9] * 45 + [0.4] * 5 + [0.6] + [0.4] * 40
        reports = losses(values, key="acc")
        found = stop_step(start(), reports, metric="acc", mode="max", budget_steps=300)
        assert found == 65

    def test_a_reward_is_watched_three_times_as_long(self) -> None:
        """A tenth of 300 readings is 30."""
        values = [0.5] * 5 + [0.9] * 45 + [0.4] * 60
        reports = losses(values, key="reward")
        found = stop_step(
            start(), reports, metric="reward", mode="max", budget_steps=300
        )
        assert found == 79

    def test_a_reading_as_good_as_the_start_is_not_worse(self) -> None:
        """Equal is not below."""
        reports = losses([0.5] * 300, key="acc")
        assert stop_step(start(), reports, metric="acc", mode="max") is None

    def test_a_reading_at_the_start_level_begins_a_new_window(self) -> None:
        """0.5 at step 55 is no worse than the start: 56 to 65, two in a bucket."""
        values = [0.5] * 5 + [0.9] * 45 + [0.4] * 5 + [0.5] + [0.4] * 40
        reports = losses(values, key="acc")
        found = stop_step(start(), reports, metric="acc", mode="max", budget_steps=300)
        assert found == 65

    def test_the_window_lies_past_the_readings_of_the_start(self) -> None:
        """A trial that falls from the first reading on: steps 5 to 10."""
        reports = losses([0.9 - 0.01 * i for i in range(50)], key="acc")
        rule = start(start_margin=0.0)
        found = stop_step(rule, reports, metric="acc", mode="max", budget_steps=50)
        assert found == 10

    def test_noise_about_the_start_is_no_way_back(self) -> None:
        """It wanders by 0.01 and lies 0.015 below: only 0.04 below it is lost."""
        rest = [0.495, 0.485, 0.475] * 20
        near = losses([0.5] * 50 + rest, key="acc")
        far = losses([0.5] * 50 + [v - 0.025 for v in rest], key="acc")
        known = {"metric": "acc", "mode": "max", "budget_steps": 300}
        assert stop_step(start(start_margin=0.0), near, **known) == 59
        assert stop_step(start(), near, **known) is None
        assert stop_step(start(), far, **known) == 59

    def test_a_reward_has_no_margin(self) -> None:
        """What it loses is as small as its noise: the same readings are lost."""
        rest = [0.495, 0.485, 0.475] * 20
        reports = losses([0.5] * 50 + rest, key="reward")
        known = {"metric": "reward", "mode": "max", "budget_steps": 100}
        assert stop_step(start(), reports, **known) == 59

    def test_the_trigger_can_be_switched_off(self) -> None:
        """With start_ratio 0."""
        values = [0.5] * 5 + [0.4] * 300
        rule = Divergence(holds=(), start_ratio=0)
        reports = losses(values, key="acc")
        assert stop_step(rule, reports, metric="acc", mode="max") is None

    def test_a_recovering_metric_is_held(self) -> None:
        """It climbs from far below towards its start."""
        values = [0.5] * 5 + [0.1 + 0.0008 * i for i in range(300)]
        reports = losses(values, key="acc")
        fields = {"metric": "acc", "mode": "max", "budget_steps": 300}
        assert stop_step(Divergence(holds=()), reports, **fields) == 14
        assert stop_step(Divergence(holds=(RisingAgain(),)), reports, **fields) is None

    def test_rare_rewards_are_held(self) -> None:
        """A lucky start, then nothing between two successes 60 steps apart."""
        values = [1.0] * 5 + ([0.0] * 59 + [1.0]) * 4
        reports = losses(values, key="reward")
        fields = {"metric": "reward", "mode": "max", "budget_steps": 400}
        assert stop_step(Divergence(holds=()), reports, **fields) == 44
        assert stop_step(Divergence(holds=(RareReward(),)), reports, **fields) is None

    def test_a_learning_rate_ramp_in_the_warm_up_is_no_sickness(self) -> None:
        """The loss rises with the rate and falls again after the warm-up."""
        ramp = [0.7 + 0.01 * i for i in range(40)]
        after = [1.1 * 0.93**i for i in range(60)]
        reports = losses([*ramp, *after])
        fields = {"warmup_steps": 40, "budget_steps": 100}
        assert stop_step(Divergence(), reports, **fields) is None

    def test_a_collapse_to_one_class_is_no_rare_reward(self) -> None:
        """An accuracy that lies still at 0.1 once reached 0.9."""
        values = [*[0.5] * 5, 0.9, *[0.1] * 94]
        rule = Divergence(holds=(RareReward(),))
        fields = {"metric": "acc", "mode": "max", "budget_steps": 100}
        assert stop_step(rule, losses(values, key="acc"), **fields) == 11

    def test_a_reward_that_moves_is_not_rare(self) -> None:
        """It fell to a level that is not one and the same."""
        values = [5.0] * 5 + [9.0] * 5 + [1.0 + 0.1 * (i % 7) for i in range(90)]
        rule = Divergence(holds=(RareReward(),))
        fields = {"metric": "reward", "mode": "max", "budget_steps": 100}
        assert stop_step(rule, losses(values, key="reward"), **fields) == 19

    def test_a_ramp_of_the_rate_is_held_until_three_times_its_length(self) -> None:
        """The rate is at its peak from step 10 on; the loss stays high."""
        reports = losses([0.7] * 5 + [0.8 + 0.01 * i for i in range(60)])
        for step, report in enumerate(reports):
            report["lr"] = 0.01 * min(step, 10)
        fields = {"budget_steps": 60}
        assert stop_step(start(), reports, **fields) == 10
        rule = Divergence(holds=(RateRamp(),), factor=1e9)
        assert stop_step(rule, reports, **fields) == 30

    def test_numbers_are_shown_as_they_were_reported(self) -> None:
        """A minimised metric keeps its sign."""
        values = [1.0] * 5 + [0.5] * 10 + [2.0] * 30
        cause = watch(start(), losses(values), budget_steps=100)[-1].cause
        assert cause is not None
        assert (cause.value, cause.threshold) == (2.0, 1.0)


class TestRestart:
    """A stored state goes on as if nothing had happened."""

    @pytest.mark.parametrize("seed", range(4))
    def test_a_restart_before_every_report_changes_nothing(self, seed: int) -> None:
        """The same step, on noisy losses that run away."""
        rng = random.Random(seed)
        values = [rng.gauss(1.0, 0.1) for _ in range(60)]
        values += [1.1**i + rng.random() for i in range(60)]
        found = stop_step(Divergence(), losses(values), budget_steps=120)
        assert found is not None
        restarted = stop_step_restarted(Divergence(), losses(values), budget_steps=120)
        assert restarted == found

    def test_the_memory_is_bounded(self) -> None:
        """10,000 reports leave no more than the windows hold."""
        monitor = Monitor(Policy(metric="loss", mode="min", rules=(Divergence(),)))
        for step in range(10_000):
            monitor.observe(step, {"loss": 1.0 + step % 7})
        assert len(str(monitor.state())) < 4000


class TestParameters:
    """What cannot be meant is refused, with the name and what to do."""

    @pytest.mark.parametrize(
        ("parameters", "message"),
        [
            ({"factor": 0.5}, "`factor` must be >= 1, but got 0.5"),
            ({"window": 3}, "`window` must be >= 5, but got 3"),
            ({"min_history": 0}, "`min_history` must be >= 1, but got 0"),
            ({"consecutive": 0}, "`consecutive` must be >= 1, but got 0"),
            ({"metric": ""}, "`metric` must be a key, but got ''"),
            ({"start_ratio": -0.1}, "`start_ratio` must be >= 0, but got -0.1"),
            ({"holds": ("rising",)}, "`holds` must be a tuple of holds"),
        ],
    )
    def test_a_wrong_parameter_is_named(
        self, parameters: dict[str, Any], message: str
    ) -> None:
        """In the error at construction."""
        with pytest.raises(ConfigError, match=message):
            Divergence(**parameters)
