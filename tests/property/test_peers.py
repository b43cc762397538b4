from __future__ import annotations

import json
import math

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.property.strategies import curves, rough_curves
from tune_guard import Monitor, Policy
from tune_guard.peers import GRID, Course, Peers
from tune_guard.rules import Behind
from tune_guard.rules.base import Mode

modes = st.sampled_from(["min", "max"])
sweeps = st.lists(curves, min_size=3, max_size=6)


def policy_of(mode: Mode, budget_steps: int) -> Policy:
    """Return a policy that compares trials and nothing else."""
    rules = (Behind(min_finished=2, leader_growth=0.5),)
    return Policy(metric="score", mode=mode, rules=rules, budget_steps=budget_steps)


def run_sweep(
    sweep: list[list[float]], mode: Mode, *, restart: bool
) -> tuple[list[int | None], Peers]:
    """Run trials one after another; with ``restart``, in a new process each step."""
    peers, cuts = Peers(), []
    for number, curve in enumerate(sweep):
        policy, cut = policy_of(mode, len(curve)), None
        monitor = Monitor(policy, trial_id=str(number), peers=peers)
        for step, value in enumerate(curve, start=1):
            if restart:
                text = json.dumps([peers.state(), monitor.state()], allow_nan=False)
                peers, (kept, own) = Peers(), json.loads(text)
                peers.restore(kept)
                monitor = Monitor(policy, trial_id=str(number), peers=peers)
                monitor.restore(own)
            if monitor.observe(step, {"score": value}).stop:
                cut = step
                break
        if cut is None:
            monitor.finish()
        cuts.append(cut)
        assert not [t for t in monitor.notices.messages if t != "repeated"]
    return cuts, peers


@settings(max_examples=40, deadline=None)
@given(sweep=sweeps, mode=modes)
def test_a_restart_at_any_step_changes_nothing(
    sweep: list[list[float]], mode: Mode
) -> None:
    """The trials and what finished ones reached are stored as strict JSON."""
    straight, peers = run_sweep(sweep, mode, restart=False)
    restarted, stored = run_sweep(sweep, mode, restart=True)
    assert restarted == straight
    assert stored.state() == peers.state()


@settings(max_examples=100, deadline=None)
@given(sweep=sweeps, mode=modes)
def test_the_best_finished_trial_would_never_have_been_cut(
    sweep: list[list[float]], mode: Mode
) -> None:
    """Against a bar of finished trials, the leaders themselves stand."""
    _, peers = run_sweep(sweep, mode, restart=False)
    bar = peers.bar(1.25)
    for _, state in peers.state()["leaders"][: bar.leaders]:
        course = Course()
        course.restore(state)
        assert all(course.at(s) >= bar.scores[s] for s in range(GRID + 1))


@settings(max_examples=100, deadline=None)
@given(curve=rough_curves, budget=st.integers(1, 1000), step=st.integers(1, 1000))
def test_whatever_is_reported_nothing_is_raised(
    curve: list[float], budget: int, step: int
) -> None:
    """Scores of any size, steps in and out of the budget."""
    peers = Peers()
    for number in range(3):
        policy = policy_of("max", budget)
        monitor = Monitor(policy, trial_id=str(number), peers=peers)
        for i, value in enumerate(curve):
            monitor.observe(i * step, {"score": value})
        monitor.finish()
        assert not [t for t in monitor.notices.messages if t.startswith("rule:")]
    assert not any(math.isnan(score) for score in peers.bar(1.25).scores)
    json.dumps(peers.state(), allow_nan=False)
