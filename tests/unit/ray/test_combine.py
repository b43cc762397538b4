"""Several criteria at once."""

from __future__ import annotations

import json
import math
import pickle
from typing import Any

import pytest
from ray.tune.stopper import MaximumIterationStopper, Stopper

from tune_guard import ConfigError, Policy
from tune_guard.ray import GuardStopper, combine
from tune_guard.ray.rows import stamp_of
from tune_guard.record import KEYS

POLICY = Policy.default("loss", "min")


class Recorder(Stopper):
    """Say what it is told to say, and count how often it is asked."""

    def __init__(self, *, says: bool = False, ends: bool = False) -> None:
        self.says = says
        self.ends = ends
        self.asked = 0
        self.asked_for_all = 0

    def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
        """Count."""
        self.asked += 1
        return self.says

    def stop_all(self) -> bool:
        """Count."""
        self.asked_for_all += 1
        return self.ends


class Broken(Stopper):
    """Raise whenever asked."""

    def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
        """Raise."""
        msg = "broken"
        raise RuntimeError(msg)

    def stop_all(self) -> bool:
        """Raise."""
        msg = "broken"
        raise RuntimeError(msg)


def row(step: int = 1, loss: Any = 0.5, **more: Any) -> dict[str, Any]:
    """Return a result."""
    return {"loss": loss, "training_iteration": step, "done": False, **more}


def why(result: dict[str, Any]) -> str:
    """Return the reason in a row."""
    return str(result["tune_guard/reason"])


def test_every_criterion_is_asked_for_every_row() -> None:
    """Also those behind one that fired: they may count rows."""
    first, second = Recorder(says=True), Recorder()
    stopper = combine(GuardStopper(POLICY), first, second)
    for step in range(1, 4):
        assert stopper("t", row(step)) is True
    assert (first.asked, second.asked) == (3, 3)


def test_the_criterion_that_fired_is_named() -> None:
    """By class, function name, or key."""

    def too_late(trial_id: str, result: dict[str, Any]) -> bool:
        return bool(result["training_iteration"] >= 5)

    stopper = combine(
        GuardStopper(POLICY), MaximumIterationStopper(3), too_late, {"score": 0.9}
    )
    rows = [row(1), row(2, score=0.95), row(3), row(5)]
    assert [stopper("t", result) for result in rows] == [False, True, True, True]
    assert [why(result) for result in rows] == [
        "",
        "criterion:score",
        "criterion:MaximumIterationStopper",
        "criterion:MaximumIterationStopper",
    ]
    detail = json.loads(rows[3]["tune_guard/detail"])
    assert detail["message"] == "Stopped by MaximumIterationStopper, too_late."
    assert (detail["outcome"], detail["best_value"]) == ("criterion", 0.5)


def test_the_guards_verdict_goes_first() -> None:
    """Wherever it stands among the criteria."""
    for criteria in (
        (GuardStopper(POLICY), {"training_iteration": 1}),
        ({"training_iteration": 1}, GuardStopper(POLICY)),
    ):
        result = row(1, math.nan)
        assert combine(*criteria)("t", result) is True
        assert why(result) == "non_finite"


@pytest.mark.parametrize(
    ("reported", "stops"),
    [
        (0.9, True),
        ("0.95", True),
        (0.89, False),
        (math.nan, False),
        (None, False),
        ("high", False),
        ([0.9, 0.9], False),
        (True, False),
    ],
)
def test_a_dictionary_stops_at_or_above(reported: Any, stops: bool) -> None:
    """What is no number stops nothing and breaks nothing."""
    nested = row(1, parts={"score": reported})
    assert combine({"parts/score": 0.9})("t", nested) is stops
    assert combine({"score": 0.9})("t", row(1, score=reported)) is stops


def test_a_dictionary_with_several_keys_is_several_criteria() -> None:
    """Any of them stops the trial, and it is the one that is named."""
    result = row(2, score=0.1)
    assert combine({"score": 0.9, "training_iteration": 2})("t", result) is True
    assert why(result) == "criterion:training_iteration"


def test_without_the_guard_rows_are_stamped_all_the_same() -> None:
    """The columns are there from the first row on."""
    rows = [row(1), row(2)]
    stopper = combine({"training_iteration": 2})
    assert [stopper("t", result) for result in rows] == [False, True]
    assert rows[0].keys() == rows[1].keys() > set(KEYS)
    assert why(rows[1]) == "criterion:training_iteration"


def test_combinations_combine() -> None:
    """A combination within one is taken apart."""
    inner = combine(MaximumIterationStopper(2), {"score": 1})
    result = row(2, score=2)
    assert combine(GuardStopper(POLICY), inner)("t", result) is True
    assert why(result) == "criterion:score"


