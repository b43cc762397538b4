"""LearningRateFloor: a floor is reached from above, and a target is missed."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tests.unit.rules.watching import stop_step, stop_step_restarted, watch
from tune_guard import Policy
from tune_guard.exceptions import ConfigError
from tune_guard.rules import LearningRateFloor


def floor(**parameters: Any) -> LearningRateFloor:
    """Return a floor without holds."""
    return LearningRateFloor(**{"holds": (), **parameters})


def rates(values: list[Any], loss: float = 0.5) -> list[dict[str, Any]]:
    """Return one report for each learning rate."""
    return [{"loss": loss, "lr": lr} for lr in values]


def cosine(steps: int, least: float = 0.0) -> list[float]:
    """Return a cosine decay from 0.1 that ends at its last step."""
    return [
        least + (0.1 - least) * (1 + math.cos(math.pi * i / (steps - 1))) / 2
        for i in range(steps)
    ]


class TestGivenFloor:
    """A floor that the user names."""

    def test_the_consecutive_th_result_at_the_floor_stops(self) -> None:
        """At the floor at steps 2, 3, 4."""
        rule = floor(floor=1e-4, consecutive=3)
        assert stop_step(rule, rates([0.1, 0.01, 1e-4, 1e-5, 1e-5])) == 4

    def test_a_rate_above_the_floor_starts_the_count_anew(self) -> None:
        """At the floor at 1, 2, then at 4, 5, 6."""
        values = [0.1, 1e-5, 1e-5, 0.1, 1e-5, 1e-5, 1e-5]
        assert stop_step(floor(floor=1e-4, consecutive=3), rates(values)) == 6

    def test_a_ramp_from_zero_and_a_frozen_group_are_no_floor(self) -> None:
        """No group was above the floor before."""
        values = [[0.0, 0.0], [0.0, 0.0], [0.0, 1e-5], [1e-5, 1e-4]]
        assert stop_step(floor(floor=1e-7, consecutive=2), rates(values)) is None

    def test_the_largest_group_decides(self) -> None:
        """One group at 0 is no floor; both are."""
        values = [[0.1, 0.1], [0.0, 0.1], [0.0, 0.1], [0.0, 0.0], [0.0, 0.0]]
        assert stop_step(floor(floor=1e-4, consecutive=2), rates(values)) == 4

    def test_a_missing_rate_neither_counts_nor_resets(self) -> None:
        """At the floor at 1 and 3."""
        values = [0.1, 1e-5, None, 1e-5]
        assert stop_step(floor(floor=1e-4, consecutive=2), rates(values)) == 3

    def test_warm_up_is_not_counted_but_remembered(self) -> None:
        """Above at 0; counted from 3 on."""
        values = [0.1, 1e-5, 1e-5, 1e-5, 1e-5]
        rule = floor(floor=1e-4, consecutive=2)
        assert stop_step(rule, rates(values), warmup_steps=3) == 4

    def test_rates_between_reports_count_once_a_step(self) -> None:
        """Ten rates within one step are one result."""
        from tune_guard import Monitor

        rule = floor(floor=1e-4, consecutive=3)
        monitor = Monitor(Policy(metric="loss", mode="min", rules=(rule,)))
        monitor.observe(0, {"lr": 0.1})
        monitor.observe(1, {"lr": 1e-5})
        assert not any(monitor.observe(None, {"lr": 1e-5}).stop for _ in range(10))

    def test_a_restart_before_every_report_changes_nothing(self) -> None:
        """The count and the memory of a rate above survive."""
        rule = floor(floor=1e-4, consecutive=3)
        assert stop_step_restarted(rule, rates([0.1, 1e-5, 1e-5, 1e-5])) == 3


class TestTarget:
    """The metric must be short of the target."""

    def test_a_trial_that_reached_its_target_is_kept(self) -> None:
        """Its best, not its last reading, decides."""
        reports = rates([0.1, 1e-5, 1e-5, 1e-5])
        reports[0]["loss"] = 0.2
        rule = floor(floor=1e-4, consecutive=2, target=0.3)
        assert stop_step(rule, reports) is None

    def test_a_trial_short_of_its_target_is_cut(self) -> None:
        """The target goes by the mode."""
        reports = rates([0.1, 1e-5, 1e-5], loss=0.5)
        rule = floor(floor=1e-4, consecutive=2, target=0.3)
        assert stop_step(rule, reports) == 2
        assert stop_step(rule, reports, mode="max") is None

    def test_an_unknown_metric_is_not_short(self) -> None:
        """Nothing was reported that could miss the target."""
        reports = [{"lr": lr} for lr in (0.1, 1e-5, 1e-5)]
        rule = floor(floor=1e-4, consecutive=2, target=0.3)
        assert stop_step(rule, reports) is None

    def test_a_forecast_that_reaches_it_holds_the_cut(self) -> None:
        """A loss of t**-0.5 reaches 0.13 before its age doubles."""
        reports = [
            {"loss": (i + 1) ** -0.5, "lr": 0.1 if i < 20 else 1e-5} for i in range(40)
        ]
        rule = LearningRateFloor(target=0.13, floor=1e-4)
        assert stop_step(rule, reports) is None
        assert watch(rule, reports)[-1].findings[0].holds == ("reaches_target",)
        assert stop_step(LearningRateFloor(target=0.01, floor=1e-4), reports) == 29

    def test_the_finding_says_what_was_seen(self) -> None:
        """Value, threshold and sentence."""
        rule = floor(floor=1e-4, consecutive=2, target=0.3)
        found = watch(rule, rates([0.1, 1e-5, 1e-5]))[-1].cause
        assert found is not None
        assert (found.metric, found.value, found.threshold) == ("lr", 1e-5, 1e-4)
        assert found.message.startswith(
            "lr has been at its floor of 0.0001 for 2 results, steps 1-2; loss is 0.5"
            " at best, not 0.3."
        )


class TestFoundFloor:
    """A floor that the schedule shows."""

    def test_a_schedule_that_settled_early_is_at_its_floor(self) -> None:
        """40 steps of decay, flat from 40: ten results, a quarter of all at 53."""
        values = [*cosine(41, least=1e-4), *[1e-4] * 60]
        assert stop_step(floor(target=0.3), rates(values)) == 53

    @pytest.mark.parametrize("least", [0.0, 1e-4, 0.01, 0.04])
    @pytest.mark.parametrize("steps", [20, 100, 3000])
    def test_the_last_steps_of_a_cosine_are_no_floor(
        self, steps: int, least: float
    ) -> None:
        """However flat they look."""
        reports = rates(cosine(steps, least))
        assert stop_step(floor(target=0.3), reports) is None

    def test_stairs_of_equal_length_are_no_floor(self) -> None:
        """Another drop may come."""
        values = [0.1] * 30 + [0.01] * 30 + [0.001] * 30
        assert stop_step(floor(target=0.3), rates(values)) is None

    def test_a_last_stair_twice_as_long_is_a_floor(self) -> None:
        """Levels of 30; the last one begins at step 60 and is found at 119."""
        values = [0.1] * 30 + [0.01] * 30 + [0.001] * 90
        assert stop_step(floor(target=0.3), rates(values)) == 119

    def test_a_constant_rate_is_no_floor(self) -> None:
        """It has not decayed, also when it is 0."""
        assert stop_step(floor(target=0.3), rates([0.1] * 200)) is None
        assert stop_step(floor(target=0.3), rates([0.0] * 200)) is None

    def test_a_ramp_is_no_floor(self) -> None:
        """The low rates came before the peak."""
        values = [0.0] * 30 + [0.001 * i for i in range(30)] + [0.03] * 60
        assert stop_step(floor(target=0.3), rates(values)) is None


class TestConfiguration:
    """What is refused, and how the policy arms it."""

    @pytest.mark.parametrize(
        ("parameters", "message"),
        [
            ({}, "`target` must be given where `floor` is not"),
            ({"target": "high"}, "`target` must be a number"),
            ({"target": math.nan}, "`target` must be a finite number"),
            ({"floor": -1e-3}, "`floor` must be >= 0"),
            ({"floor": 0.0, "consecutive": 0}, "`consecutive` must be >= 1"),
            ({"floor": 0.0, "holds": None}, "`holds` must be a tuple of holds"),
        ],
    )
    def test_a_wrong_value_is_refused(
        self, parameters: dict[str, Any], message: str
    ) -> None:
        """At construction, by name, with advice."""
        with pytest.raises(ConfigError, match=message):
            LearningRateFloor(**parameters)

    def test_the_policy_arms_it_with_one_word(self) -> None:
        """`target=` of the default policy."""
        policy = Policy.default("accuracy", "max", target=0.9)
        assert policy.rule("lr_floor") == LearningRateFloor(target=0.9)
