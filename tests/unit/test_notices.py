from __future__ import annotations

import logging
import pickle

import pytest

from tune_guard.notices import Notices


def test_a_topic_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    """The second time is silent, whatever the message then says."""
    notices = Notices()
    assert notices.once("lr", "no learning rate")
    assert not notices.once("lr", "no learning rate again")
    assert notices.once("loss", "no loss")
    assert [record.message for record in caplog.records] == [
        "no learning rate",
        "no loss",
    ]


def test_a_notice_is_a_warning_of_the_packages_logger(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It can be silenced and routed as any library's."""
    Notices().once("lr", "100% of %s")
    (record,) = caplog.records
    assert (record.name, record.levelno) == ("tune_guard", logging.WARNING)
    assert record.message == "100% of %s"


def test_two_sweeps_say_it_each() -> None:
    """What one sweep was told says nothing to the next."""
    assert Notices().once("lr", "no learning rate")
    assert Notices().once("lr", "no learning rate")


def test_what_was_said_survives_a_pickle() -> None:
    """A resumed sweep does not say everything again."""
    notices = Notices()
    notices.once("lr", "no learning rate")
    twin = pickle.loads(pickle.dumps(notices))  # noqa: S301 - our own
    assert not twin.once("lr", "no learning rate")


def test_topics_are_bounded() -> None:
    """Ever new topics neither fill the memory nor the log."""
    notices = Notices()
    said = sum(notices.once(f"topic{i}", "x") for i in range(5000))
    assert said == len(notices.messages) == 1000


def test_an_observer_is_told_what_was_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once, like the log."""
    told: list[tuple[str, str]] = []
    monkeypatch.setattr(Notices, "observers", [lambda *said: told.append(said)])
    notices = Notices()
    notices.once("lr", "no learning rate")
    notices.once("lr", "no learning rate")
    assert told == [("lr", "no learning rate")]


def test_an_observer_that_raises_disturbs_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A notice is said from inside a sweep."""

    def observer(topic: str, message: str) -> None:
        raise RuntimeError

    monkeypatch.setattr(Notices, "observers", [observer])
    assert Notices().once("lr", "no learning rate")


def test_a_logging_set_up_that_raises_disturbs_nothing() -> None:
    """A user's filter may be broken; the sweep goes on."""

    def broken(record: logging.LogRecord) -> bool:
        raise RuntimeError

    logger = logging.getLogger("tune_guard")
    logger.addFilter(broken)
    try:
        assert Notices().once("lr", "no learning rate")
    finally:
        logger.removeFilter(broken)
