"""The place where the engines announce."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tune_guard import dispatcher as dispatcher_module
from tune_guard import listeners
from tune_guard.dispatcher import Dispatcher
from tune_guard.events import Event, GuardError, HealthSample, SweepStarted, TrialEnded
from tune_guard.notices import Notices
from tune_guard.record import StopRecord

ROOT = Path(__file__).parents[2]

SAMPLE = HealthSample(sweep="s", trial="t", step=1)
ENDED = TrialEnded(sweep="s", trial="t", record=StopRecord(reason="plateau"))


class Ear:
    """A listener that remembers."""

    def __init__(self) -> None:
        self.heard: list[Event] = []
        self.closed = False

    def handle(self, event: Event) -> None:
        """Remember."""
        self.heard.append(event)

    def close(self, within_s: float) -> None:
        """Remember that too."""
        self.closed = True


@pytest.fixture(autouse=True)
def anew(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Start and leave undecided, with no variable set."""
    for kind in listeners.KINDS:
        monkeypatch.delenv(kind.variable, raising=False)
    listeners._forget()
    yield
    listeners.shut()
    listeners._forget()


@pytest.fixture
def ear(monkeypatch: pytest.MonkeyPatch) -> Ear:
    """A listener in the place of the alerts."""
    found = Ear()
    monkeypatch.setenv("TUNE_GUARD_ALERTS", "somewhere")
    monkeypatch.setattr("tune_guard.notify.alerts.from_environment", lambda: found)
    return found


def test_without_a_variable_nothing_is_started() -> None:
    """And nothing is imported."""
    before = threading.active_count()
    listeners.announce(ENDED)
    assert not listeners.is_on()
    assert not listeners.wants_samples()
    assert threading.active_count() == before
    assert listeners._decided


def test_who_asks_at_every_report_does_not_read_the_environment_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What held at the start of a trial holds until the next one starts."""
    assert not listeners.is_on()
    monkeypatch.setenv("TUNE_GUARD_PROMETHEUS", "9000")
    assert not listeners.wants_samples()
    assert listeners.is_on()
    assert listeners.wants_samples()


def test_an_event_reaches_the_listener_in_order(ear: Ear) -> None:
    """Also those announced while it was made."""
    assert listeners.is_on()
    events = [SweepStarted(sweep=str(number)) for number in range(50)]
    for event in events:
        listeners.announce(event)
    listeners.shut()
    assert ear.heard == events
    assert ear.closed


def test_after_the_end_an_event_is_nobodys(ear: Ear) -> None:
    """The process exits."""
    listeners.announce(ENDED)
    listeners.shut()
    listeners.announce(ENDED)
    assert ear.heard == [ENDED]


def test_samples_go_only_to_who_takes_them(ear: Ear) -> None:
    """Alerts do not."""
    assert not listeners.wants_samples()
    listeners.announce(SAMPLE)
    listeners.announce(ENDED)
    listeners.shut()
    assert ear.heard == [ENDED]


def test_what_the_guard_names_is_an_event(ear: Ear) -> None:
    """Once, as it is logged."""
    listeners.announce(ENDED)
    notices = Notices()
    for _ in range(3):
        notices.once("rule:mine", "It failed.")
    listeners.shut()
    assert ear.heard[1:] == [GuardError(topic="rule:mine", message="It failed.")]
    notices.once("rule:other", "It failed.")
    assert len(ear.heard) == 2


def test_a_listener_that_cannot_be_made_is_said_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing raises; the setting itself is not shown."""
    monkeypatch.setenv("TUNE_GUARD_ALERTS", "nosuchservice://hidden-token")
    for _ in range(5):
        listeners.announce(ENDED)
    listeners.shut()
    assert caplog.text.count("TUNE_GUARD_ALERTS is set, but has no effect") == 1
    assert "hidden-token" not in caplog.text


def test_a_listener_that_raises_is_named_once_for_each_kind_of_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """And is told the next event all the same."""

    class Faulty(Ear):
        def handle(self, event: Event) -> None:
            super().handle(event)
            raise ValueError

        def close(self, within_s: float) -> None:
            raise OSError

    faulty = Faulty()
    dispatcher = Dispatcher(lambda: faulty)
    for _ in range(4):
        dispatcher.put(ENDED)
    dispatcher.close()
    assert len(faulty.heard) == 4
    assert caplog.text.count("Faulty could not take a TrialEnded") == 1


def test_a_listener_that_hangs_holds_up_nobody(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Events are dropped when too many wait, and their number is said."""
    released = threading.Event()

    class Hanging(Ear):
        def handle(self, event: Event) -> None:
            released.wait()

    monkeypatch.setattr(dispatcher_module, "MOST_WAITING", 10)
    dispatcher = Dispatcher(Hanging, exit_within_s=0.01)
    for _ in range(100):
        dispatcher.put(ENDED)
    assert 89 <= dispatcher.dropped <= 90
    dispatcher.close()
    released.set()
    assert "events were too many" in caplog.text


def test_waiting_ends_when_all_was_told() -> None:
    """And says so when that takes too long."""
    ear, released = Ear(), threading.Event()

    def make() -> Ear:
        released.wait()
        return ear

    dispatcher = Dispatcher(make)
    dispatcher.put(ENDED)
    assert not dispatcher.wait(0.01)
    released.set()
    assert dispatcher.wait(60.0)
    assert ear.heard == [ENDED]
    dispatcher.close()


def test_a_forked_child_begins_anew(ear: Ear) -> None:
    """Its parent's listeners and their threads are not in it."""
    listeners.announce(ENDED)
    told: Any = listeners._told
    listeners._forget()
    assert listeners._told == ()
    assert not listeners._decided
    assert Notices.observers == []
    for _, dispatcher in told:
        dispatcher.close()


def test_the_listeners_cost_no_import() -> None:
    """Neither apprise, prometheus_client, tensorboardX nor ssl."""
    code = (
        "import sys; from tune_guard import listeners;"
        " heavy = {'apprise', 'prometheus_client', 'tensorboardX', 'ssl', 'ray',"
        " 'optuna', 'torch', 'pandas', 'numpy'};"
        " print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=True,
    )
    assert done.stdout == "[]\n"


def test_nothing_that_is_logged_is_above_a_warning(
    ear: Ear, caplog: pytest.LogCaptureFixture
) -> None:
    """The guard's own logger, and no other."""
    caplog.set_level(logging.DEBUG)
    listeners.announce(ENDED)
    listeners.shut()
    assert [r for r in caplog.records if r.levelno > logging.WARNING] == []
