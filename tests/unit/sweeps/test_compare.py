"""The comparison: counts, compute, hyperparameters, savings; and its silence."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tune_guard.record import Outcome, StopRecord
from tune_guard.sweeps import UNKNOWN, Sweep, Trial
from tune_guard.sweeps.compare import Comparison, Group, compare
from tune_guard.sweeps.spreads import ChoiceSpread, NumberSpread
from tune_guard.verdict import Blame


def trials_of(
    count: int, outcome: Outcome = Outcome.COMPLETED, **fields: Any
) -> list[Trial]:
    """Return trials that ended alike; callables are called with the position."""
    made = []
    for i in range(count):
        here = {k: v(i) if callable(v) else v for k, v in fields.items()}
        name = f"{fields.get('reason', outcome)}-{i}"
        made.append(Trial(id=name, outcome=outcome, **{"steps_run": 10, **here}))
    return made


def cut(count: int, reason: str = "non_finite", **fields: Any) -> list[Trial]:
    """Return trials that the guard cut after two steps."""
    more = {"steps_run": 2, "blame": Blame.CONFIG, **fields}
    return trials_of(count, Outcome.GUARD, reason=reason, **more)


def compared(*groups: list[Trial], **fields: Any) -> Comparison:
    """Compare a sweep of these trials."""
    trials = [trial for group in groups for trial in group]
    return compare(Sweep(source="x", engine="ray", trials=trials, **fields))


def group(comparison: Comparison, reason: str) -> Group:
    """Return the group of a reason."""
    return next(found for found in comparison.groups if found.reason == reason)


# ------------------------------------------------------------- counts and compute


def test_trials_are_counted_by_reason_with_their_share_of_compute() -> None:
    """Eight trials of 10 steps and five of 2: the five cost a ninth."""
    found = compared(trials_of(8), cut(5))
    sick = group(found, "non_finite")
    assert (len(sick.trials), sick.compute, sick.median_step) == (5, 10, 2)
    assert sick.share == pytest.approx(5 / 13)
    assert sick.compute_share == pytest.approx(10 / 90)
    assert [g.reason for g in found.groups] == ["completed", "non_finite"]


def test_compute_is_seconds_where_every_trial_says_them() -> None:
    """Steps of different configurations cost differently; seconds do not."""
    found = compared(trials_of(2, time_s=100.0), cut(1, time_s=50.0))
    assert (found.unit, found.compute) == ("s", 250.0)


def test_compute_is_steps_where_one_ended_trial_says_no_time() -> None:
    """A share of unlike units would be none."""
    found = compared(trials_of(2, time_s=100.0), cut(1))
    assert (found.unit, found.compute) == ("steps", 22)


def test_an_interrupted_trial_without_a_time_is_counted_apart() -> None:
    """Optuna knows no time of a trial that never ended."""
    found = compared(
        trials_of(2, time_s=100.0), trials_of(1, Outcome.INTERRUPTED, reason="i")
    )
    assert (found.unit, found.compute, found.without_compute) == ("s", 200.0, 1)


def test_blame_is_counted_with_its_share() -> None:
    """Whose fault, and what it cost."""
    slow = cut(1, "slow_step", blame=Blame.INFRASTRUCTURE)
    found = compared(trials_of(1), cut(4), slow)
    assert found.blames == {
        Blame.CONFIG: (4, pytest.approx(8 / 20)),
        Blame.INFRASTRUCTURE: (1, pytest.approx(2 / 20)),
        None: (1, pytest.approx(10 / 20)),
    }


def test_one_reason_under_two_blames_is_two_groups() -> None:
    """A rule of a third party may blame either."""
    found = compared(cut(1), cut(1, blame=Blame.INFRASTRUCTURE))
    assert len(found.groups) == 2


def test_an_empty_sweep_compares_to_nothing() -> None:
    """No trial, no group, no share of nothing."""
    found = compared()
    assert (found.groups, found.compute, found.best, found.saved) == ((), 0, None, None)


@pytest.mark.parametrize(
    ("trials", "findings"),
    [
        (trials_of(3), 0),
        (trials_of(3, Outcome.PRUNER, reason="pruner:MedianPruner"), 0),
        (cut(2), 2),
        (trials_of(1, Outcome.ERROR, reason="error:OSError"), 1),
    ],
)
def test_findings_are_trials_that_were_sick(trials: list[Trial], findings: int) -> None:
    """A trial that others outran is no finding."""
    assert compared(trials).findings == findings


def test_warnings_that_did_not_cut_are_counted_once_a_trial() -> None:
    """By rule; a trial that was warned twice counts once."""
    records = {
        "a": StopRecord(warnings=("plateau@3", "plateau@9", "divergence@4")),
        "b": StopRecord(warnings=("plateau@5",)),
    }
    found = compared(trials_of(2), records=records)
    assert found.warnings == {"plateau": 2, "divergence": 1}


# ---------------------------------------------------------------- hyperparameters


def test_the_parameter_that_kills_comes_first() -> None:
    """Large learning rates die; the width is the same on both sides."""
    healthy = trials_of(6, params=lambda i: {"width": i, "lr": 0.001 * (i + 1)})
    sick = cut(6, params=lambda i: {"width": i, "lr": 1.0 + i})
    lr, width = group(compared(healthy, sick), "non_finite").parameters or ()
    assert (lr.name, lr.separation, width.separation) == ("lr", 1.0, 0.0)
    assert lr.behind == NumberSpread(
        count=6,
        lowest=1.0,
        lower_quartile=2.25,
        median=3.5,
        upper_quartile=4.75,
        highest=6.0,
    )
    assert isinstance(lr.healthy, NumberSpread)
    assert lr.healthy.highest == pytest.approx(0.006)


def test_choices_are_counted() -> None:
    """A categorical hyperparameter has no quartiles; a bool is one."""
    healthy = trials_of(5, params={"opt": "adam", "amp": False})
    sick = cut(5, params=lambda i: {"opt": "sgd" if i else "adam", "amp": True})
    amp, opt = group(compared(healthy, sick), "non_finite").parameters or ()
    assert opt.behind == ChoiceSpread(count=5, counts={"sgd": 4, "adam": 1})
    assert opt.separation == pytest.approx(0.8)
    assert (amp.name, amp.separation) == ("amp", 1.0)


def test_a_parameter_that_does_not_vary_explains_nothing() -> None:
    """What all trials have in common is left out."""
    found = compared(trials_of(5, params={"lr": 1}), cut(5, params={"lr": 1}))
    assert group(found, "non_finite").parameters == ()


@pytest.mark.parametrize("count", [1, 4])
def test_nothing_is_said_of_fewer_than_five_trials(count: int) -> None:
    """None is not empty: it means that it is too early to say."""
    sick = cut(count, params=lambda i: {"lr": i})
    found = compared(trials_of(9, params={"lr": 0}), sick)
    assert group(found, "non_finite").parameters is None


def test_five_trials_are_compared_with_no_fewer_healthy_ones() -> None:
    """Four healthy trials are no comparison; the ranges of the sick still show."""
    sick = cut(5, params=lambda i: {"lr": i})
    found = compared(trials_of(4, params={"lr": 9}), sick)
    (lr,) = group(found, "non_finite").parameters or ()
    assert lr.healthy is None
    assert lr.behind.count == 5


def test_a_parameter_that_only_some_have_is_compared_where_it_is() -> None:
    """Conditional hyperparameters."""
    sick = cut(6, params=lambda i: {"momentum": i} if i else {})
    found = compared(trials_of(5, params={"other": 1}), sick)
    (momentum,) = group(found, "non_finite").parameters or ()
    assert (momentum.name, momentum.behind.count) == ("momentum", 5)


def test_a_parameter_that_is_none_where_it_is_not_used_is_a_number() -> None:
    """A Ray space has None in the place of a conditional hyperparameter."""
    sick = cut(6, params=lambda i: {"momentum": float(i) if i else None})
    healthy = trials_of(5, params={"momentum": 0.5})
    (momentum,) = group(compared(healthy, sick), "non_finite").parameters or ()
    assert isinstance(momentum.behind, NumberSpread)
    assert (momentum.behind.count, momentum.behind.lowest) == (5, 1.0)


def test_mixed_kinds_of_values_are_choices() -> None:
    """A number among texts is a choice."""
    sick = cut(5, params=lambda i: {"depth": "auto" if i else 3})
    (depth,) = group(compared(trials_of(5), sick), "non_finite").parameters or ()
    assert depth.behind == ChoiceSpread(count=5, counts={"auto": 4, "3": 1})


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=5, max_size=30),
    st.lists(st.floats(-1e6, 1e6), min_size=5, max_size=30),
)
def test_separation_is_between_none_and_whole(
    sick: list[float], well: list[float]
) -> None:
    """Whatever the values, and the same from both sides."""
    here = _separation(sick, well)
    assert 0.0 <= here <= 1.0
    assert here == pytest.approx(_separation(well, sick))


def _separation(sick: list[float], well: list[float]) -> float:
    healthy = trials_of(len(well), params=lambda i: {"x": well[i], "y": i})
    cuts = cut(len(sick), params=lambda i: {"x": sick[i], "y": i})
    found = group(compared(healthy, cuts), "non_finite").parameters or ()
    return next((p.separation for p in found if p.name == "x"), 0.0)


# ------------------------------------------------------------------ compute saved


def test_savings_go_up_to_the_longest_healthy_trial() -> None:
    """Three trials cut at 2 of 10 steps save 24 of the 24 + 26 steps."""
    saved = compared(trials_of(2), cut(3)).saved
    assert saved is not None
    assert (saved.steps, saved.budget_steps) == (24, 10)
    assert saved.steps_by == {"guard": 24}
    assert saved.share == pytest.approx(24 / 50)
    assert saved.basis == "the longest of 2 that ran through"


def test_savings_are_told_apart_by_who_cut() -> None:
    """The guard saves on sick trials, a pruner on those that others outran."""
    pruned = trials_of(1, Outcome.PRUNER, reason="pruner:MedianPruner", steps_run=4)
    saved = compared(trials_of(2), cut(1), pruned).saved
    assert saved is not None
    assert saved.steps_by == {"guard": 8, "pruner": 6}


def test_a_known_budget_goes_before_it() -> None:
    """Ray's stop criterion says how long a trial was to run."""
    saved = compared(trials_of(2), cut(1), budget_steps=100).saved
    assert saved is not None
    assert (saved.steps, saved.basis) == (98, "the budget of the sweep")


