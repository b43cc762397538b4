from __future__ import annotations

import copy
import json
import math
import pickle
import reprlib
from typing import Any

import pytest

from tests.unit.probes import MachineProbe, Probe, feed, steps_of, watch
from tune_guard import ConfigError, Monitor, Policy
from tune_guard.notices import Notices
from tune_guard.record import StopRecord
from tune_guard.rules import NonFinite, Plateau
from tune_guard.verdict import Blame, Finding, Level, Verdict


class Unprintable(Exception):  # noqa: N818 - what matters is that it cannot be shown
    """An error that cannot be shown."""

    def __repr__(self) -> str:
        raise RuntimeError

    __str__ = __repr__


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
