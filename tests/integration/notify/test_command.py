"""``tune-guard alerts``: a wrong setting is found, and what waits is shown."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.integration.notify.events import fault
from tests.integration.notify.robots import SECRET, TOKEN, Robots
from tune_guard.cli import main
from tune_guard.notify.alerts import Alerts

Setup = Callable[..., None]


@pytest.fixture
def setup(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Setup:
    """Set the variables of the process."""

    def set_to(alerts: str, **more: str) -> None:
        monkeypatch.setenv("TUNE_GUARD_STATE", str(tmp_path))
        monkeypatch.setenv("TUNE_GUARD_ALERTS", alerts)
        for name, value in more.items():
            monkeypatch.setenv(f"TUNE_GUARD_ALERTS_{name.upper()}", value)

    return set_to


def test_a_good_setting_says_that_the_message_arrived(
    robots: Robots, setup: Setup, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each service gets one message in the chosen language."""
    setup(f"{robots.url('dingtalk')} {robots.url('feishu')}", lang="zh")
    assert main(["alerts", "--test"]) == 0
    out = capsys.readouterr().out
    assert out.count("the test message arrived") == 2
    assert [message.kind for message in robots.messages] == ["dingtalk", "feishu"]
    assert all("这是一条测试消息" in message.text for message in robots.messages)


@pytest.mark.parametrize("kind", ["dingtalk", "feishu"])
def test_a_wrong_secret_is_found(
    robots: Robots, setup: Setup, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    """The service's code and the advice are shown; the secret is not."""
    setup(robots.url(kind, secret="SECwrongwrong"))
    assert main(["alerts", "--test"]) == 1
    shown = "".join(capsys.readouterr())
    assert "did not arrive" in shown
    assert "the signature does not match" in shown
    assert "SECwrongwrong" not in shown
    assert TOKEN not in shown


def test_keyword_and_address_are_told_apart(
    setup: Setup, capsys: pytest.CaptureFixture[str]
) -> None:
    """One code of DingTalk, two pieces of advice."""
    with Robots(keyword="sweep") as keyword, Robots(allowed=False) as address:
        setup(f"{keyword.url('dingtalk')}")
        assert main(["alerts", "--test"]) == 1
        setup(f"{address.url('dingtalk')}")
        assert main(["alerts", "--test"]) == 1
    out = capsys.readouterr().out
    assert "asks for a keyword" in out
    assert "list of allowed addresses" in out


def test_a_clock_that_is_off_is_found_though_the_message_arrives(
    robots: Robots, setup: Setup, capsys: pytest.CaptureFixture[str]
) -> None:
    """The advice is shown beside the success."""
    now = robots.clock
    robots.clock = lambda: now() - 7200.0
    setup(robots.url("dingtalk"))
    assert main(["alerts", "--test"]) == 0
    out = capsys.readouterr().out
    assert "arrived: DingTalk refused the time stamp" in out
    assert "2.0 h faster" in out


@pytest.mark.parametrize(
    ("alerts", "said"),
    [
        ("dingtalk://", "this is no token of a robot"),
        (f"dingtalk://{SECRET}@{TOKEN}/", "this is no token of a robot"),
        (f"feishu://{TOKEN}?secrets={SECRET}", "'secrets' is no option"),
        (f"feishu://{TOKEN}?{SECRET}", "a part of it is no option"),
        ("/no/such/file", "neither a URL nor a file"),
        ("nosuch://x", "apprise does not know this URL"),
        ("https://oapi.dingtalk.com/robot/send", "the URL holds no token"),
        ("", "TUNE_GUARD_ALERTS names no service"),
    ],
)
def test_a_setting_that_cannot_be_meant_is_named(
    setup: Setup, capsys: pytest.CaptureFixture[str], alerts: str, said: str
) -> None:
    """Exit status 2, the variable's name, and no secret."""
    setup(alerts)
    assert main(["alerts", "--test"]) == 2
    shown = capsys.readouterr().err
    assert said in shown
    assert "TUNE_GUARD_ALERTS" in shown
    assert SECRET not in shown
    assert TOKEN not in shown


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("lang", "fr", "the language must be en or zh"),
        ("on", "fault,ends", "Did you mean `end`"),
        ("on", "share:0", "must be above 0"),
        ("on", "share:many", "must be a number"),
    ],
)
def test_other_settings_are_checked_too(
    setup: Setup,
    capsys: pytest.CaptureFixture[str],
    name: str,
    value: str,
    said: str,
) -> None:
    """The message names the variable that is wrong."""
    setup(f"feishu://{TOKEN}", **{name: value})
    assert main(["alerts", "--test"]) == 2
    shown = capsys.readouterr().err
    assert f"TUNE_GUARD_ALERTS_{name.upper()}" in shown
    assert said in shown


def test_what_waits_is_shown_with_the_reason(
    setup: Setup, capsys: pytest.CaptureFixture[str], settings_of: Callable[..., object]
) -> None:
    """Trials by id, the service's last answer, and who will send them."""
    with Robots(keyword="sweep") as robots:
        settings = settings_of(robots.url("dingtalk"))
        alerts = Alerts(settings)  # type: ignore[arg-type]
        for number in range(3):
            alerts.handle(fault(f"train_a_{number}"))
        assert robots.wait_for(lambda: robots.requests == 1)
        alerts.close(2.0)
        setup(robots.url("dingtalk"))
    assert main(["alerts"]) == 1
    out = capsys.readouterr().out
    assert "train_a_0, train_a_1, train_a_2" in out
    assert "310000 keywords not in content" in out
    assert "its process has ended" in out
    assert main(["alerts", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)["waiting"]
    assert sorted(item["count"] for item in found) == [1, 3]


def test_nothing_waits(
    setup: Setup, capsys: pytest.CaptureFixture[str], robots: Robots
) -> None:
    """Exit status 0, and a sentence."""
    setup(robots.url("dingtalk"))
    assert main(["alerts"]) == 0
    assert capsys.readouterr().out == "No alert waits to be delivered.\n"
