"""The last observations of a live trial."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from tests.streams import eventful
from tests.unit.evidence.support import RULES, Silent, watched
from tune_guard import Monitor, Policy
from tune_guard.evidence.window import KEPT, Window

POLICY = Policy.default("loss", "min", actions={"*": "warn"})


def steps_of(monitor: Monitor) -> list[int]:
    """Return the steps in a monitor's window."""
    window = monitor.witness
    assert isinstance(window, Window)
    return [observation.step for observation in window.observations()]


@pytest.mark.parametrize(
    ("reports", "first"), [(1, 0), (128, 0), (640, 0), (641, 128), (1000, 384)]
)
def test_it_holds_the_last_512_at_least(reports: int, first: int) -> None:
    """Whole segments of 128 leave; never fewer than 512 stay."""
    monitor = watched(POLICY, [{"loss": 1.0}] * reports)
    assert steps_of(monitor) == list(range(first, reports))
    assert len(steps_of(monitor)) >= min(reports, KEPT)


def test_an_observation_is_the_one_that_was_judged() -> None:
    """Repeated steps are not in it, and values are numbers already."""
    monitor = watched(POLICY, [])
    for step, loss in [(0, "0.5"), (0, 0.4), (3, [0.3])]:
        monitor.observe(step, {"loss": loss, "lr": [0.1, 0.2]})
    window = monitor.witness
    assert isinstance(window, Window)
    seen = [(o.step, o.metric, o.lr) for o in window.observations()]
    assert seen == [(0, 0.5, 0.2), (3, 0.3, 0.2)]


def test_signals_between_reports_are_in_it() -> None:
    """They count for the step of the last report."""
    monitor = watched(POLICY, [{"loss": 1.0}])
    monitor.observe(None, {"grad_norm": 3.0})
    assert steps_of(monitor) == [0, 0]


@pytest.mark.parametrize("seed", range(4))
def test_its_state_and_observations_lead_to_the_monitors_state(seed: int) -> None:
    """Judged again from the oldest state, every rule's state is the same."""
    policy = Policy("score", "min", rules=RULES, actions={"*": "warn"})
    monitor = watched(policy, [r for n in range(3) for r in eventful(seed + n)])
    window = monitor.witness
    assert isinstance(window, Window)
    again = Monitor(policy, trial_id="t1", notices=Silent())
    again.restore(window.state)
    for observation in window.observations():
        again.take(observation)
    names = ("best", "warnings", "curve", "schedule", "rules")
    now, then = again.state(), monitor.state()
    assert repr([now[name] for name in names]) == repr([then[name] for name in names])


def test_a_new_attempt_begins_with_an_empty_window() -> None:
    """The monitor goes on from another state than the window's."""
    monitor = watched(POLICY, [{"loss": 1.0}] * 10)
    monitor.begin_attempt(5)
    assert steps_of(monitor) == []
    monitor.observe(5, {"loss": 1.0})
    assert steps_of(monitor) == [5]


def test_a_restored_state_begins_with_an_empty_window() -> None:
    """What another process saw is not known here."""
    monitor = watched(POLICY, [{"loss": 1.0}] * 10)
    monitor.restore(monitor.state())
    assert steps_of(monitor) == []


def test_the_monitors_state_holds_no_window() -> None:
    """It is small however much the window holds."""
    bare = Monitor(POLICY)
    for step in range(700):
        bare.observe(step, {"loss": 1.0})
    kept = watched(POLICY, [{"loss": 1.0}] * 700)
    assert len(pickle.dumps(kept.state())) == len(pickle.dumps(bare.state()))


def test_a_rule_whose_state_fails_costs_the_state_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The observations are kept; the monitor never hears of it."""
    monitor = watched(POLICY, [])

    def fail() -> dict[str, Any]:
        msg = "no state"
        raise RuntimeError(msg)

    monkeypatch.setattr(monitor, "state", fail)
    assert not monitor.observe(0, {"loss": 1.0}).stop
    window = monitor.witness
    assert isinstance(window, Window)
    assert (steps_of(monitor), window.state) == ([0], {})
    assert "no state" in window.failed
