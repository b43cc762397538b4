"""GradientExplosion: exact steps of the plain rule, and what each hold keeps."""

from __future__ import annotations

import math
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
from tune_guard.rules import GradientExplosion
from tune_guard.rules.gradient_holds import BelowHighWater, EarlySteps, LossKept


def plain(**parameters: Any) -> GradientExplosion:
    """Return a rule without holds."""
    return GradientExplosion(**{"holds": (), "min_history": 5, **parameters})


def norms(values: list[Any]) -> list[dict[str, Any]]:
    """Return one report for each norm."""
    return losses(values, key="grad_norm")


def training(
    after: list[float], level: float, before: int = 200
) -> list[dict[str, float]]:
    """Return a training that learns for ``before`` steps, then norms of ``after``."""
    reports = [
        {"loss": 0.1 + 2.0 * 0.97**i, "grad_norm": 1.0 + 0.1 * (i % 3)}
        for i in range(before)
    ]
    return [*reports, *[{"loss": level, "grad_norm": norm} for norm in after]]


class TestPlainRule:
    """Without holds: which step stops."""

    def test_the_k_th_spike_stops_at_its_step(self) -> None:
        """Spikes at 10, 11, 12."""
        assert stop_step(plain(), norms([1.0] * 10 + [50.0, 80.0, 90.0, 99.0])) == 12

    def test_ten_times_the_median_is_no_spike_yet(self) -> None:
        """More than ten times is."""
        assert stop_step(plain(), norms([1.0] * 10 + [10.0] * 9)) is None
        assert stop_step(plain(), norms([1.0] * 10 + [10.1] * 9)) == 12

    def test_spikes_need_not_be_in_a_row(self) -> None:
        """Spikes at 10, 13, 16: three of ten."""
        values = [1.0] * 10 + [50.0, 1.0, 1.0, 50.0, 1.0, 1.0, 50.0]
        assert stop_step(plain(), norms(values)) == 16

    def test_spikes_further_apart_than_n_do_not_add_up(self) -> None:
        """One of every six: never three of ten."""
        values = [1.0] * 10 + [50.0, 1.0, 1.0, 1.0, 1.0, 1.0] * 10
        assert stop_step(plain(), norms(values)) is None

    def test_spikes_do_not_join_the_baseline(self) -> None:
        """Two huge ones; then 12 is still twelve times the typical norm."""
        values = [1.0] * 5 + [1e6, 1e6] + [1.0] * 12 + [12.0] * 3
        assert stop_step(plain(), norms(values)) == 21

    def test_too_short_a_history_judges_nothing(self) -> None:
        """The first five norms are the history, whatever they are."""
        assert stop_step(plain(), norms([1.0, 50.0, 50.0, 50.0, 50.0])) is None

    def test_a_first_huge_norm_is_no_yardstick(self) -> None:
        """The median ignores it: spikes at 6, 7, 8."""
        values = [1e6] + [1.0] * 5 + [50.0, 50.0, 50.0]
        assert stop_step(plain(), norms(values)) == 8

    def test_skipped_steps_missing_and_nan_norms_are_no_observation(self) -> None:
        """Three real spikes at 6, 8, 10, and none of the others counts."""
        reports = norms([1.0] * 6 + [50.0, None, 50.0, math.nan, 50.0])
        skipped = {"grad_norm": 1e9, "step_skipped": True}
        assert stop_step(plain(), reports) == 10
        assert stop_step(plain(), [*reports[:6], *[skipped] * 9]) is None

    def test_zero_gradients_are_no_baseline(self) -> None:
        """A frozen start must not make every later norm a spike."""
        assert stop_step(plain(), norms([0.0] * 10 + [1.0] * 30)) is None

    def test_max_norm_needs_no_history(self) -> None:
        """Spikes at 0, 1, 2."""
        rule = plain(max_norm=10.0)
        assert stop_step(rule, norms([11.0, 12.0, 13.0])) == 2
        assert stop_step(rule, norms([10.0] * 20)) is None

    def test_warm_up_is_watched_but_not_cut(self) -> None:
        """The history gathers from the first step."""
        values = [1.0] * 10 + [50.0] * 5
        assert stop_step(plain(), norms(values), warmup_steps=13) == 13
        assert warn_steps(plain(), norms(values), warmup_steps=13) == [12]

    def test_a_restart_before_every_report_changes_nothing(self) -> None:
        """Baseline, spikes and counters survive."""
        values = [1.0] * 10 + [50.0, 1.0, 80.0, 90.0]
        assert stop_step_restarted(plain(), norms(values)) == 13

    def test_the_finding_says_what_was_seen(self) -> None:
        """Value, threshold and sentence."""
        found = watch(plain(), norms([1.0] * 10 + [50.0, 1.0, 80.0, 90.0]))[-1].cause
        assert found is not None
        assert (found.metric, found.value, found.threshold) == ("grad_norm", 90.0, 10.0)
        assert found.message.startswith(
            "grad_norm = 90 at step 13, over 10; 3 of the last 10 norms were, from step"
            " 10 on."
        )


