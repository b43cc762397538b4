"""A trial that is measured against the finished ones, step by step."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from typing import Any

import pytest

from tune_guard import Monitor, Policy
from tune_guard.notices import Notices
from tune_guard.peers import Peers
from tune_guard.rules import Behind

BUDGET = 20
LEARNS = [0.05 * step for step in range(1, BUDGET + 1)]
NEVER = [0.1] * BUDGET


def policy_of(rule: Behind | None = None, **fields: Any) -> Policy:
    """Return a policy with this rule alone."""
    given = {"metric": "acc", "mode": "max", "budget_steps": BUDGET, **fields}
    return Policy(rules=(rule or Behind(),), **given)


def run(
    peers: Peers,
    values: Iterable[float],
    *,
    trial_id: str,
    rule: Behind | None = None,
    **fields: Any,
) -> int | None:
    """Run a trial to its end, or until it is cut; return the step of the cut."""
    policy = policy_of(rule, **fields)
    monitor = Monitor(policy, trial_id=trial_id, peers=peers)
    for step, value in enumerate(values, start=1):
        if monitor.observe(step, {policy.metric: value}).stop:
            return step
    monitor.finish()
    return None


def after(count: int, **fields: Any) -> Peers:
    """Return peers of so many trials that learn."""
    peers = Peers()
    for number in range(count):
        run(peers, LEARNS, trial_id=f"full{number}", **fields)
    return peers


# --------------------------------------------------------------------- trigger


def test_a_trial_that_never_learns_is_cut_once_it_is_behind() -> None:
    """At step 5 of 20 the leaders' 0.15, reached by 17% of the budget, is asked."""
    assert run(after(3), NEVER, trial_id="late") == 5


def test_a_trial_like_the_others_is_not_cut() -> None:
    """Nor one that takes a tenth longer for the same."""
    assert run(after(3), LEARNS, trial_id="like") is None
    slow = [0.045 * step for step in range(1, BUDGET + 1)]
    assert run(after(3), slow, trial_id="slow") is None


@pytest.mark.parametrize("count", [0, 1, 2])
def test_it_is_silent_until_three_have_finished(count: int) -> None:
    """Two runs say too little."""
    assert run(after(count), NEVER, trial_id="late") is None


def test_min_finished_is_respected() -> None:
    """Exactly."""
    rule = Behind(min_finished=5)
    assert run(after(4), NEVER, trial_id="late", rule=rule) is None
    assert run(after(5), NEVER, trial_id="late", rule=rule) == 5


def test_nothing_is_cut_before_min_ratio_of_the_budget() -> None:
    """Half of 20 steps is 10."""
    rule = Behind(min_ratio=0.5)
    assert run(after(3), NEVER, trial_id="late", rule=rule) == 10


def test_cut_trials_do_not_lead() -> None:
    """Only those that ran to their end count."""
    peers = after(3)
    run(peers, NEVER, trial_id="late")
    assert peers.finished == 3


def test_a_metric_to_minimise_is_measured_the_other_way() -> None:
    """Losses of 1 to 0.05, and one that stays at 0.95."""
    peers, fields = Peers(), {"metric": "loss", "mode": "min"}
    falls = [1.0 - 0.95 * step / BUDGET for step in range(1, BUDGET + 1)]
    for number in range(3):
        run(peers, falls, trial_id=str(number), **fields)
    assert run(peers, [0.95] * BUDGET, trial_id="late", **fields) is not None
    assert run(peers, falls, trial_id="like", **fields) is None


def test_it_fires_again_at_every_report() -> None:
    """A veto may ask at any of them; here the rule may only warn."""
    policy = policy_of(actions={"behind": "warn"})
    monitor = Monitor(policy, trial_id="late", peers=after(3))
    for step in range(1, BUDGET):
        verdict = monitor.observe(step, {"acc": 0.1})
        assert bool(verdict.findings) == (step >= 5)
        assert monitor.is_against("behind") == (step >= 5)
        monitor.observe(None, {"grad_norm": 1.0})
        assert monitor.is_against("behind") == (step >= 5)


def test_the_message_names_the_numbers() -> None:
    """What it has, what was asked, of whom, and how far the trial is."""
    monitor = Monitor(policy_of(), trial_id="late", peers=after(3))
    for step in range(1, 6):
        verdict = monitor.observe(step, {"acc": 0.1})
    assert verdict.message.startswith(
        "acc is at 0.1 at best up to step 5 (25% of the budget): behind "
    )
    assert "each of the 3 leading of 3 finished trials" in verdict.message


