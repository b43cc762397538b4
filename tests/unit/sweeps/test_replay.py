"""Replay runs the production monitor over recorded trials, and counts."""

from __future__ import annotations

import math
from array import array
from dataclasses import replace

import pytest

from tune_guard.notices import Notices
from tune_guard.policy import Policy
from tune_guard.rules import NonFinite, Plateau
from tune_guard.sweeps.curves import Curve, Curves
from tune_guard.sweeps.replay import replay, reports
from tune_guard.sweeps.replayed import Request
from tune_guard.sweeps.scoring import by_rule, score, wilson
from tune_guard.sweeps.sweep import Sweep, Trial

NAN = math.nan
POLICY = Policy("loss", "min", rules=(NonFinite(), Plateau(patience=2, holds=())))


def curve(values: list[float], start: int = 1) -> Curve:
    """Return a curve with one reading a step."""
    steps = range(start, start + len(values))
    return Curve(array("q", steps), array("d", values))


def sweep(**losses: list[float]) -> Sweep:
    """Return a sweep whose trials reported these losses."""
    return Sweep(
        source="here",
        engine="table",
        trials=tuple(Trial(id=name, steps_run=len(v)) for name, v in losses.items()),
        curves=Curves({name: {"loss": curve(v)} for name, v in losses.items()}),
    )


def test_a_cut_trial_is_run_to_the_step_of_its_verdict() -> None:
    """The reading that brings the verdict was run; what follows is saved."""
    (found,) = replay(sweep(a=[1.0, NAN, 0.5, 0.4]), POLICY)

    assert (found.cut, found.reason, found.step) == (True, "non_finite", 2)
    assert (found.executed, found.reports) == (2, 4)


def test_a_trial_that_would_still_have_improved_is_premature() -> None:
    """Its best lies behind the cut: a false kill when it is among the best."""
    replayed = replay(sweep(late=[1.0, 1.0, 1.0, 0.1], good=[1.0, 0.9, 0.8]), POLICY)
    figures = score([replayed])

    late, good = replayed
    assert (late.step, late.premature, good.cut) == (3, True, False)
    assert (figures.top, figures.false_kills, figures.best_lost) == (1, 1, 1)


def test_a_verdict_at_the_last_reading_cuts_nothing() -> None:
    """There was nothing left to save."""
    (found,) = replay(sweep(a=[1.0, 0.9, NAN]), POLICY)

    assert (found.reason, found.cut) == ("non_finite", False)


def test_a_trial_without_the_objective_is_left_out() -> None:
    """It can be neither saved nor killed."""
    recorded = sweep(a=[1.0, 0.9])
    policy = Policy("accuracy", "max", rules=(NonFinite(),))

    assert replay(recorded, policy) == []


def test_each_rule_is_counted_as_if_it_were_alone() -> None:
    """Cuts of the other rules are undone."""
    replayed = [replay(sweep(a=[1.0, NAN, 1.0, 1.0], b=[1.0, 1.0, 1.0, 1.0]), POLICY)]
    figures = by_rule(replayed)

    assert {rule: found.cut for rule, found in figures.items()} == {
        "non_finite": 1,
        "plateau": 1,
    }
    assert figures["non_finite"].saved_ratio == pytest.approx(2 / 8)
    assert figures["plateau"].saved_ratio == pytest.approx(1 / 8)


def test_metrics_are_merged_into_one_report_a_step() -> None:
    """Curves on different steps come back as the reports they were."""
    merged = list(reports({"loss": curve([1.0, 2.0]), "lr": curve([0.1, 0.2], 2)}))

    assert merged == [
        (1, {"loss": 1.0}),
        (2, {"loss": 2.0, "lr": 0.1}),
        (3, {"lr": 0.2}),
    ]


def test_the_longest_trial_is_the_budget_where_none_is_known() -> None:
    """A policy without a budget takes the sweep's."""
    recorded = sweep(a=[1.0], b=[1.0] * 7).with_objective("loss", "min")

    assert Request().policy_for(recorded).budget_steps == 7


def test_the_budget_counts_the_steps_of_the_objective() -> None:
    """A batch loss that counts batches says nothing of how many epochs there are."""
    recorded = sweep(a=[1.0] * 7).with_objective("loss", "min")
    curves = {"loss": curve([1.0] * 7), "batch_loss": curve([1.0] * 900)}
    recorded = replace(recorded, curves=Curves({"a": curves}))

    assert Request().policy_for(recorded).budget_steps == 7


def test_missing_keys_are_named_once_for_all_trials() -> None:
    """The notices of a replay are shared."""
    notices = Notices()
    recorded = sweep(a=[1.0] * 12, b=[1.0] * 12)
    replay(recorded, POLICY, notices)

    assert len(notices.messages) == len(set(notices.messages.values()))


def test_wilson_agrees_with_the_known_interval() -> None:
    """5 of 50: 4.3% to 21.4%, as in standard tables."""
    low, high = wilson(5, 50)

    assert (round(low, 3), round(high, 3)) == (0.043, 0.214)
