"""Windows: how long they are, on which stream, with and without a budget."""

from __future__ import annotations

import pytest

from tune_guard.curve import Curve
from tune_guard.rules.base import Context
from tune_guard.rules.windows import (
    NOISY,
    STEADY,
    buckets,
    budget_readings,
    steady_by_name,
    stretch,
)


def context_of(
    count: int, budget: int | None, *, begin: int = 0, stride: int = 1
) -> Context:
    """Return the context of a trial with ``count`` readings, ``stride`` steps apart."""
    curve = Curve()
    for i in range(count):
        curve.add(float(i), begin + stride * i)
    return Context(metric="acc", mode="max", budget_steps=budget, curve=curve)


class TestBudget:
    """How many readings a full trial gives."""

    @pytest.mark.parametrize("begin", [0, 1])
    def test_steps_may_begin_at_zero_or_one(self, begin: int) -> None:
        """One reading a step: as many as the budget has steps."""
        assert budget_readings(context_of(30, 300, begin=begin)) == 300

    def test_steps_may_skip(self) -> None:
        """One reading in 500 steps of 50,000."""
        assert budget_readings(context_of(10, 50_000, stride=500)) == 100

    def test_a_resumed_trial_counts_from_its_first_step(self) -> None:
        """The rate of readings is what counts, not where they begin."""
        assert budget_readings(context_of(10, 1000, begin=500, stride=10)) == 100

    def test_one_reading_tells_nothing(self) -> None:
        """No window yet."""
        context = context_of(1, 100)
        assert budget_readings(context) == float("inf")
        assert buckets(context, 0.1) == 0

    def test_without_a_budget_a_trial_is_a_quarter_through(self) -> None:
        """And gives at least 200 readings."""
        assert budget_readings(context_of(20, None)) == 200
        assert budget_readings(context_of(60, None)) == 240


class TestStreams:
    """Which metrics are steady."""

    @pytest.mark.parametrize(
        "name",
        [
            "loss",
            "val/loss",
            "validation/mean_average_precision",
            "eval_accuracy",
            "test_accuracies",
            "validation/wer",
            "perplexity",
            "f1_score",
            "top1",
        ],
    )
    def test_losses_and_accuracies_are_steady(self, name: str) -> None:
        """By name, also where a score is one of these."""
        assert steady_by_name(name) is True

    @pytest.mark.parametrize(
        "name",
        [
            "episode_reward_mean",
            "eval_return",
            "score",
            "success_rate",
            "rollout/ep_rew_mean",
            "win_rate",
        ],
    )
    def test_rewards_are_noisy(self, name: str) -> None:
        """By name."""
        assert steady_by_name(name) is False

    @pytest.mark.parametrize("name", ["value", "objective", "metric", "utility"])
    def test_other_names_do_not_tell(self, name: str) -> None:
        """Nothing is guessed from them."""
        assert steady_by_name(name) is None

    def test_the_course_tells_where_the_name_does_not(self) -> None:
        """A path a tenth longer than its range is steady, one half longer is not."""
        for back, expected in ((1.0, STEADY), (5.0, NOISY)):
            curve = Curve()
            for i, score in enumerate([0.0, 10.0, 10.0 - back, 20.0]):
                curve.add(score, i)
            context = Context(metric="value", mode="max", curve=curve)
            assert stretch(context) == expected
