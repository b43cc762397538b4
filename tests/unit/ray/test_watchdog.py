"""The watchdog: silence is counted per attempt, and whoever is silent is ended."""

from __future__ import annotations

import pickle
from types import SimpleNamespace
from typing import Any

import pytest
from ray.tune.experiment import Trial
from ray.tune.schedulers import ASHAScheduler, FIFOScheduler, TrialScheduler

from tune_guard import Blame, ConfigError, Policy
from tune_guard.ray import Watchdog, _engine
from tune_guard.ray.outcome import error_fields
from tune_guard.ray.rows import Stamp, stamp_of
from tune_guard.record import STATUS, Outcome
from tune_guard.rules import Stalled

RULE = Stalled(timeout_s=60, first_report_s=300)
POLICY = Policy("loss", "min", rules=(RULE,))


class FakeTrial:
    """What the watchdog reads of a trial."""

    RUNNING, PENDING, PAUSED = Trial.RUNNING, Trial.PENDING, Trial.PAUSED

    def __init__(self, trial_id: str = "t") -> None:
        self.trial_id = trial_id
        self.status = Trial.RUNNING
        self.path = "/nowhere"
        self.storage = None
        self.pickled_error_file = self.error_file = None
        self.run_metadata = SimpleNamespace(last_result={})
        self.temporary_state = SimpleNamespace(ray_actor=SimpleNamespace(_actor_id=1))

    def start_again(self) -> None:
        """Run in another process."""
        self.status = Trial.RUNNING
        self.temporary_state.ray_actor = SimpleNamespace(_actor_id=object())


class Sweep:
    """A controller with some trials, and a clock that is set by hand."""

    def __init__(self, watchdog: Watchdog, *trials: FakeTrial) -> None:
        self.watchdog, self.trials = watchdog, list(trials)
        self.now_s = 0.0
        watchdog._clock = lambda: self.now_s

    def get_live_trials(self) -> list[FakeTrial]:
        """Return all trials."""
        return self.trials

    def get_trials(self) -> list[FakeTrial]:
        """Return all trials."""
        return self.trials

    def wait(self, seconds: float) -> None:
        """Let time pass, with a question a second."""
        for _ in range(int(seconds)):
            self.now_s += 1.0
            self.watchdog.choose_trial_to_run(self)

    def report(self, trial: FakeTrial, step: int = 1) -> str:
        """Let a trial report."""
        row: dict[str, Any] = {"loss": 1.0, "training_iteration": step, STATUS: Stamp()}
        trial.run_metadata.last_result = row
        return self.watchdog.on_trial_result(self, trial, row)  # type: ignore[arg-type]


