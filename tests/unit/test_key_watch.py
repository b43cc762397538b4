"""Keys that never come are named once, with the nearest that did."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tests.unit.probes import Probe, watch
from tune_guard import Keys
from tune_guard.notices import Notices
from tune_guard.rules import NonFinite, Plateau


def test_a_metric_that_never_comes_is_named_once_with_the_nearest_key() -> None:
    """One notice a sweep, after ten reports."""
    notices = Notices()
    for _ in range(2):
        monitor = watch(Plateau(), metric="val_los", notices=notices)
        for step in range(30):
            monitor.observe(step, {"val_loss": 1.0})
    (message,) = notices.messages.values()
    assert "none of the first 10 reports" in message
    assert "Did you mean `val_loss`?" in message


def test_a_short_trial_names_its_missing_metric_at_its_end() -> None:
    """Three epochs never make ten reports."""
    monitor = watch(Plateau(), metric="val_los")
    for step in range(3):
        monitor.observe(step, {"val_loss": 1.0})
    assert monitor.notices.messages == {}
    monitor.finish()
    (message,) = monitor.notices.messages.values()
    assert "none of the first 3 reports" in message
    assert "Did you mean `val_loss`?" in message


def test_a_metric_that_was_due_and_never_came_is_named_with_the_nearest_key() -> None:
    """Once, the tenth time; what came in its place is no report."""
    monitor = watch(Plateau(), metric="val_los")
    for _ in range(9):
        monitor.miss({"val_loss": 1.0})
    assert monitor.notices.messages == {}
    for _ in range(9):
        monitor.miss({"val_loss": 1.0})
    monitor.finish()
    (message,) = monitor.notices.messages.values()
    assert "`val_los` was in none of the first 10 reports" in message
    assert message.endswith("Did you mean `val_loss`?")


def test_a_metric_that_comes_late_was_not_missing() -> None:
    """An epoch without it says nothing."""
    monitor = watch(Plateau(), metric="val_loss")
    for _ in range(9):
        monitor.miss({"train_loss": 1.0})
    monitor.observe(0, {"val_loss": 1.0})
    monitor.miss({"train_loss": 1.0})
    monitor.finish()
    assert monitor.notices.messages == {}


def test_advice_on_the_metric_is_none_on_other_keys() -> None:
    """It stands in for the nearest key, of the metric alone."""
    monitor = watch(Plateau(), metric="val_loss", fresh_key="epoch")
    monitor.miss({"train_loss": 1.0}, "Turn validation on.")
    monitor.observe(0, {"val_loss": 1.0, "epoc": 1})
    monitor.finish()
    (message,) = monitor.notices.messages.values()
    assert message.startswith("`epoch` was in none of the first 1 reports")
    assert message.endswith("Did you mean `epoc`?")


def test_a_short_trial_with_its_metric_names_nothing_at_its_end() -> None:
    """Nor does one that ended before its first report."""
    for reports in (3, 0):
        monitor = watch(Plateau(), metric="val_loss")
        for step in range(reports):
            monitor.observe(step, {"val_loss": 1.0})
        monitor.finish()
        assert monitor.notices.messages == {}


def test_a_metric_that_comes_late_is_not_named() -> None:
    """Evaluations may be ten epochs apart."""
    monitor = watch(Plateau(), metric="val_loss")
    for step in range(30):
        monitor.observe(step, {"val_loss": 1.0} if step == 9 else {"x": 1.0})
    assert monitor.notices.messages == {}


def test_a_marker_that_never_comes_is_named() -> None:
    """Without its marker no value counts, and nobody would know."""
    monitor = watch(Plateau(), fresh_key="evalepoch")
    for step in range(10):
        monitor.observe(step, {"loss": 1.0, "eval_epoch": step})
    assert list(monitor.notices.messages) == ["missing:evalepoch"]
    message = monitor.notices.messages["missing:evalepoch"]
    assert "`eval_epoch`" in message
    assert "no value of the metric counts without its marker" in message


def test_a_configured_signal_and_a_watched_key_that_never_come_are_named() -> None:
    """Keys that were asked for by name, in the policy or in a rule."""
    rule = NonFinite(metrics=("los", "loss"))
    monitor = watch(rule, keys=Keys(grad_norm="gradnorm"))
    for step in range(10):
        monitor.observe(step, {"loss": 1.0})
    assert sorted(monitor.notices.messages) == ["missing:gradnorm", "missing:los"]


def test_reports_between_steps_do_not_use_the_notices_up() -> None:
    """A trainer may send a hundred gradient norms before its first evaluation."""
    monitor = watch(Plateau())
    for _ in range(100):
        monitor.observe(None, {"grad_norm": 1.0})
    assert monitor.notices.messages == {}


@dataclass(frozen=True, slots=True, kw_only=True)
class NeedsTelemetry(Probe):
    """A rule that reads what few trainers report."""

    id: ClassVar[str] = "needs_telemetry"
    needs: ClassVar[tuple[str, ...]] = ("gpu_reasons", "gpu_thermal_ratio")


def test_rules_without_telemetry_say_once_that_they_are_inactive() -> None:
    """Trial A reports telemetry and trial B does not: one notice, for B."""
    notices = Notices()
    trials = [watch(NeedsTelemetry(), notices=notices) for _ in range(3)]
    for step in range(6):
        assert bool(notices.messages) == (step > 4)
        trials[0].observe(step, {"loss": 1.0, "gpu_thermal_ratio": 0.0})
        trials[1].observe(step, {"loss": 1.0})
        trials[2].observe(step, {"loss": 1.0})
    (message,) = notices.messages.values()
    assert "needs_telemetry" in message
    assert "gpu_reasons" in message
