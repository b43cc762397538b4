"""What is kept of finished trials, and the bar that is made of it."""

from __future__ import annotations

import json
import math
import pickle
import random
from typing import Any

import pytest

from tune_guard.peers import GRID, Course, Peers


def course(scores: list[float], budget_steps: int | None = None) -> Course:
    """Return the course of a trial that reported each step from 1 on."""
    made = Course()
    for step, score in enumerate(scores, start=1):
        made.add(score, step, budget_steps or len(scores))
    return made


def line(final: float, steps: int = 20) -> Course:
    """Return the course of a trial that gains the same at each step."""
    return course([final * step / steps for step in range(1, steps + 1)])


def peers_of(*courses: Course) -> Peers:
    """Return peers of finished trials."""
    peers = Peers()
    for number, one in enumerate(courses):
        peers.add(str(number), one)
    return peers


# -------------------------------------------------------------------- a course


def test_a_share_holds_the_best_score_up_to_it() -> None:
    """A reading counts from its own share on, and a worse one not at all."""
    made = course([1.0, 3.0, 2.0, 4.0])
    assert [made.at(s) for s in (24, 25, 49, 50, 75, 99, 100)] == [
        *(-math.inf, 1.0, 1.0, 3.0, 3.0, 3.0, 4.0)
    ]


def test_sparse_reports_are_held_until_the_next() -> None:
    """Two reports in a hundred steps fill all shares."""
    made = Course()
    made.add(1.0, 10, 100)
    made.add(2.0, 90, 100)
    assert [made.at(s) for s in (9, 10, 89, 90, 100)] == [
        *(-math.inf, 1.0, 1.0, 2.0, 2.0)
    ]


@pytest.mark.parametrize("budget_steps", [7, 57, 100, 1000, 12345])
def test_a_reading_never_counts_before_its_share(budget_steps: int) -> None:
    """Whatever the budget divides to."""
    for step in range(budget_steps + 1):
        made = Course()
        made.add(1.0, step, budget_steps)
        shares = [s for s in range(GRID + 1) if made.at(s) == 1.0]
        assert shares[0] * budget_steps >= step * GRID
        assert (shares[0] - 1) * budget_steps < step * GRID


def test_it_stays_small_however_long_the_trial_is() -> None:
    """A hundred thousand readings leave 101 shares and fewer than 64 differences."""
    made = Course()
    for step in range(100_000):
        made.add(float(step % 7), step, 100_000)
    assert len(made.reached) <= GRID + 1
    assert len(made.jumps) < 64


def test_noise_is_that_of_neighbouring_readings() -> None:
    """A steady gain is none; a reading that comes and goes is."""
    rng = random.Random(0)
    steady = [0.5 * i for i in range(50)]
    assert course(steady).noise == 0.0
    assert 0.6 < course([x + rng.gauss(0.0, 1.0) for x in steady]).noise < 1.6


@pytest.mark.parametrize("scores", [[], [1.0], [1.0, -2.0, 3.0]])
def test_a_course_comes_back_from_plain_values(scores: list[float]) -> None:
    """As strict JSON, at any point."""
    made = course(scores, budget_steps=10)
    back = Course()
    back.restore(json.loads(json.dumps(made.state(), allow_nan=False)))
    assert back.state() == made.state()


@pytest.mark.parametrize("wrong", [None, [], ["x"] * 7, [[math.nan], *[None] * 6]])
def test_a_damaged_course_is_refused_whole(wrong: Any) -> None:
    """What was there before stays."""
    made = course([1.0, 2.0])
    before = made.state()
    with pytest.raises(ValueError, match="course"):
        made.restore(wrong)
    assert made.state() == before


# ----------------------------------------------------------------------- peers


def test_nothing_is_asked_while_no_trial_has_finished() -> None:
    """The bar lies at minus infinity."""
    bar = Peers().bar(1.0)
    assert bar.finished == 0
    assert set(bar.scores) == {-math.inf}


def test_the_bar_is_below_the_worst_of_the_leaders_at_an_earlier_share() -> None:
    """At half of the budget, 0.788 of it: the worst leader's score at share 39."""
    bar = peers_of(line(1.0), line(1.0), line(1.0)).bar(1.0)
    assert bar.scores[50] == pytest.approx(line(1.0).at(39))
    assert (bar.finished, bar.leaders) == (3, 3)