def test_a_broken_criterion_counts_as_no(caplog: Any) -> None:
    """It is named once; the others are asked."""
    last = Recorder(says=True)
    stopper = combine(Broken(), last)
    assert [stopper("t", row(n)) for n in (1, 2)] == [True, True]
    assert stopper.stop_all() is False
    assert len([m for m in caplog.messages if "Broken failed" in m]) == 1


def test_the_last_row_shown_twice_is_not_counted_twice() -> None:
    """Ray shows a function's last row again when it returns."""
    counter = Recorder()
    stopper = combine(GuardStopper(POLICY), counter)
    last = row(1)
    stopper("t", last)
    last["done"] = True
    stopper("t", last)
    shown_again = dict(last)
    stopper("t", shown_again)
    assert counter.asked == 1
    assert json.loads(last["tune_guard/detail"])["outcome"] == "completed"


def test_a_trial_that_ends_itself_is_not_stopped_by_a_criterion() -> None:
    """It completed, even if a criterion fired on the same row."""
    result = row(3, done=True)
    combine(GuardStopper(POLICY), {"training_iteration": 3})("t", result)
    assert why(result) == ""
    assert json.loads(result["tune_guard/detail"])["outcome"] == "completed"


def test_whoever_ends_the_experiment_leaves_its_name() -> None:
    """In the newest row of every open trial, where the callback finds it."""
    quiet, ending = Recorder(), Recorder()
    stopper = combine(GuardStopper(POLICY), quiet, ending)
    rows = {name: row(1) for name in ("a", "b")}
    for name, result in rows.items():
        stopper(name, result)
    assert stopper.stop_all() is False
    ending.ends = True
    assert stopper.stop_all() is True
    assert quiet.asked_for_all == 2
    stamps = [stamp_of(result) for result in rows.values()]
    assert [stamp.stopped_by for stamp in stamps if stamp] == ["Recorder"] * 2


def test_ended_trials_are_let_go() -> None:
    """Rows are kept of open trials only."""
    stopper: Any = combine(GuardStopper(POLICY), Recorder())
    for n in range(300):
        result = row(1)
        stopper(f"t{n}", result)
        result["done"] = True
    assert len(stopper._rows) < 10


def reread(value: Any) -> Any:
    """Return what another process reads of a pickled value."""
    return pickle.loads(pickle.dumps(value))  # noqa: S301 - our own


def test_it_is_pickled_with_functions_of_a_script() -> None:
    """Criteria keep their state; functions go along by value."""
    stopper = combine(
        GuardStopper(POLICY), MaximumIterationStopper(3), lambda trial_id, result: False
    )
    assert [stopper("t", row(n)) for n in (1, 2)] == [False, False]
    result = row(3)
    assert reread(stopper)("t", result) is True
    assert why(result) == "criterion:MaximumIterationStopper"


def test_a_criterion_that_cannot_be_read_is_named_and_left_out(caplog: Any) -> None:
    """Ray would start the experiment over if it raised."""
    stopper: Any = combine(Recorder(says=True), {"training_iteration": 2})
    state = stopper.__getstate__()
    state["criteria"][0] = ("Recorder", b"damaged")
    stopper.__setstate__(state)
    assert [stopper("t", row(n)) for n in (1, 2)] == [False, True]
    assert len([m for m in caplog.messages if "Recorder could not be read" in m]) == 1


@pytest.mark.parametrize("state", [None, {}, {"criteria": None}, 3], ids=repr)
def test_a_state_that_cannot_be_read_raises_nothing(state: Any) -> None:
    """Nothing is left to ask then."""
    stopper: Any = combine(Recorder(says=True))
    stopper.__setstate__(state)
    assert stopper("t", row()) is False
    assert stopper.stop_all() is False


@pytest.mark.parametrize(
    "criteria",
    [(), (3,), ("loss",), (MaximumIterationStopper,), ({"loss": "low"},), (None,)],
    ids=repr,
)
def test_what_is_no_criterion_is_an_error(criteria: tuple[Any, ...]) -> None:
    """At construction."""
    with pytest.raises(ConfigError):
        combine(*criteria)


@pytest.mark.parametrize(
    ("criterion", "advice"),
    [
        (Policy.default("loss", "min"), "Wrap the policy: GuardStopper(policy)."),
        ([MaximumIterationStopper(3)], "Pass them one by one"),
        (MaximumIterationStopper, "Pass an instance"),
    ],
)
def test_what_was_meant_is_said(criterion: Any, advice: str) -> None:
    """And not with every field of a policy before it."""
    with pytest.raises(ConfigError) as caught:
        combine(criterion)
    assert advice in str(caught.value)
    assert len(str(caught.value)) < 400
