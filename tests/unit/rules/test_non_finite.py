from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tests.unit.rules.watching import (
    losses,
    stop_step,
    stop_step_restarted,
    warn_steps,
    watch,
)
from tune_guard import ConfigError, Keys
from tune_guard.rules import NonFinite

NAN, INF = math.nan, math.inf
PLAIN = NonFinite(reward_gap=0, norm_alone=0, skipped_losses=0)
"""The rule without a hold."""


# ----------------------------------------------------------------------- trigger


@pytest.mark.parametrize("bad", [NAN, INF, -INF, "NaN", "-Infinity", np.float32("nan")])
def test_a_non_finite_loss_stops_at_its_step(bad: object) -> None:
    """NaN and both infinities, as numbers and as text."""
    assert stop_step(NonFinite(), losses([1.0, 0.9, bad, 0.8])) == 2


def test_the_first_step_is_judged_too() -> None:
    """A minimised loss that was never finite is dead."""
    assert stop_step(NonFinite(), losses([NAN, 1.0])) == 0


def test_there_is_no_warm_up() -> None:
    """Fatal rules are always armed."""
    assert stop_step(NonFinite(), losses([1.0, NAN]), warmup_steps=100) == 1


@pytest.mark.parametrize(("consecutive", "step"), [(1, 1), (2, 4), (3, 5), (4, None)])
def test_so_many_in_a_row_stop_at_the_last_of_them(
    consecutive: int, step: int | None
) -> None:
    """A finite reading between them starts the count anew."""
    curve = losses([1.0, NAN, 1.0, NAN, INF, NAN, 1.0])
    assert stop_step(NonFinite(consecutive=consecutive), curve) == step


def test_a_step_without_a_reading_neither_counts_nor_resets() -> None:
    """Missing, None and unusable values are no observation."""
    curve = losses([1.0, NAN, None, "x", [1.0, 2.0], NAN])
    assert stop_step(NonFinite(consecutive=2), curve) == 5


def test_each_stream_counts_by_itself() -> None:
    """One bad loss and one bad norm are not two in a row."""
    reports = [{"loss": 1.0, "grad_norm": 1.0}, {"loss": NAN}, {"grad_norm": NAN}]
    assert stop_step(NonFinite(consecutive=2, norm_alone=0), reports) is None


def test_the_metric_is_watched_beside_the_loss() -> None:
    """A validation loss may break while the training loss is finite."""
    reports = [{"loss": 1.0, "val": 1.0}, {"loss": 1.0, "val": NAN}]
    assert stop_step(NonFinite(), reports, metric="val") == 1


def test_a_metric_that_comes_and_goes_is_watched_when_it_comes() -> None:
    """Evaluations are rarer than reports."""
    reports: list[dict[str, Any]] = [{"loss": 1.0}, {"loss": 1.0, "val": NAN}]
    assert stop_step(NonFinite(), reports, metric="val") == 1


def test_a_negative_norm_is_no_norm() -> None:
    """DeepSpeed reports -1 where it could not compute one."""
    reports = [{"grad_norm": 1.0}, {"grad_norm": -1.0}]
    assert stop_step(PLAIN, reports) == 1
    assert stop_step(PLAIN, [{"grad_norm": -0.0}, {"grad_norm": 0.0}]) is None


def test_a_negative_loss_is_finite() -> None:
    """Log-likelihoods of densities are below zero."""
    assert stop_step(PLAIN, losses([-1.0, -1e30])) is None


def test_the_largest_floats_are_finite() -> None:
    """And an integer too large for a float is not."""
    assert stop_step(PLAIN, losses([1.7e308, -1.7e308])) is None
    assert stop_step(PLAIN, losses([1.0, 10**400])) == 1


# -------------------------------------------------------------- which are watched


def test_named_keys_replace_the_usual_streams() -> None:
    """With `metrics`, nothing else is watched."""
    rule = NonFinite(metrics=("aux/kl",))
    assert stop_step(rule, [{"loss": NAN}, {"loss": NAN, "aux": {"kl": 1.0}}]) is None
    assert stop_step(rule, [{"loss": 1.0, "aux": {"kl": NAN}}]) == 0


def test_a_named_signal_is_found_under_its_configured_key() -> None:
    """And the finding names that key."""
    rule = NonFinite(metrics=("grad_norm",), norm_alone=0)
    verdicts = watch(
        rule, [{"gnorm": 1.0}, {"gnorm": INF}], keys=Keys(grad_norm="gnorm")
    )
    assert verdicts[1].stop
    assert verdicts[1].findings[0].metric == "gnorm"


def test_every_key_named_like_a_loss_is_watched_once_it_was_finite() -> None:
    """Whatever its name; one that was never finite is just not evaluated."""
    reports = [{"score": 1.0, "kl_loss": 0.1}, {"score": 1.0, "kl_loss": NAN}]
    assert stop_step(NonFinite(), reports, metric="score", mode="max") == 1
    never = [{"score": 1.0, "kl_loss": NAN}] * 5
    assert stop_step(NonFinite(), never, metric="score", mode="max") is None


def test_the_finding_says_what_was_seen() -> None:
    """The key, the value, how many in a row and the last finite one."""
    found = watch(NonFinite(consecutive=2), losses([0.25, NAN, NAN]))[2].findings[0]
    assert found.metric == "loss"
    assert math.isnan(found.value)
    assert found.threshold is None
    assert found.message.startswith(
        "loss = nan at step 2 (2 in a row; last finite 0.25)"
    )


