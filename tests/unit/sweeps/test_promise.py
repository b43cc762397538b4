from __future__ import annotations

import random

import pytest

from tune_guard.exceptions import ConfigError
from tune_guard.sweeps.promise import Goal, fixed_sequence


def test_the_first_level_that_fails_ends_the_sequence() -> None:
    """A bolder one that looks safe is not taken: it was not to be tested."""
    rows = fixed_sequence([(0.0, 0.5, 0.0)] * 100, limit=0.05, error=0.1)
    assert [kept for _, _, kept in rows] == [True, False, False]


def test_the_promise_holds_as_often_as_it_says() -> None:
    """True rates 0, 3, 6 and 9 in 100 with a limit of 5: wrong in at most 10%.

    500 draws of 80 sweeps; a tenth of wrong ones may scatter up to 13%.
    """
    rng, rates = random.Random(1), (0.0, 0.03, 0.06, 0.09)
    wrong = 0
    for _ in range(500):
        losses = [[float(rng.random() < rate) for rate in rates] for _ in range(80)]
        kept = [kept for _, _, kept in fixed_sequence(losses, 0.05, 0.1)]
        wrong += kept[2] or kept[3]
    assert wrong <= 65


@pytest.mark.parametrize(
    "wrong",
    [{"false_kill": 0.0}, {"false_kill": 1.0}, {"confidence": 0.3}, {"top": 0.0}],
)
def test_a_goal_that_cannot_be_meant_is_refused(wrong: dict[str, float]) -> None:
    """At construction."""
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        Goal(**wrong)
