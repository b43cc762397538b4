"""Claims about hyperparameters: found where they hold, silent where they do not."""

from __future__ import annotations

import dataclasses
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.sweeps.sweeps_made import deadly, trial_of
from tune_guard.record import Outcome
from tune_guard.sweeps import UNKNOWN, Trial
from tune_guard.sweeps.claims import Share
from tune_guard.sweeps.explain_params import explain, holm
from tune_guard.sweeps.regions import Condition, round_between
from tune_guard.verdict import Blame


def split_at(cut: int, count: int = 40, reason: str = "non_finite") -> list[Trial]:
    """Return trials of which those from ``cut`` on have a reason."""
    return [
        trial_of(i, (i + 1) / 1000, reason if i >= cut else "") for i in range(count)
    ]


def test_a_region_that_kills_is_found_with_its_share_and_interval() -> None:
    """Twenty of forty die above 0.0205: the cut, the counts, the interval."""
    (claim,) = explain(split_at(20)).claims
    assert claim.where == "lr > 0.02"
    assert (claim.inside, claim.outside) == (Share(20, 20), Share(0, 20))
    assert claim.inside.interval == pytest.approx((0.839, 1.0), abs=1e-3)
    assert (claim.gap, claim.test) == (1.0, "Kolmogorov-Smirnov")
    assert str(claim) == (
        "lr > 0.02: 100% non_finite (20 of 20 trials, 95% interval 84% to 100%);"
        " elsewhere 0% (0 of 20)"
    )


def test_a_second_hyperparameter_within_the_region_is_named() -> None:
    """Only a large rate together with a short warm-up is deadly."""
    (claim,) = explain(deadly(400).trials).claims
    assert {condition.name for condition in claim.conditions} == {"lr", "warmup"}
    assert claim.inside.ratio > 0.9
    assert claim.outside.ratio < 0.1


def test_choices_are_told_apart_by_name() -> None:
    """The chi-squared test, and the choice that kills."""
    trials = [
        trial_of(
            i, 0.1, "divergence" if i % 3 == 0 else "", params={"opt": "abc"[i % 3]}
        )
        for i in range(60)
    ]
    found = {claim.where: claim for claim in explain(trials).claims}
    assert found["opt is a"].test == "chi-squared"
    assert found["opt is a"].inside == Share(20, 20)


@pytest.mark.parametrize(("sick", "well"), [(5, 40), (7, 40), (40, 7)])
def test_too_few_trials_say_nothing(sick: int, well: int) -> None:
    """Not from five trials, nor against five: however far apart they lie."""
    found = explain(split_at(well, sick + well))
    assert found.claims == ()
    assert found.silent == {
        "non_finite": f"too few: {sick} trials, beside {well} others"
    }


def test_chance_alone_is_rarely_taken_for_a_cause() -> None:
    """Of 100 sweeps without any cause, all claims together: at most ten.

    The promise is 5%; ten of 100 would come once in 90 such tests.
    """
    false = 0
    for seed in range(100):
        rng = random.Random(seed)
        trials = [
            trial_of(
                i,
                rng.random(),
                "plateau" if rng.random() < 0.3 else "",
                params={f"p{k}": rng.random() for k in range(10)},
            )
            for i in range(60)
        ]
        false += bool(explain(trials).claims)
    assert false <= 10


@pytest.mark.parametrize(
    "fields",
    [
        {"blame": Blame.INFRASTRUCTURE},
        {"outcome": Outcome.INTERRUPTED},
        {"outcome": Outcome.EXPERIMENT_STOP},
        {"reason": UNKNOWN, "outcome": Outcome.PRUNER},
        {"outcome": None},
    ],
)
def test_ends_that_are_not_of_the_configuration_explain_nothing(
    fields: dict[str, object],
) -> None:
    """A broken machine, an interruption, an end that nobody knows."""
    trials = [
        dataclasses.replace(trial, **fields) if trial.reason else trial
        for trial in split_at(20)
    ]
    assert explain(trials).claims == ()


def test_a_trial_that_died_of_something_else_is_on_neither_side() -> None:
    """Large rates die first: that plateaus lie below them is no cause of plateaus."""
    rng = random.Random(3)
    trials = []
    for i in range(300):
        lr = rng.random()
        other = "plateau" if rng.random() < 0.3 else ""
        trials.append(trial_of(i, lr, "non_finite" if lr > 0.5 else other))
    assert {claim.reason for claim in explain(trials).claims} == {"non_finite"}


def test_unset_hyperparameters_do_not_count() -> None:
    """A conditional one is None in Ray and absent in Optuna."""
    condition = Condition(name="momentum", kind="above", cut=0.5)
    assert condition.holds({"momentum": None}) is None
    assert condition.holds({}) is None
    assert condition.holds({"momentum": "high"}) is None
    assert condition.holds({"momentum": 0.5}) is False


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_corrected_p_values_keep_their_order_and_grow(p_values: list[float]) -> None:
    """Holm's are never under the raw ones, nor above Bonferroni's."""
    corrected = holm(p_values)
    for raw, found in zip(p_values, corrected, strict=True):
        assert raw <= found <= min(1.0, raw * len(p_values)) + 1e-12
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    assert [corrected[i] for i in order] == sorted(corrected)


@given(st.floats(-1e300, 1e300), st.floats(-1e300, 1e300))
def test_a_cut_lies_between_its_neighbours(low: float, high: float) -> None:
    """Rounding never moves a trial to the other side."""
    if low < high:
        assert low <= round_between(low, high) < high
