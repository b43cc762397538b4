"""A monitor remembers what would have cut, and what kept it from cutting."""

from __future__ import annotations

import pytest

from tune_guard.monitor import Monitor
from tune_guard.policy import Policy
from tune_guard.record import StopRecord
from tune_guard.rules import NonFinite, Plateau

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