class TestHolds:
    """What each hold keeps from being cut."""

    def test_a_lasting_explosion_with_the_loss_gone_is_cut(self) -> None:
        """The third spike, whose five losses are three bad ones."""
        assert stop_step(GradientExplosion(), training([50.0] * 9, level=5.0)) == 202

    def test_the_sentence_names_what_the_loss_gave_back(self) -> None:
        """A loss of 5 where training started at 2.1 and reached 0.1."""
        found = watch(GradientExplosion(), training([50.0] * 3, level=5.0))[-1].cause
        assert found is not None
        assert "of the loss's gain is lost" in found.message

    def test_high_norms_with_a_sound_loss_are_held(self) -> None:
        """And become the new normal: the warnings end."""
        reports = training([20.0] * 100, level=0.1)
        assert stop_step(GradientExplosion(), reports) is None
        steps = warn_steps(GradientExplosion(holds=(LossKept(),)), reports)
        assert steps[0] == 202
        assert steps[-1] < 280

    def test_norms_that_were_as_high_before_are_held(self) -> None:
        """Norms of 30 at the start, 1 later, 50 at the end."""
        reports = training([50.0] * 9, level=5.0)
        for report in reports[:20]:
            report["grad_norm"] = 30.0
        held = GradientExplosion(holds=(BelowHighWater(),))
        assert stop_step(held, reports) is None
        assert stop_step(GradientExplosion(holds=(LossKept(),)), reports) == 202

    def test_the_first_hundred_norms_are_held(self) -> None:
        """Spikes from step 95 on: the 100th norm is at step 99."""
        reports = training([50.0] * 60, level=5.0, before=95)
        assert stop_step(GradientExplosion(holds=(EarlySteps(),)), reports) == 99

    def test_a_fifth_of_the_budget_ends_the_early_steps(self) -> None:
        """20 of 100 reports: one report stands for many steps."""
        reports = training([50.0] * 9, level=5.0, before=30)
        rule = GradientExplosion(holds=(EarlySteps(),))
        assert stop_step(rule, reports) is None
        assert stop_step(rule, reports, budget_steps=100) == 32

    def test_a_rate_warm_up_prolongs_the_early_steps(self) -> None:
        """Peak at step 80: held until 240."""
        reports = training([50.0] * 60, level=5.0, before=230)
        for step, report in enumerate(reports):
            report["lr"] = 0.001 * min(step, 80)
        rule = GradientExplosion(holds=(EarlySteps(),))
        assert stop_step(rule, reports) == 240

    def test_without_any_loss_it_only_warns(self) -> None:
        """Nothing tells whether training suffers."""
        reports = norms([1.0] * 150 + [50.0] * 5)
        assert stop_step(GradientExplosion(), reports) is None
        assert 152 in warn_steps(GradientExplosion(), reports)

    def test_the_metric_stands_in_for_the_loss(self) -> None:
        """An accuracy that falls back to its start."""
        reports = [{"acc": 0.1 + i / 250, "grad_norm": 1.0} for i in range(200)]
        reports += [{"acc": 0.1, "grad_norm": 50.0}] * 5
        rule = GradientExplosion()
        assert stop_step(rule, reports, metric="acc", mode="max") == 202

    def test_a_loss_takes_over_from_the_metric(self) -> None:
        """The two streams are never mixed."""
        reports: list[dict[str, Any]] = training([50.0] * 5, level=0.1)
        for step, report in enumerate(reports):
            report["acc"] = 0.9 if step < 200 else 0.0
        rule = GradientExplosion()
        assert stop_step(rule, reports, metric="acc", mode="max") is None

    def test_a_restart_changes_nothing_under_holds(self) -> None:
        """The levels of the loss survive too."""
        reports = training([50.0, 2.0] * 9, level=5.0)
        assert stop_step(GradientExplosion(), reports) == 204
        assert stop_step_restarted(GradientExplosion(), reports) == 204


class TestConfiguration:
    """What is refused."""

    @pytest.mark.parametrize(
        ("parameters", "message"),
        [
            ({"factor": 0.5}, "`factor` must be >= 1"),
            ({"factor": "ten"}, "`factor` must be a number"),
            ({"k": 0}, "`k` must be >= 1"),
            ({"k": 11}, "`k` must be <= `n` = 10"),
            ({"n": 65}, "`n` must be <= 64"),
            ({"n": 2.0}, "`n` must be a whole number"),
            ({"min_history": 0}, "`min_history` must be >= 1"),
            ({"window": 5}, "`window` must be >= 10"),
            ({"max_norm": -1.0}, "`max_norm` must be >= 0"),
            ({"holds": ("loss_kept",)}, "`holds` must be a tuple of holds"),
        ],
    )
    def test_a_wrong_value_is_refused(
        self, parameters: dict[str, Any], message: str
    ) -> None:
        """At construction, by name, with advice."""
        with pytest.raises(ConfigError, match=message):
            GradientExplosion(**parameters)

    @pytest.mark.parametrize(
        ("kind", "name"),
        [(EarlySteps, "readings"), (BelowHighWater, "factor"), (LossKept, "give_back")],
    )
    def test_a_wrong_hold_is_refused(self, kind: type, name: str) -> None:
        """At construction, by name."""
        with pytest.raises(ConfigError, match=f"`{name}` must be a number >= 0"):
            kind(**{name: -1})