# --------------------------------------------------------- what only looks like it


def test_a_skipped_steps_norm_is_an_overflow() -> None:
    """The gradient scaler did not touch the weights: any number of them."""
    reports = [{"loss": 1.0, "grad_norm": INF, "step_skipped": True}] * 50
    assert stop_step(PLAIN, reports) is None
    taken = {"loss": 1.0, "grad_norm": INF, "step_skipped": False}
    assert stop_step(PLAIN, [*reports, taken]) == 50


def test_skipped_steps_do_not_hide_what_came_before() -> None:
    """An overflow between two NaN norms neither counts nor resets."""
    bad, skipped = {"grad_norm": NAN}, {"grad_norm": INF, "step_skipped": True}
    rule = NonFinite(consecutive=2, norm_alone=0)
    assert stop_step(rule, [bad, skipped, skipped, bad]) == 3


def test_a_loss_that_overflowed_in_skipped_steps_is_excused_for_a_while() -> None:
    """Three by default; without the hold, not once."""
    reports = [{"loss": 1.0}] + [{"loss": INF, "step_skipped": True}] * 9
    assert stop_step(NonFinite(), reports) == 4
    assert warn_steps(NonFinite(), reports) == [1, 2, 3]
    assert stop_step(PLAIN, reports) == 1


def test_a_norm_alone_warns_as_long_as_the_loss_is_sound() -> None:
    """Poisoned weights show in the next loss; here they do not, 32 times."""
    reports = [{"loss": 1.0, "grad_norm": NAN}] * 40
    assert stop_step(NonFinite(), reports) == 32
    assert warn_steps(NonFinite(), reports) == list(range(32))
    assert stop_step(PLAIN, reports) == 0


@pytest.mark.parametrize("loss", [0.0, -0.0, NAN, INF, None])
def test_a_norm_beside_no_sound_loss_stops_at_once(loss: float | None) -> None:
    """An exact 0.0 is what a trainer that filters NaN logs."""
    reports = [{"loss": 1.0, "grad_norm": 1.0}, {"loss": loss, "grad_norm": NAN}]
    assert stop_step(NonFinite(), reports) == 1


def test_a_masked_nan_is_found_at_the_norm() -> None:
    """Loss 0.0 beside a NaN norm: the finding names the norm."""
    reports = [{"loss": 2.1, "grad_norm": 1.2}] + [{"loss": 0.0, "grad_norm": NAN}] * 4
    verdict = watch(NonFinite(consecutive=3), reports)[3]
    assert (verdict.step, verdict.findings[0].metric) == (3, "grad_norm")


def test_a_sound_minimised_metric_excuses_a_norm_where_no_loss_is_reported() -> None:
    """The metric is the loss then; a maximised one says nothing about it."""
    reports = [{"val": 1.0, "grad_norm": NAN}]
    assert stop_step(NonFinite(), reports, metric="val", mode="min") is None
    assert stop_step(NonFinite(), reports, metric="val", mode="max") == 0


def test_a_reward_that_was_never_finite_is_no_reading_yet() -> None:
    """It is NaN until the first episode ends, however long that takes."""
    curve = losses([NAN] * 300, key="reward")
    assert stop_step(NonFinite(), curve, metric="reward", mode="max") is None


def test_a_reward_may_have_gaps_and_does_not_end_in_one() -> None:
    """Twenty by default, at the twenty-first it stops."""
    curve = losses([1.0] + [NAN] * 20 + [1.0] + [NAN] * 30, key="reward")
    policy = {"metric": "reward", "mode": "max"}
    assert stop_step(NonFinite(), curve, **policy) == 42
    plain = losses([1.0, NAN], key="reward")
    assert stop_step(NonFinite(reward_gap=0), plain, **policy) == 1


def test_a_non_finite_loss_beside_a_reward_stops_at_once() -> None:
    """Only the reward itself may have gaps."""
    reports = [{"reward": 1.0, "loss": 1.0}, {"reward": NAN, "loss": NAN}]
    assert stop_step(NonFinite(), reports, metric="reward", mode="max") == 1


# -------------------------------------------------------------- restart, parameters


def test_counts_survive_a_restart_after_every_report() -> None:
    """Of every stream, also of those that were found on the way."""
    curve = losses([1.0, NAN, NAN, 1.0, NAN, NAN, NAN])
    assert stop_step_restarted(NonFinite(consecutive=3), curve) == 6
    other = losses([1.0, NAN, NAN, NAN], key="kl_loss")
    rule = NonFinite(consecutive=3)
    assert stop_step_restarted(rule, other, metric="score", mode="max") == 3


@pytest.mark.parametrize("metrics", ["loss", (), [], [5], ["loss", ""], 5, {"loss"}])
def test_metrics_that_are_no_list_of_keys_are_refused(metrics: Any) -> None:
    """A bare text would be taken letter by letter."""
    with pytest.raises(ConfigError, match="`metrics` must be a list of keys"):
        NonFinite(metrics=metrics)


def test_of_several_bad_streams_the_loss_is_named() -> None:
    """Then the metric, then the norm: the cause before what follows from it."""
    reports = [{"grad_norm": NAN, "val": NAN, "loss": NAN}]
    verdict = watch(NonFinite(), reports, metric="val")[0]
    assert verdict.findings[0].metric == "loss"
