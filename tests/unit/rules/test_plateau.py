"""Plateau: exact steps of the plain rule, and what each hold keeps."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tests.unit.rules.watching import losses, stop_step, stop_step_restarted, watch
from tune_guard import Policy
from tune_guard.exceptions import ConfigError
from tune_guard.rules import Plateau
from tune_guard.rules.progress_holds import (
    LevelRising,
    NotLearned,
    RateFalling,
    StillGaining,
    Young,
)


def plain(**parameters: Any) -> Plateau:
    """Return a plateau without holds."""
    return Plateau(holds=(), **parameters)


def learned(flat: int, level: float = 0.5) -> list[dict[str, float]]:
    """Fall from 2.0 to ``level`` within 11 reports, then stay there."""
    falling = [2.0 - (2.0 - level) * i / 10 for i in range(10)]
    return losses([*falling, *[level] * (flat + 1)])


class TestPlainRule:
    """Without holds: which step stops."""

    def test_the_patience_th_bad_value_in_a_row_stops_at_its_step(self) -> None:
        """Baseline at 0, bad at 1, 2, 3."""
        assert stop_step(plain(patience=3), losses([1.0] * 9)) == 3

    def test_a_better_value_starts_the_count_anew(self) -> None:
        """Bad at 1 and 2, better at 3, bad at 4, 5, 6."""
        values = [1.0, 1.0, 1.0, 0.9, 0.9, 0.9, 0.9]
        assert stop_step(plain(patience=3), losses(values)) == 6

    def test_a_maximised_metric_is_better_when_higher(self) -> None:
        """The same with signs turned."""
        values = [1.0, 1.1, 1.2, 1.1, 1.15, 1.2]
        assert stop_step(plain(patience=3), losses(values), mode="max") == 5

    def test_slow_gain_adds_up_over_the_accepted_best(self) -> None:
        """0.04 a step beats min_delta 0.05 at every second step."""
        values = [1.0 - 0.04 * i for i in range(30)]
        assert stop_step(plain(patience=2, min_delta=0.05), losses(values)) is None

    @pytest.mark.parametrize("best", [0.3, 0.5, 0.7, 0.8, 0.9, 1.0, 1.1])
    def test_a_gain_of_exactly_min_delta_is_none(self, best: float) -> None:
        """However the difference of the two is rounded."""
        values = [best, round(best - 0.1, 10), round(best - 0.1, 10)]
        assert stop_step(plain(patience=2, min_delta=0.1), losses(values)) == 2

    def test_relative_min_delta_of_a_negative_loss(self) -> None:
        """-1.0 needs less than -1.1."""
        rule = plain(patience=2, min_delta=0.1, min_delta_mode="relative")
        assert stop_step(rule, losses([-1.0, -1.05, -1.1, -1.2])) == 2
        assert stop_step(rule, losses([-1.0, -1.05, -1.11, -1.12])) is None

    def test_relative_min_delta_of_a_positive_loss(self) -> None:
        """1.0 needs less than 0.9."""
        rule = plain(patience=2, min_delta=0.1, min_delta_mode="relative")
        assert stop_step(rule, losses([1.0, 0.95, 0.9, 0.8])) == 2
        assert stop_step(rule, losses([1.0, 0.95, 0.89, 0.88])) is None

    def test_nan_and_none_neither_count_nor_reset(self) -> None:
        """Bad at 1, 4, 5."""
        values = [1.0, 1.0, math.nan, None, 1.0, 1.0]
        assert stop_step(plain(patience=3), losses(values)) == 5

    def test_an_infinite_first_value_is_no_baseline(self) -> None:
        """The baseline is at 1."""
        values = [math.inf, 1.0, 1.0, 1.0]
        assert stop_step(plain(patience=2), losses(values)) == 3

    def test_warm_up_sets_no_best_and_counts_nothing(self) -> None:
        """The low value of step 0 is forgotten: baseline at 3, bad at 4, 5."""
        values = [0.1, 5.0, 5.0, 5.0, 5.0, 5.0]
        assert stop_step(plain(patience=2), losses(values), warmup_steps=3) == 5

    def test_a_restart_before_every_report_changes_nothing(self) -> None:
        """The count, the best and the sample survive."""
        values = [1.0, 0.9, 0.95, 0.95, 0.95]
        assert stop_step_restarted(plain(patience=3), losses(values)) == 4

    def test_another_metric_with_its_own_direction(self) -> None:
        """Loss improves; the watched accuracy does not."""
        rule = plain(patience=2, metric="accuracy", mode="max")
        reports = [{"loss": 1.0 / (i + 1), "accuracy": 0.5 - i} for i in range(5)]
        assert stop_step(rule, reports) == 2

    def test_holds_look_at_the_watched_metric(self) -> None:
        """The objective settles; the watched accuracy was never learned."""
        rule = Plateau(patience=5, metric="accuracy", mode="max")
        reports = [{**report, "accuracy": 0.1} for report in learned(60)]
        assert watch(rule, reports)[-1].findings[0].holds == ("not_learned",)
        for step, report in enumerate(reports):
            report["accuracy"] = min(0.9, 0.1 + 0.1 * step)
        stopped = stop_step(rule, reports)
        assert stopped is not None
        assert stop_step_restarted(rule, reports) == stopped

    def test_the_finding_says_what_was_seen(self) -> None:
        """Value, threshold and sentence."""
        rule = plain(patience=2, min_delta=0.1)
        found = watch(rule, losses([1.0, 0.95, 0.95]))[-1].cause
        assert found is not None
        assert (found.metric, found.value) == ("loss", 0.95)
        assert found.threshold == pytest.approx(0.9)
        assert found.message.startswith(
            "loss has not improved on 1 (step 0) by more than 0.1 in 2 evaluations,"
            " up to step 2."
        )


class TestHolds:
    """What each hold keeps from being cut."""

    def test_a_learned_and_settled_trial_is_cut(self) -> None:
        """20 flat readings after step 10, no hold left."""
        assert stop_step(Plateau(patience=20), learned(30)) == 30

    def test_a_trial_that_never_left_its_start_is_held(self) -> None:
        """no_progress is there for it."""
        held = watch(Plateau(patience=5), losses([2.0] * 40))
        assert not any(verdict.stop for verdict in held)
        assert held[-1].findings[0].holds == ("not_learned",)

    def test_patience_grows_with_age(self) -> None:
        """100 reports of gain, then 33 bad ones are needed: a quarter of 133."""
        values = [2.0 / (i + 1) for i in range(100)] + [5.0] * 60
        assert stop_step(Plateau(patience=5, holds=(Young(),)), losses(values)) == 133

    def test_a_falling_rate_holds_the_cut(self) -> None:
        """An exponential decay releases gain until its rate is spent."""
        reports = learned(150)
        for step, report in enumerate(reports):
            report["lr"] = 0.1 * 0.97**step
        spent = next(i for i, r in enumerate(reports) if r["lr"] <= 0.001)
        rule = Plateau(patience=20, holds=(RateFalling(),))
        assert stop_step(rule, reports) == spent

    def test_a_drop_of_the_rate_gives_ten_evaluations(self) -> None:
        """The rate drops at step 28, where bad readings are 18."""
        reports = learned(60)
        for step, report in enumerate(reports):
            report["lr"] = 0.1 if step < 28 else 0.01
        rule = Plateau(patience=20, holds=(RateFalling(),))
        assert stop_step(rule, reports) == 38

    def test_a_gain_below_min_delta_is_still_a_forecast(self) -> None:
        """A power law gains more than 1% until its age doubles."""
        values = [(i + 1) ** -0.3 for i in range(60)]
        rule = Plateau(patience=5, min_delta=0.2, holds=(StillGaining(),))
        assert stop_step(rule, losses(values)) is None

    def test_the_forecast_ends_with_the_budget(self) -> None:
        """The same curve has nothing to gain any more at the end of the budget."""
        values = [(i + 1) ** -0.3 for i in range(60)]
        rule = Plateau(patience=5, min_delta=0.2, holds=(StillGaining(),))
        stopped = stop_step(rule, losses(values), budget_steps=60)
        assert stopped is not None
        assert 50 < stopped < 60

    def test_a_rising_level_holds_the_cut(self) -> None:
        """One lucky reading is the best; all others still get better."""
        values = [2.0 - 0.01 * i for i in range(100)]
        values[30] = 0.5
        rule = Plateau(patience=20, holds=(LevelRising(),))
        assert stop_step(rule, losses(values)) is None
        assert stop_step(plain(patience=20), losses(values)) == 50

    def test_warm_up_tells_what_was_learned(self) -> None:
        """What the trial learned in warm-up counts against `not_learned`."""
        reports = learned(30)
        rule = Plateau(patience=20, holds=(NotLearned(),))
        assert stop_step(rule, reports, warmup_steps=12) == 32

    def test_a_restart_changes_nothing_under_holds(self) -> None:
        """The sample of the forecast survives too."""
        values = [2.0 / (i + 1) for i in range(70)] + [0.1, 0.09] * 40
        rule = Plateau(patience=10)
        stopped = stop_step(rule, losses(values))
        assert stopped is not None
        assert stop_step_restarted(rule, losses(values)) == stopped


class TestConfiguration:
    """What is refused, and how the policy arms it."""

    @pytest.mark.parametrize(
        ("parameters", "message"),
        [
            ({"patience": 0}, "`patience` must be >= 1, but got 0"),
            ({"patience": True}, "`patience` must be a whole number"),
            ({"patience": 2.5}, "`patience` must be a whole number"),
            ({"min_delta": -0.1}, "`min_delta` must be >= 0, but got -0.1"),
            ({"min_delta": math.nan}, "`min_delta` must be"),
            ({"min_delta_mode": "rel"}, "must be 'absolute' or 'relative'"),
            ({"metric": ""}, "`metric` must be a key"),
            ({"mode": "up"}, "`mode` must be 'min' or 'max'"),
            ({"holds": (Young,)}, "`holds` must be a tuple of holds"),
            ({"holds": "young"}, "`holds` must be a tuple of holds"),
        ],
    )
    def test_a_wrong_value_is_refused(
        self, parameters: dict[str, Any], message: str
    ) -> None:
        """At construction, by name, with advice."""
        with pytest.raises(ConfigError, match=message):
            Plateau(**parameters)

    @pytest.mark.parametrize(
        ("kind", "name"),
        [
            (NotLearned, "gain_ratio"),
            (RateFalling, "evaluations"),
            (RateFalling, "spent_ratio"),
            (StillGaining, "gain_ratio"),
            (Young, "age_ratio"),
        ],
    )
    def test_a_wrong_hold_is_refused(self, kind: type, name: str) -> None:
        """Negative, a text, or NaN."""
        for value in (-1, "1", math.nan):
            with pytest.raises(ConfigError, match=f"`{name}` must be a number >= 0"):
                kind(**{name: value})

    def test_the_policy_arms_it_with_one_word(self) -> None:
        """`patience=` of the default policy."""
        policy = Policy.default("loss", "min", patience=7)
        assert policy.rule("plateau") == Plateau(patience=7)