def test_seconds_saved_are_at_the_trial_s_own_pace() -> None:
    """Two steps took 50 s; the eight that were left would have taken 200 s."""
    saved = compared(trials_of(2, time_s=100.0), cut(1, time_s=50.0)).saved
    assert saved is not None
    assert saved.time_s == 200.0
    assert saved.share == pytest.approx(200 / 450)


@pytest.mark.parametrize(
    "trials",
    [
        cut(1, "slow_step", blame=Blame.INFRASTRUCTURE),
        trials_of(1, Outcome.ERROR, reason="error", steps_run=1),
        trials_of(1, Outcome.INTERRUPTED, reason="i", steps_run=1),
        [Trial(id="u", reason=UNKNOWN, steps_run=1)],
    ],
    ids=["run again", "failed", "interrupted", "unknown"],
)
def test_what_was_not_cut_for_good_saves_nothing(trials: list[Trial]) -> None:
    """An error is no saving, and a machine's fault is run again."""
    assert compared(trials_of(2), trials).saved is None


def test_without_a_budget_or_a_healthy_trial_nothing_is_claimed() -> None:
    """Nobody knows how long the cut trials would have run."""
    assert compared(cut(5)).saved is None


def test_a_trial_that_was_cut_past_the_budget_saves_nothing() -> None:
    """Steps saved are never negative."""
    saved = compared(trials_of(1), cut(1, steps_run=50)).saved
    assert saved is not None
    assert saved.steps == 0
