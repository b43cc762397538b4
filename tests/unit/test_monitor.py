from __future__ import annotations

import copy
import json
import math
import pickle
import reprlib
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
import torch

from tune_guard import ConfigError, Keys, Monitor, Observation, Policy
from tune_guard.notices import Notices
from tune_guard.record import StopRecord
from tune_guard.rules import NonFinite, Plateau
from tune_guard.rules.base import Context, Detector, Rule
from tune_guard.verdict import Blame, Finding, Level, Tier, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe(Rule):
    """A rule that fires where the loss is above a level, or does as it is told."""

    id: ClassVar[str] = "probe"
    tier: ClassVar[Tier] = Tier.STABILITY
    blame: ClassVar[Blame] = Blame.CONFIG

    above: float = 10.0
    start_raises: Exception | None = None
    update_raises: Exception | None = None
    returns: Any = None

    def start(self, context: Context) -> Detector:
        """Return a detector, or raise."""
        if self.start_raises is not None:
            raise self.start_raises
        return _ProbeDetector(self, context)


class _ProbeDetector(Detector):
    __slots__ = ("steps",)

    def __init__(self, rule: Probe, context: Context) -> None:
        super().__init__(rule, context)
        self.steps: list[float] = []

    def update(self, observation: Observation) -> Finding | None:
        self.steps.append(observation.step)
        rule = self.rule
        if rule.update_raises is not None:
            raise rule.update_raises
        if rule.returns is not None:
            return rule.returns  # type: ignore[no-any-return]
        loss = observation.loss
        if loss is None or loss <= rule.above:
            return None
        return self.finding(
            observation, metric="loss", value=loss, threshold=rule.above, message="high"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineProbe(Probe):
    """The same, but its state describes the machine."""

    id: ClassVar[str] = "machine_probe"

    def start(self, context: Context) -> Detector:
        """Return a detector."""
        return _MachineProbeDetector(self, context)


class _MachineProbeDetector(_ProbeDetector):
    __slots__ = ()
    machine_bound = True


class Unprintable(Exception):  # noqa: N818 - what matters is that it cannot be shown
    """An error that cannot be shown."""

    def __repr__(self) -> str:
        raise RuntimeError

    __str__ = __repr__


def watch(*rules: Rule, notices: Notices | None = None, **policy: Any) -> Monitor:
    """Return a monitor of a loss that is minimised."""
    fields: dict[str, Any] = {"metric": "loss", "mode": "min", **policy}
    return Monitor(Policy(rules=rules, **fields), trial_id="t1", notices=notices)


def feed(monitor: Monitor, losses: dict[int, Any]) -> list[int]:
    """Report losses by step and return the steps whose verdict was to stop."""
    return [s for s, loss in losses.items() if monitor.observe(s, {"loss": loss}).stop]


def steps_of(monitor: Monitor, rule_id: str = "probe") -> list[int]:
    """Return the steps that a probe was shown."""
    return monitor.detectors[rule_id].steps  # type: ignore[attr-defined, no-any-return]


# --------------------------------------------------------------------- judging


def test_a_verdict_to_stop_is_final() -> None:
    """Later reports return the verdict again, whatever they say."""
    monitor = watch(NonFinite())
    assert feed(monitor, {0: 1.0, 1: math.nan, 2: 1.0, 3: 1.0}) == [1, 2, 3]
    assert (monitor.verdict.reason, monitor.verdict.step) == ("non_finite", 1)


def test_the_highest_tier_decides_and_every_finding_is_kept() -> None:
    """A fatal finding comes before one of stability, in any order of the rules."""
    monitor = watch(Probe(), NonFinite(metrics=("norm",)))
    verdict = monitor.observe(0, {"loss": 11.0, "norm": math.nan})
    assert [found.rule for found in verdict.findings] == ["non_finite", "probe"]


def test_a_stop_comes_before_a_warning_of_a_higher_tier() -> None:
    """What cuts is the cause, not what only warns."""
    rules = (Probe(), NonFinite(metrics=("norm",)))
    monitor = watch(*rules, actions={"non_finite": "warn"})
    verdict = monitor.observe(0, {"loss": 11.0, "norm": math.nan})
    assert (verdict.reason, verdict.stop) == ("probe", True)


def test_every_rule_sees_every_observation() -> None:
    """Nothing short-circuits: a rule after one that fires is shown the step too."""
    monitor = watch(NonFinite(), Probe())
    feed(monitor, {0: 1.0, 1: math.nan})
    assert steps_of(monitor) == [0, 1]


def test_stability_rules_warn_below_the_warm_up_and_cut_from_it_on() -> None:
    """Steps below `warmup_steps` are warm-up; the step equal to it is judged."""
    monitor = watch(Probe(), warmup_steps=2)
    assert feed(monitor, {0: 11.0, 1: 11.0, 2: 11.0}) == [2]
    assert monitor.warnings == {"probe": 0}


def test_fatal_rules_have_no_warm_up() -> None:
    """NaN at the first step of a warm-up is dead all the same."""
    assert feed(watch(NonFinite(), warmup_steps=100), {0: math.nan}) == [0]


def test_the_action_warn_records_and_does_not_cut() -> None:
    """`actions={"non_finite": "warn"}` leaves the trial running."""
    monitor = watch(NonFinite(), actions={"non_finite": "warn"})
    assert feed(monitor, {0: 1.0, 1: math.nan}) == []
    assert monitor.verdict.findings[0].holds == ("action",)
    assert monitor.record().warnings == ("non_finite@1",)


def test_the_action_off_disarms_a_rule() -> None:
    """A rule that is off is not even started."""
    monitor = watch(Probe(), actions={"*": "off"})
    assert feed(monitor, {0: 11.0}) == []
    assert monitor.warnings == {}


def test_holdout_lets_condemned_trials_run_on_but_never_dead_ones() -> None:
    """Close to every trial is in a holdout of 0.999; fatal rules cut it still."""
    monitor = watch(Probe(), NonFinite(), holdout=0.999)
    assert monitor.in_holdout
    assert feed(monitor, {0: 11.0, 1: math.nan}) == [1]
    assert monitor.warnings == {"probe": 0}


def test_the_holdout_share_is_as_asked() -> None:
    """About a tenth of 2,000 names, and the same ones each time."""
    policy = Policy(metric="loss", mode="min", rules=(), holdout=0.1)
    held = [Monitor(policy, trial_id=f"trial_{i}").in_holdout for i in range(2000)]
    assert 150 < sum(held) < 250
    assert held == [
        Monitor(policy, trial_id=f"trial_{i}").in_holdout for i in range(2000)
    ]


def test_a_trial_name_that_is_no_valid_text_can_be_held_out() -> None:
    """File names may hold bytes that are no text."""
    policy = Policy(metric="loss", mode="min", rules=(Probe(),), holdout=0.5)
    assert Monitor(policy, trial_id="t\udcff").observe(0, {"loss": 1.0}).stop is False


# ---------------------------------------------------------------- never raises


@pytest.mark.parametrize(
    "returned",
    [
        True,
        "stop",
        5,
        object(),
        Verdict(Level.STOP),
        Finding(
            rule="probe",
            step=0,
            tier="fatal",  # type: ignore[arg-type]
            blame=Blame.CONFIG,
            metric="loss",
            value=1.0,
            threshold=None,
            message="",
            level="stop",  # type: ignore[arg-type]
        ),
    ],
    ids=["bool", "text", "int", "object", "verdict", "malformed"],
)
def test_a_rule_that_returns_no_finding_is_switched_off(returned: object) -> None:
    """A third-party rule's mistake leaves the other rules armed."""
    monitor = watch(Probe(returns=returned), NonFinite())
    assert feed(monitor, {0: 1.0, 1: math.nan}) == [1]
    assert "rule:probe" in monitor.notices.messages


@pytest.mark.parametrize("error", [ValueError("x"), Unprintable(), RecursionError()])
@pytest.mark.parametrize("when", ["start_raises", "update_raises"])
def test_a_rule_that_raises_is_switched_off_and_named_once(
    when: str, error: Exception
) -> None:
    """One notice for the whole sweep, even where the error cannot be shown."""
    notices = Notices()
    for _ in range(3):
        monitor = watch(Probe(**{when: error}), NonFinite(), notices=notices)
        assert feed(monitor, {0: 1.0, 1: 1.0, 2: math.nan}) == [2]
    assert list(notices.messages) == ["rule:probe"]


@pytest.mark.parametrize(
    "report", [None, 5, "loss", [("loss", 1.0)], object()], ids=lambda r: str(type(r))
)
def test_a_report_that_is_no_mapping_is_named_and_passed_over(report: Any) -> None:
    """The next report is judged as ever."""
    monitor = watch(NonFinite())
    assert not monitor.observe(0, report).stop
    assert feed(monitor, {1: math.nan}) == [1]
    assert len(monitor.notices.messages) == 1


class RaisingReport(dict[str, Any]):
    """A report that cannot be read."""

    def __iter__(self) -> Any:
        raise Unprintable

    def items(self) -> Any:
        """Raise as well."""
        raise Unprintable


def test_a_report_that_raises_is_named_and_passed_over() -> None:
    """Even where the error itself cannot be shown."""
    monitor = watch(NonFinite())
    assert not monitor.observe(0, RaisingReport(loss=1.0)).stop
    assert feed(monitor, {1: math.nan}) == [1]


def test_a_report_that_holds_itself_is_read() -> None:
    """Also when its keys are listed for a notice."""
    monitor = watch(NonFinite(), metric="score")
    report: dict[str, Any] = {"loss": 1.0}
    report["a"] = report["b"] = report
    for step in range(12):
        assert not monitor.observe(step, report).stop
    assert "missing:score" in monitor.notices.messages


# ------------------------------------------------------------ steps and markers


def test_a_step_that_was_seen_is_no_observation() -> None:
    """Conventions: state goes on at new steps only, and repetition is named once."""
    monitor = watch(Probe())
    feed(monitor, {0: 1.0, 1: 1.0})
    monitor.observe(1, {"loss": 99.0})
    monitor.observe(0, {"loss": 99.0})
    assert steps_of(monitor) == [0, 1]
    assert list(monitor.notices.messages) == ["repeated"]


@pytest.mark.parametrize(
    "step", [3, 3.0, 3.9, " 3", np.int64(3), np.array([3]), torch.tensor(3)]
)
def test_a_step_in_any_wrapping_is_a_whole_number(step: Any) -> None:
    """The record holds a plain int, which every storage takes."""
    monitor = watch(NonFinite())
    monitor.observe(step, {"loss": math.nan})
    assert type(monitor.verdict.step) is int
    assert monitor.verdict.step == 3


@pytest.mark.parametrize("step", [math.nan, math.inf, "abc", True, object(), [1, 2]])
def test_a_step_that_is_no_number_is_named_once(step: Any) -> None:
    """Such reports are passed over, and the next is judged."""
    monitor = watch(NonFinite())
    assert not monitor.observe(step, {"loss": math.nan}).stop
    assert list(monitor.notices.messages) == ["step"]
    assert feed(monitor, {0: math.nan}) == [0]


def test_signals_between_reports_count_for_the_last_step() -> None:
    """They neither advance the step nor repeat it."""
    monitor = watch(NonFinite(metrics=("norm",)))
    monitor.observe(None, {"norm": 1.0})
    monitor.observe(4, {"loss": 1.0})
    assert monitor.observe(None, {"norm": math.nan}).step == 4
    assert monitor.notices.messages == {}


@pytest.mark.parametrize(
    "markers",
    [
        [0, 0, 5, 5],
        ["a", "a", "b", "b"],
        [False, False, True, True],
        [np.int64(0), 0, 5.0, torch.tensor(5)],
        [0, None, 5, math.nan],
        [0, math.inf, 5, -math.inf],
    ],
    ids=str,
)
def test_a_value_counts_only_when_its_marker_moved(markers: list[Any]) -> None:
    """The same number under an unmoved marker is a copy."""
    monitor = watch(Plateau(patience=2, holds=()), fresh_key="eval_epoch")
    for step, marker in enumerate(markers):
        monitor.observe(step, {"loss": 1.0, "eval_epoch": marker})
    assert monitor.state()["rules"]["plateau"][0] == 1


def test_the_marker_may_lie_nested_and_have_blanks() -> None:
    """It is found as any other key is."""
    monitor = watch(Plateau(patience=1, holds=()), fresh_key=" eval/epoch ")
    stops = [
        monitor.observe(i, {"loss": 1.0, "eval": {"epoch ": i // 2}}).stop
        for i in range(3)
    ]
    assert stops == [False, False, True]


def test_a_copy_is_no_loss_either_where_the_metric_is_the_loss() -> None:
    """A rule on the loss must not take copies for readings."""
    monitor = watch(NonFinite(metrics=("loss",), consecutive=2), fresh_key="epoch")
    for step in range(3):
        monitor.observe(step, {"loss": math.nan, "epoch": 0})
    assert not monitor.verdict.stop


def test_a_copied_metric_leaves_another_loss_alone() -> None:
    """Only the metric is carried forward; the loss is of its own step."""
    monitor = watch(NonFinite(), metric="val_loss", fresh_key="epoch")
    monitor.observe(0, {"val_loss": 1.0, "loss": 1.0, "epoch": 0})
    assert monitor.observe(1, {"val_loss": 1.0, "loss": math.nan, "epoch": 0}).stop


def test_signals_before_the_first_report_count_for_step_0() -> None:
    """A gradient may be NaN before anything was reported."""
    monitor = watch(NonFinite(metrics=("norm",)))
    assert monitor.observe(None, {"norm": math.nan}).step == 0


def test_reports_to_ignore_are_not_judged() -> None:
    """A sanity check before training may hold anything."""
    monitor = watch(NonFinite(), ignore_where={"phase": "sanity", "a/b": True})
    report = {"loss": math.nan, "phase": "sanity", "a": {"b": np.bool_(True)}}
    assert not monitor.observe(0, report).stop
    assert monitor.observe(0, {**report, "a": {}}).stop


def test_an_array_where_a_text_was_expected_is_not_to_ignore() -> None:
    """What cannot be compared is not the same."""
    monitor = watch(NonFinite(), ignore_where={"phase": "sanity"})
    assert monitor.observe(0, {"loss": math.nan, "phase": np.array([1, 2])}).stop


# --------------------------------------------------------------------- notices


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


# -------------------------------------------------------------- attempts, rewind


def test_a_new_attempt_takes_a_stop_back() -> None:
    """A retry is a new chance, and counts as an attempt."""
    monitor = watch(NonFinite())
    feed(monitor, {0: 1.0, 1: math.nan})
    monitor.begin_attempt(1)
    assert not monitor.observe(1, {"loss": 1.0}).stop
    assert monitor.record().attempt == 2


def test_an_attempt_from_the_start_forgets_everything_it_saw() -> None:
    """Steps, best value, marker and the rules' counts begin anew."""
    monitor = watch(Plateau(patience=2, holds=()), fresh_key="epoch")
    monitor.observe(0, {"loss": 0.1, "epoch": 0})
    monitor.begin_attempt(0)
    monitor.observe(0, {"loss": 3.0, "epoch": 0})
    assert (monitor.best_value, monitor.best_step) == (3.0, 0)
    assert monitor.state()["rules"]["plateau"][0] == 0


def test_a_changed_configuration_starts_anew_at_any_step() -> None:
    """Population-based training hands over another trial's weights and values."""
    monitor = watch(Plateau(patience=2, holds=()))
    feed(monitor, {0: 0.1, 1: 0.1})
    monitor.begin_attempt(2, config_changed=True)
    assert feed(monitor, {2: 5.0, 3: 5.0, 4: 5.0}) == [4]
    assert monitor.best_value == 5.0


def test_a_rewind_goes_back_to_the_newest_keyframe_before_it() -> None:
    """The reports after the checkpoint never happened."""
    monitor = watch(Probe())
    feed(monitor, {0: 1.0, 1: 1.0})
    monitor.keyframe()
    feed(monitor, {2: 0.5, 3: 0.1})
    monitor.keyframe()
    feed(monitor, {4: 0.1})
    monitor.begin_attempt(3)
    assert monitor.best_value == 1.0
    feed(monitor, {3: 2.0, 4: 2.0})
    assert steps_of(monitor) == [0, 1, 3, 4]


def test_a_rewind_without_a_keyframe_takes_the_steps_again() -> None:
    """Better a reading too many than a trial that is not judged."""
    monitor = watch(Probe())
    feed(monitor, {0: 1.0, 1: 1.0, 2: 1.0})
    monitor.begin_attempt(1)
    feed(monitor, {0: 1.0, 1: 1.0, 2: 11.0})
    assert monitor.verdict.step == 2


def test_a_continued_attempt_keeps_its_counts() -> None:
    """A job in short time slots still runs out of patience."""
    monitor = watch(Plateau(patience=3, holds=()))
    feed(monitor, {0: 0.5, 1: 0.5, 2: 0.5})
    monitor.begin_attempt(3)
    assert feed(monitor, {3: 0.5}) == [3]


def test_what_describes_the_machine_starts_anew_with_an_attempt() -> None:
    """Another machine has other step times."""
    monitor = watch(Probe(), MachineProbe())
    feed(monitor, {0: 1.0, 1: 1.0})
    monitor.begin_attempt(2)
    feed(monitor, {2: 1.0})
    assert steps_of(monitor) == [0, 1, 2]
    assert steps_of(monitor, "machine_probe") == [2]


# ------------------------------------------------------------------------ state


def through_json(state: dict[str, Any]) -> Any:
    """Store a state as strict JSON and read it back."""
    return json.loads(json.dumps(state, allow_nan=False))


def through_pickle(state: dict[str, Any]) -> Any:
    """Store a state as a pickle and read it back."""
    return pickle.loads(pickle.dumps(state))  # noqa: S301 - our own


@pytest.mark.parametrize("through", [through_json, through_pickle])
def test_counts_survive_a_restart(through: Any) -> None:
    """Two bad readings before and one after are three."""
    first = watch(Plateau(patience=3, holds=()), NonFinite())
    feed(first, {0: 0.5, 1: 0.5, 2: 0.5})
    second = watch(Plateau(patience=3, holds=()), NonFinite())
    second.restore(through(first.state()))
    assert second.state() == first.state()
    assert feed(second, {2: 0.5, 3: 0.5}) == [3]


@pytest.mark.parametrize("through", [through_json, through_pickle])
def test_a_verdict_to_stop_survives_a_restart(through: Any) -> None:
    """With its numbers: a condemned trial that comes back is still condemned."""
    first = watch(NonFinite())
    feed(first, {0: 1.0, 1: math.nan})
    second = watch(NonFinite())
    second.restore(through(first.state()))
    assert second.observe(2, {"loss": 1.0}).stop
    assert repr(second.verdict) == repr(first.verdict)


def test_keyframes_survive_a_restart() -> None:
    """A rewind after a restart finds its way back."""
    first = watch(Probe())
    feed(first, {0: 1.0})
    first.keyframe()
    feed(first, {1: 1.0, 2: 1.0})
    second = watch(Probe())
    second.restore(through_json(first.state()))
    second.begin_attempt(1)
    feed(second, {1: 1.0})
    assert steps_of(second) == [0, 1]


def test_a_monitor_can_be_pickled_and_copied_mid_stream() -> None:
    """Engines do both with what they hold."""
    monitor = watch(Plateau(patience=3, holds=()), NonFinite())
    feed(monitor, {0: 0.5, 1: 0.5})
    for twin in (through_pickle(monitor), copy.deepcopy(monitor)):  # type: ignore[arg-type]
        assert feed(twin, {2: 0.5, 3: 0.5}) == [3]


BROKEN = [None, "x", [], [1], {}, -1, math.nan, True, [None] * 10, {"a": {}}, 10**400]


@pytest.mark.parametrize("broken", BROKEN, ids=reprlib.repr)
@pytest.mark.parametrize("key", sorted(watch().state()))
def test_a_state_with_a_broken_field_never_stops_the_judging(
    key: str, broken: object
) -> None:
    """Whatever was stored, later NaNs are cut and nothing raises."""
    saved = watch(NonFinite(), Plateau(holds=()), Probe())
    feed(saved, {0: 1.0})
    saved.keyframe()
    feed(saved, {1: 1.0})
    monitor = watch(NonFinite(), Plateau(holds=()), Probe())
    monitor.restore({**saved.state(), key: broken})
    assert not monitor.observe(None, {"loss": 1.0}).stop
    monitor.keyframe()
    monitor.begin_attempt(2**62)
    assert monitor.observe(2**62, {"loss": math.nan}).stop
    assert StopRecord.from_metadata(monitor.record().metadata()) is not None
    monitor.begin_attempt(0)


@pytest.mark.parametrize(
    "state",
    [None, [], "x", 5, {}, {"version": 1}, {"version": 2}, {"version": "1"}],
    ids=repr,
)
def test_a_state_of_another_kind_starts_anew_and_is_named(state: Any) -> None:
    """A newer version's state is no reason to end a sweep."""
    monitor = watch(NonFinite())
    feed(monitor, {0: 1.0, 1: 1.0})
    monitor.restore(state)
    assert list(monitor.notices.messages) == ["state"]
    assert feed(monitor, {0: math.nan}) == [0]


@pytest.mark.parametrize("broken", BROKEN, ids=reprlib.repr)
def test_one_rule_with_a_broken_state_starts_anew_alone(broken: object) -> None:
    """The other rules keep their counts."""
    saved = watch(NonFinite(), Plateau(patience=3, holds=()))
    feed(saved, {0: 0.5, 1: 0.5, 2: 0.5})
    state = saved.state()
    state["rules"]["non_finite"] = broken
    monitor = watch(NonFinite(), Plateau(patience=3, holds=()))
    monitor.restore(state)
    assert feed(monitor, {3: 0.5}) == [3]
    assert list(monitor.notices.messages) == ["state"]


def test_a_rule_whose_parameters_changed_starts_anew() -> None:
    """A state for three streams does not fit a rule that now watches one."""
    saved = watch(NonFinite())
    feed(saved, {0: 1.0})
    monitor = watch(NonFinite(metrics=("loss",)))
    monitor.restore(saved.state())
    assert feed(monitor, {1: math.nan}) == [1]


def test_a_state_with_rules_that_are_gone_or_new_is_taken() -> None:
    """A policy may be edited between two runs of a sweep."""
    saved = watch(Plateau(patience=3, holds=()), Probe())
    feed(saved, {0: 0.5, 1: 0.5})
    monitor = watch(Plateau(patience=2, holds=()), NonFinite())
    monitor.restore(saved.state())
    assert monitor.notices.messages == {}
    assert feed(monitor, {2: 0.5}) == [2]


# ------------------------------------------------------------------- the record


def test_the_record_names_what_was_seen() -> None:
    """Best value and step are those before the NaN."""
    monitor = watch(NonFinite())
    feed(monitor, {0: 2.0, 1: 1.5, 2: 1.75, 3: math.nan})
    record = monitor.record(host="h1")
    assert (record.reason, record.step, record.blame) == ("non_finite", 3, Blame.CONFIG)
    assert (record.best_value, record.best_step) == (1.5, 1)
    assert (record.trial, record.host, record.attempt) == ("t1", "h1", 1)


def test_the_best_of_a_maximised_metric_is_its_highest() -> None:
    """The mode decides what best means."""
    monitor = watch(metric="acc", mode="max")
    for step, acc in enumerate([0.5, 0.9, 0.7]):
        monitor.observe(step, {"acc": acc})
    assert (monitor.best_value, monitor.best_step) == (0.9, 1)


def test_a_zero_loss_beside_a_nan_norm_is_not_the_best() -> None:
    """A trainer that filters NaN logs 0.0, and would rank first."""
    monitor = watch(NonFinite(consecutive=3))
    for step, norm in enumerate([1.2, 1.1, math.nan, math.nan, math.nan]):
        loss = [2.1, 1.9, 0.0, 0.0, 0.0][step]
        monitor.observe(step, {"loss": loss, "grad_norm": norm})
    assert monitor.verdict.step == 4
    assert (monitor.best_value, monitor.best_step) == (1.9, 1)


def test_a_policy_without_a_mode_is_refused() -> None:
    """A direction is never guessed: the message names the metric and both modes."""
    policy = Policy(metric="val_recall")
    with pytest.raises(ConfigError, match=r"'min' or 'max' for .*`val_recall`"):
        Monitor(policy)