@pytest.fixture
def ended(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the ids of the trials whose process was ended."""
    found: list[str] = []
    monkeypatch.setattr(_engine, "end_process", lambda t: found.append(t.trial_id))
    return found


def test_a_silent_trial_is_ended_once(ended: list[str]) -> None:
    """After 60 seconds since its last report, not before, and once."""
    trial = FakeTrial()
    sweep = Sweep(Watchdog(POLICY), trial)
    sweep.report(trial)
    sweep.wait(59)
    assert ended == []
    sweep.wait(200)
    assert ended == ["t"]


def test_a_trial_that_reports_is_left_alone(ended: list[str]) -> None:
    """However long it runs."""
    trial = FakeTrial()
    sweep = Sweep(Watchdog(POLICY), trial)
    for step in range(1, 20):
        sweep.report(trial, step)
        sweep.wait(50)
    assert ended == []


def test_time_does_not_run_while_the_driver_is_held_up(ended: list[str]) -> None:
    """Nobody hears the trials then, however long it lasts."""
    trial = FakeTrial()
    sweep = Sweep(Watchdog(POLICY), trial)
    sweep.report(trial)
    for _ in range(5):
        sweep.now_s += 1000.0
        sweep.wait(1)
    sweep.report(trial)
    assert ended == []
    sweep.wait(59)
    assert ended == []
    sweep.wait(2)
    assert ended == ["t"]


def test_a_report_that_was_on_its_way_keeps_the_reason(ended: list[str]) -> None:
    """The process is ended, and its last report comes in: the record is of that row."""
    trial = FakeTrial()
    sweep = Sweep(Watchdog(POLICY), trial)
    sweep.report(trial)
    sweep.wait(61)
    sweep.report(trial, step=2)
    stamp = stamp_of(trial.run_metadata.last_result)
    assert stamp is not None
    assert stamp.silent is not None
    assert stamp.silent.reason == "stalled"
    sweep.wait(100)
    assert ended == ["t"]


def test_the_first_report_has_more_time(ended: list[str]) -> None:
    """Imports, data sets and compilation come before it."""
    sweep = Sweep(Watchdog(POLICY), FakeTrial())
    sweep.wait(300)
    assert ended == []
    sweep.wait(10)
    assert ended == ["t"]


def test_a_retry_begins_anew(ended: list[str]) -> None:
    """With its own time for the first report."""
    trial = FakeTrial()
    sweep = Sweep(Watchdog(POLICY), trial)
    sweep.report(trial)
    sweep.wait(80)
    trial.start_again()
    sweep.wait(299)
    assert ended == ["t"]
    sweep.wait(30)
    assert ended == ["t", "t"]


@pytest.mark.parametrize("status", [Trial.PENDING, Trial.PAUSED])
def test_time_does_not_run_while_a_trial_waits(ended: list[str], status: str) -> None:
    """Paused by a scheduler, or waiting for resources."""
    trial = FakeTrial()
    sweep = Sweep(Watchdog(POLICY), trial)
    sweep.report(trial)
    trial.status = status
    sweep.wait(1000)
    trial.start_again()
    sweep.wait(100)
    assert ended == []


def test_the_reason_lies_where_the_record_is_made(ended: list[str]) -> None:
    """Rule, step of the last report, seconds, and the machine's blame."""
    trial = FakeTrial()
    sweep = Sweep(Watchdog(POLICY), trial)
    sweep.report(trial, step=7)
    sweep.wait(70)
    assert ended
    fields = error_fields(trial)  # type: ignore[arg-type]
    assert fields["reason"] == "stalled"
    assert fields["outcome"] is Outcome.GUARD
    assert fields["blame"] is Blame.INFRASTRUCTURE
    assert (fields["step"], fields["threshold"]) == (7, 60.0)
    assert 60 <= fields["value"] <= 65
    assert "since step 7" in fields["message"]


def test_a_trial_that_never_reported_has_a_reason_too(ended: list[str]) -> None:
    """Its row is empty until then."""
    trial = FakeTrial()
    Sweep(Watchdog(POLICY), trial).wait(400)
    assert ended
    fields = error_fields(trial)  # type: ignore[arg-type]
    assert (fields["reason"], fields["step"]) == ("stalled", -1)
    assert "since it began to run" in fields["message"]


@pytest.mark.parametrize("action", ["warn", "off"])
def test_a_policy_may_only_warn(
    ended: list[str], action: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Then nothing is ended; one warning a trial, or none."""
    policy = Policy("loss", "min", rules=(RULE,), actions={"stalled": action})
    trial = FakeTrial()
    sweep = Sweep(Watchdog(policy), trial)
    sweep.report(trial)
    sweep.wait(500)
    assert ended == []
    assert len([m for m in caplog.messages if "No report" in m]) == (action == "warn")
    stamp = stamp_of(trial.run_metadata.last_result)
    assert stamp is not None
    assert stamp.silent is None


def test_every_silent_trial_is_ended_and_no_other(ended: list[str]) -> None:
    """Trials do not share their time."""
    trials = [FakeTrial(name) for name in ("a", "b", "c")]
    sweep = Sweep(Watchdog(POLICY), *trials)
    for trial in trials:
        sweep.report(trial)
    for _ in range(3):
        sweep.wait(30)
        sweep.report(trials[1])
    assert sorted(ended) == ["a", "c"]


class Recording(TrialScheduler):
    """A scheduler that writes down what it is told."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.told: list[str] = []
        self._supports_buffered_results = False

    def __getattribute__(self, name: str) -> Any:
        """Note every call of a hook."""
        if name.startswith(("on_", "choose_", "debug_", "set_search_", "save", "rest")):
            told: list[str] = object.__getattribute__(self, "told")
            return lambda *_, **__: told.append(name) or name
        return object.__getattribute__(self, name)


def test_the_wrapped_scheduler_is_told_everything() -> None:
    """Each hook passes, and so do its answers."""
    inner = Recording()
    watchdog: Any = Watchdog(POLICY, inner)
    trial = FakeTrial()
    controller = Sweep(watchdog, trial)
    answers = [
        watchdog.set_search_properties("loss", "min"),
        watchdog.on_trial_add(controller, trial),
        watchdog.on_trial_result(controller, trial, {}),
        watchdog.choose_trial_to_run(controller),
        watchdog.debug_string(),
    ]
    watchdog.on_trial_error(controller, trial)
    watchdog.on_trial_complete(controller, trial, {})
    watchdog.on_trial_remove(controller, trial)
    watchdog.save("x")
    watchdog.restore("x")
    assert len(inner.told) == 10
    assert answers[2:] == ["on_trial_result", "choose_trial_to_run", "debug_string"]
    assert watchdog.supports_buffered_results is False


def test_a_failure_while_looking_ends_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """It is named once, and the scheduler is asked all the same."""
    watchdog = Watchdog(POLICY)

    class Broken(Sweep):
        def get_live_trials(self) -> list[FakeTrial]:
            """Fail."""
            msg = "no trials"
            raise RuntimeError(msg)

    Broken(watchdog, FakeTrial()).wait(100)
    assert len([m for m in caplog.messages if "could not be watched" in m]) == 1


def test_it_is_pickled_without_its_times(ended: list[str]) -> None:
    """A tuner pickles its scheduler; a restored sweep counts anew."""
    trial = FakeTrial()
    watchdog = Watchdog(POLICY, ASHAScheduler())
    sweep = Sweep(watchdog, trial)
    sweep.report(trial)
    sweep.wait(50)
    restored = pickle.loads(pickle.dumps(watchdog))  # noqa: S301 - our own
    assert isinstance(restored.wrapped_scheduler, ASHAScheduler)
    Sweep(restored, trial).wait(250)
    assert ended == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((Policy.default("loss", "min"),), "must have the rule `stalled`"),
        ((Policy("loss", rules=(RULE,)),), "`mode` must be"),
        ((None,), "`policy` must be a Policy"),
        ((POLICY, "asha"), "`wrapped_scheduler` must be a scheduler"),
        ((POLICY, ASHAScheduler), "`wrapped_scheduler` must be a scheduler"),
    ],
    ids=["rule", "mode", "policy", "name", "class"],
)
def test_a_wrong_argument_is_refused(arguments: Any, said: str) -> None:
    """At construction, with what to write instead."""
    with pytest.raises(ConfigError, match=said):
        Watchdog(*arguments)


def test_the_reason_of_others_names_the_scheduler_inside() -> None:
    """A trial that ASHA cuts has ASHA for a reason, however it is wrapped."""
    inner = ASHAScheduler()
    owner: Any = SimpleNamespace(
        _scheduler_alg=Watchdog(POLICY, Watchdog(POLICY, inner))
    )
    assert _engine.scheduler_of(owner) is inner
    owner._scheduler_alg = Watchdog(POLICY, FIFOScheduler())  # type: ignore[no-untyped-call]
    assert _engine.scheduler_of(owner) is None