# --------------------------------------------- budgets, gaps, parallel workers


def test_an_unknown_budget_is_said_once_and_cuts_nothing() -> None:
    """However many trials there are."""
    notices, peers = Notices(), after(3)
    for number in range(3):
        policy = policy_of(budget_steps=None)
        monitor = Monitor(policy, trial_id=str(number), notices=notices, peers=peers)
        assert not any(monitor.observe(i, {"acc": 0.0}).findings for i in range(50))
        monitor.finish()
    assert list(notices.messages) == ["budget:behind"]
    assert peers.finished == 3


def test_budgets_may_differ() -> None:
    """A trial's share of its own budget counts, not its steps."""
    peers = after(3)
    long = [0.0005 * step for step in range(1, 2001)]
    assert run(peers, long, trial_id="long", budget_steps=2000) is None
    assert run(peers, [0.1] * 2000, trial_id="flat", budget_steps=2000) == 460


def test_a_trial_that_ends_early_keeps_its_best_to_the_end() -> None:
    """It reached its goal and returned."""
    peers = Peers()
    for number in range(3):
        run(peers, [0.5, 0.9], trial_id=str(number))
    assert peers.finished == 3
    assert run(peers, NEVER, trial_id="late") is not None


def test_a_trial_past_its_budget_is_not_judged() -> None:
    """It counts as finished as soon as it is there."""
    peers = after(3)
    monitor = Monitor(policy_of(), trial_id="over", peers=peers)
    assert not monitor.observe(BUDGET, {"acc": 0.0}).findings
    assert not monitor.observe(BUDGET + 1, {"acc": 0.0}).findings
    assert peers.finished == 4


def test_sparse_reports_are_judged_by_the_leaders_then() -> None:
    """Every fifth step: the same best, the same verdict."""
    monitor = Monitor(policy_of(), trial_id="sparse", peers=after(3))
    stops = [monitor.observe(step, {"acc": 0.1}).stop for step in (5, 10)]
    assert stops[0]
    sparse = Monitor(policy_of(), trial_id="fine", peers=after(3))
    found = [sparse.observe(s, {"acc": 0.05 * s}).findings for s in (5, 10, 15)]
    assert found == [(), (), ()]


def test_values_that_are_not_finite_count_for_the_share_only() -> None:
    """A NaN is no score; the trial is judged by its best all the same."""
    values = [0.1, *[math.nan] * (BUDGET - 1)]
    assert run(after(3), values, trial_id="late") == 5


def test_a_worker_sees_what_finished_while_it_ran() -> None:
    """The bar is looked up at every report."""
    peers = after(2)
    monitor = Monitor(policy_of(), trial_id="late", peers=peers)
    stops = [monitor.observe(step, {"acc": 0.1}).stop for step in range(1, 8)]
    run(peers, LEARNS, trial_id="third")
    assert stops == [False] * 7
    assert monitor.observe(8, {"acc": 0.1}).stop


def test_without_peers_it_is_silent() -> None:
    """A trial in a loop of its own."""
    monitor = Monitor(policy_of())
    assert not any(monitor.observe(i, {"acc": 0.0}).findings for i in range(BUDGET))
    monitor.finish()


def test_warm_up_mutes_it_and_denies_the_veto() -> None:
    """A finding in warm-up is no cause to cut."""
    monitor = Monitor(
        policy_of(warmup_steps=8), trial_id="late", peers=after(3, warmup_steps=8)
    )
    stops = [monitor.observe(step, {"acc": 0.1}).stop for step in range(1, 9)]
    assert stops == [False] * 7 + [True]
    assert monitor.warnings == {"behind": 5}


# --------------------------------------------------------------------- restart


def test_a_restart_at_every_step_changes_nothing() -> None:
    """State and peers both go through strict JSON; the cut is at the same step."""
    values = [0.02 * step for step in range(1, BUDGET + 1)]
    straight = run(after(3), values, trial_id="x")
    assert straight is not None
    peers, monitor = after(3), Monitor(policy_of(), trial_id="x")
    for step, value in enumerate(values, start=1):
        stored = json.dumps([peers.state(), monitor.state()], allow_nan=False)
        peers_state, monitor_state = json.loads(stored)
        peers = Peers()
        peers.restore(peers_state)
        monitor = Monitor(policy_of(), trial_id="x", peers=peers)
        monitor.restore(monitor_state)
        if monitor.observe(step, {"acc": value}).stop:
            break
    assert step == straight
