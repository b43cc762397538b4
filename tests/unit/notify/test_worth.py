"""Which events are worth a message."""

from __future__ import annotations

from typing import Any

import pytest

from tune_guard.events import SweepEnded, SweepStarted, TrialEnded, TrialStarted
from tune_guard.exceptions import ConfigError
from tune_guard.notify.alert import Alert, Kind
from tune_guard.notify.judge import Judge
from tune_guard.notify.worth import Worth
from tune_guard.record import Outcome, StopRecord
from tune_guard.verdict import Blame

EVERYTHING = Worth(kinds=tuple(kind for kind in Kind if kind is not Kind.TEST))


def end(trial: str, reason: str = "", **more: Any) -> TrialEnded:
    """Return the end of a trial; with a reason, the guard cut it."""
    outcome = more.pop("outcome", Outcome.GUARD if reason else Outcome.COMPLETED)
    blame = more.pop("blame", Blame.CONFIG if reason else None)
    record = StopRecord(reason=reason, outcome=outcome, blame=blame, step=7)
    return TrialEnded(sweep="s", trial=trial, record=record, **more)


def kinds(alerts: list[Alert]) -> list[str]:
    """Return the kinds of alerts."""
    return [str(alert.kind) for alert in alerts]


def test_a_machine_fault_is_told_each_time() -> None:
    """Also where the trial is tried again."""
    judge = Judge(Worth())
    fault = end("a", "gpu_fault", blame=Blame.INFRASTRUCTURE, final=False)
    (first,), (second,) = judge.consider(fault), judge.consider(fault)
    assert kinds([first, second]) == ["fault", "fault"]
    assert first.facts["again"] is True


def test_an_error_of_the_machine_is_a_fault_too() -> None:
    """A worker that died was cut by nobody."""
    died = end(
        "a", "error:ActorDied", outcome=Outcome.ERROR, blame=Blame.INFRASTRUCTURE
    )
    assert kinds(Judge(Worth()).consider(died)) == ["fault"]


@pytest.mark.parametrize("reason", ["plateau", "divergence", "no_progress"])
def test_a_cut_alone_is_told_only_when_asked_for(reason: str) -> None:
    """Each plateau is what the guard is there for."""
    assert Judge(Worth()).consider(end("a", reason)) == []
    assert kinds(Judge(EVERYTHING).consider(end("a", reason))) == ["cut"]


def test_the_first_nan_of_each_sweep_is_told() -> None:
    """Once for each sweep, and only by who may claim it."""
    claimed: list[str] = []

    def claim(what: str) -> bool:
        claimed.append(what)
        return "other" not in what

    judge = Judge(Worth(), claim)
    assert kinds(judge.consider(end("a", "non_finite"))) == ["first_nan"]
    assert judge.consider(end("b", "non_finite")) == []
    record = StopRecord(reason="non_finite", outcome=Outcome.GUARD, blame=Blame.CONFIG)
    other = TrialEnded(sweep="other", trial="c", record=record)
    assert judge.consider(other) == []
    assert claimed == ["first_nan:s", "first_nan:other"]


def start(judge: Judge, count: int) -> None:
    """Start trials with a learning rate that rises."""
    judge.consider(SweepStarted(sweep="s", metric="loss"))
    for number in range(count):
        params = {"lr": 0.001 * number, "depth": number % 3}
        judge.consider(TrialStarted(sweep="s", trial=str(number), params=params))


def test_a_share_is_told_at_a_quarter_and_again_when_it_has_doubled() -> None:
    """Of 40 trials: at the tenth death, and at the twentieth."""
    judge = Judge(Worth(kinds=(Kind.SHARE,)))
    start(judge, 40)
    told = {}
    for count in range(1, 25):
        for alert in judge.consider(end(str(40 - count), "divergence")):
            told[count] = alert
    assert list(told) == [10, 20]
    assert told[10].trials == tuple(str(n) for n in range(39, 29, -1))
    assert told[20].trials == tuple(str(n) for n in range(29, 19, -1))
    assert told[20].facts["dead"] == 20
    assert told[20].facts["region"]["param"] == "lr"


def test_four_deaths_are_no_share() -> None:
    """Also where hardly more trials have started."""
    judge = Judge(Worth(kinds=(Kind.SHARE,)))
    start(judge, 5)
    found = [judge.consider(end(str(n), "divergence")) for n in range(5)]
    assert [len(alerts) for alerts in found] == [0, 0, 0, 0, 1]


@pytest.mark.parametrize("outcome", [Outcome.PRUNER, Outcome.SCHEDULER])
def test_pruners_and_schedulers_that_cut_do_their_job(outcome: Outcome) -> None:
    """Nobody is told that half of the trials were worse than the other half."""
    judge = Judge(EVERYTHING)
    start(judge, 20)
    for number in range(20):
        ended = end(str(number), "pruner:MedianPruner", outcome=outcome, blame=None)
        assert judge.consider(ended) == []


def test_errors_of_the_user_are_a_share_worth_telling() -> None:
    """Half of the trials fail with the same exception."""
    judge = Judge(Worth(kinds=(Kind.SHARE,)))
    start(judge, 10)
    told = []
    for number in range(5):
        ended = end(str(number), "error:ValueError", outcome=Outcome.ERROR, blame=None)
        told += judge.consider(ended)
    assert kinds(told) == ["share"]


def test_the_end_sums_up() -> None:
    """By outcome and reason, with the compute."""
    judge = Judge(Worth())
    start(judge, 10)
    for number in range(6):
        reason = "plateau" if number % 2 else ""
        judge.consider(end(str(number), reason, time_s=10.0, saved_s=3.0))
    ended = SweepEnded(sweep="s", best_trial="4", best_value=0.5)
    (alert,) = judge.consider(ended)
    assert alert.facts == {
        "trials": 10,
        "ended": {"completed": {"": 3}, "guard": {"plateau": 3}},
        "time_s": 60.0,
        "saved_s": 18.0,
        "metric": "loss",
        "best_trial": "4",
        "best_value": 0.5,
    }
    assert judge.consider(ended) == []
    assert judge.leave() == []


def test_a_sweep_without_a_trial_ends_in_silence() -> None:
    """There is nothing to say."""
    judge = Judge(Worth())
    judge.consider(SweepStarted(sweep="s"))
    assert judge.consider(SweepEnded(sweep="s")) == []


def test_a_process_that_leaves_sums_up_what_it_saw() -> None:
    """Optuna has no end of a study; the process has one."""
    judge = Judge(Worth())
    start(judge, 3)
    (alert,) = judge.leave()
    assert alert.facts["trials"] == 3
    assert alert.facts["process"]


def test_a_started_trial_is_counted_once() -> None:
    """Ray starts a trial again after a failure."""
    judge = Judge(Worth())
    start(judge, 3)
    judge.consider(TrialStarted(sweep="s", trial="0"))
    assert judge.leave()[0].facts["trials"] == 3


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("faults", "Did you mean `fault`"),
        ("share:1.5", "at most 1"),
        ("share:x", "must be a number"),
        ("test", "no kind of alert"),
    ],
)
def test_a_wrong_list_is_refused(text: str, said: str) -> None:
    """With the nearest word."""
    with pytest.raises(ConfigError, match=said):
        Worth.parse(text)


def test_an_empty_list_is_the_default() -> None:
    """Faults, the first NaN, shares and the end."""
    assert Worth.parse(" ") == Worth()
    assert Worth.parse("end fault").kinds == (Kind.END, Kind.FAULT)
