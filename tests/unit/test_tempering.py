"""What turns a stop into a warning, and what is remembered of it."""

from __future__ import annotations

import math

import pytest

from tests.unit.probes import Probe, feed, watch
from tune_guard import Monitor, Policy, StopRecord
from tune_guard.rules import NonFinite, Plateau
from tune_guard.tempering import is_held_out


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
    assert is_held_out(monitor.policy, monitor.trial_id)
    assert feed(monitor, {0: 11.0, 1: math.nan}) == [1]
    assert monitor.warnings == {"probe": 0}


def test_the_holdout_share_is_as_asked() -> None:
    """About a tenth of 2,000 names, and the same ones each time."""
    policy = Policy(metric="loss", mode="min", rules=(), holdout=0.1)
    held = [is_held_out(policy, f"trial_{i}") for i in range(2000)]
    assert 150 < sum(held) < 250
    assert held == [is_held_out(policy, f"trial_{i}") for i in range(2000)]


def test_a_trial_name_that_is_no_valid_text_can_be_held_out() -> None:
    """File names may hold bytes that are no text."""
    policy = Policy(metric="loss", mode="min", rules=(), holdout=0.999)
    assert is_held_out(policy, "t\udcff")


# ------------------------------------------------------------- what is remembered

RULES = (NonFinite(), Plateau(patience=2, holds=()))
FLAT = [3.0, 2.0, 2.0, 2.0, 1.0, float("nan"), 1.0]


def watched(values: list[float], **policy: object) -> Monitor:
    """Return a monitor that has seen these losses."""
    monitor = Monitor(Policy("loss", "min", rules=RULES, **policy), trial_id="t")
    for step, value in enumerate(values):
        monitor.observe(step, {"loss": value})
    return monitor


@pytest.mark.parametrize(
    ("policy", "spared"),
    [
        ({"actions": {"*": "warn"}}, "plateau@3:action"),
        ({"actions": {"plateau": "warn"}}, "plateau@3:action"),
        ({"holdout": 0.999999}, "plateau@3:holdout"),
        ({"actions": {"plateau": "off"}}, ""),
        ({"warmup_steps": 100}, ""),
    ],
)
def test_the_first_cut_that_was_not_let_is_remembered(
    policy: dict[str, object], spared: str
) -> None:
    """A shadow or the holdout spares; warm-up and holds do not."""
    assert watched(FLAT[:5], **policy).record().spared == spared


def test_a_fatal_rule_cuts_in_the_holdout_and_the_record_says_both() -> None:
    """Condemned at 3 by the plateau, and dead at 5."""
    record = watched(FLAT, holdout=0.999999).record()

    assert (record.reason, record.step) == ("non_finite", 5)
    assert record.spared == "plateau@3:holdout"


def test_it_survives_a_restore_and_the_stored_metadata() -> None:
    """In Ray's state, and in what is read back from any engine."""
    before = watched(FLAT[:5], holdout=0.999999)
    after = watched([], holdout=0.999999)
    after.restore(before.state())

    read = StopRecord.from_metadata(after.record().metadata())
    assert read is not None
    assert read.spared == "plateau@3:holdout"


def test_a_state_of_before_is_read() -> None:
    """A state without the field restores the rest."""
    state = watched(FLAT[:5], holdout=0.999999).state()
    del state["spared"]
    monitor = watched([], holdout=0.999999)
    monitor.restore(state)

    assert (monitor.spared, monitor.last_step) == ("", 4)