def test_leaders_that_end_far_apart_lower_the_bar() -> None:
    """By a quarter of what lies between the best and the worst of them."""
    bar = peers_of(line(1.0), line(1.0), line(0.6)).bar(1.0)
    assert bar.scores[50] == pytest.approx(line(0.6).at(39) - 0.25 * 0.4)


def test_a_lag_that_a_better_leader_made_up_lowers_the_bar() -> None:
    """The sweep has late bloomers, so another may be one."""
    late = course([0.0] * 15 + [1.1] * 5)
    early = peers_of(line(1.0), line(1.0), line(1.0)).bar(1.0)
    both = peers_of(line(1.0), line(1.0), late).bar(1.0)
    assert both.scores[40] < early.scores[40] - 0.3


def test_noise_weakens_the_bar() -> None:
    """The shift goes further back and the margin grows."""
    rng = random.Random(0)
    calm = [0.05 * i for i in range(100)]
    noisy = [x - rng.choice([0.0, rng.random()]) for x in calm]
    quiet = peers_of(*[course(calm)] * 3).bar(1.0)
    loud = peers_of(*[course(noisy)] * 3).bar(1.0)
    assert loud.scores[60] < quiet.scores[60] - 0.2


def test_trials_behind_the_leaders_do_not_matter() -> None:
    """Of ten finished trials, five lead at a growth of 1."""
    best = [line(1.0 + 0.001 * i) for i in range(5)]
    bar = peers_of(*best, *[line(0.1)] * 5).bar(1.0)
    assert (bar.finished, bar.leaders) == (10, 5)
    assert bar.goal == pytest.approx(1.0)


def test_a_trial_counts_once() -> None:
    """A resumed sweep may show the same trial again."""
    peers = peers_of(line(1.0))
    peers.add("0", line(2.0))
    assert peers.finished == 1
    assert peers.bar(1.0).goal == 1.0


def test_a_trial_without_a_score_counts_for_nothing() -> None:
    """It never reported a finite value."""
    assert peers_of(Course()).finished == 0


def test_a_kept_course_does_not_change_with_its_trial() -> None:
    """A trial may run on past its budget."""
    one = line(1.0)
    peers = peers_of(one)
    one.add(9.0, 21, 20)
    assert peers.bar(1.0).goal == 1.0


def test_memory_is_bounded() -> None:
    """Of a thousand finished trials the best 64 courses are kept, however ordered."""
    peers = Peers()
    for number in range(1000):
        peers.add(str(number), line(float(number * 7 % 1000)))
    state = peers.state()
    assert peers.finished == 1000
    assert len(state["leaders"]) == 64
    assert peers.bar(100.0).goal == 936.0


def test_peers_come_back_from_plain_values() -> None:
    """The same bar, and the same trials known."""
    peers = peers_of(line(1.0), line(0.9), line(0.8))
    back = Peers()
    back.restore(json.loads(json.dumps(peers.state(), allow_nan=False)))
    assert back.bar(1.0) == peers.bar(1.0)
    back.add("0", line(5.0))
    assert back.finished == 3


def test_peers_can_be_pickled_at_any_time() -> None:
    """A study pickles its pruner."""
    peers = peers_of(line(1.0), line(0.9), line(0.8))
    peers.bar(1.0)
    back = pickle.loads(pickle.dumps(peers))  # noqa: S301 - our own
    assert back.bar(1.0) == peers.bar(1.0)


@pytest.mark.parametrize("name", ["finished", "ids", "leaders"])
@pytest.mark.parametrize("wrong", [None, 5.5, "x", [[1]], [["a", []]]])
def test_a_damaged_state_changes_nothing_or_is_read(name: str, wrong: Any) -> None:
    """It is a ValueError, and what was there stays."""
    peers = peers_of(line(1.0), line(0.9), line(0.8))
    before = peers.state()
    try:
        peers.restore({**before, name: wrong})
    except ValueError:
        assert peers.state() == before
    peers.bar(1.0)
