"""URLs of services."""

from __future__ import annotations

from pathlib import Path

import pytest

from tune_guard.exceptions import ConfigError
from tune_guard.notify.dingtalk import DingTalk
from tune_guard.notify.feishu import Feishu, Lark
from tune_guard.notify.robot import Robot
from tune_guard.notify.service import Redactor
from tune_guard.notify.targets import read_targets

TOKEN = "0123456789abcdef"


def one(setting: str) -> Robot:
    """Return the one robot of a setting."""
    (robot,) = read_targets(setting)
    assert isinstance(robot, Robot)
    return robot


@pytest.mark.parametrize(
    ("url", "kind", "address"),
    [
        (
            f"dingtalk://{TOKEN}?secret=SECx",
            DingTalk,
            f"https://oapi.dingtalk.com/robot/send?access_token={TOKEN}",
        ),
        (
            f"https://oapi.dingtalk.com/robot/send?access_token={TOKEN}&secret=SECx",
            DingTalk,
            f"https://oapi.dingtalk.com/robot/send?access_token={TOKEN}",
        ),
        (
            f"dingtalk+https://relay.example/robot/send?secret=SECx&access_token={TOKEN}",
            DingTalk,
            f"https://relay.example/robot/send?access_token={TOKEN}",
        ),
        (
            f"feishu://{TOKEN}/?secret=SECx",
            Feishu,
            f"https://open.feishu.cn/open-apis/bot/v2/hook/{TOKEN}",
        ),
        (
            f"https://open.feishu.cn/open-apis/bot/v2/hook/{TOKEN}?secret=SECx",
            Feishu,
            f"https://open.feishu.cn/open-apis/bot/v2/hook/{TOKEN}",
        ),
        (
            f"lark://{TOKEN}?secret=SECx",
            Lark,
            f"https://open.larksuite.com/open-apis/bot/v2/hook/{TOKEN}",
        ),
        (
            f"https://open.larksuite.com/open-apis/bot/v2/hook/{TOKEN}?secret=SECx",
            Lark,
            f"https://open.larksuite.com/open-apis/bot/v2/hook/{TOKEN}",
        ),
    ],
)
def test_a_robot_is_read_from_its_token_or_its_whole_url(
    url: str, kind: type[Robot], address: str
) -> None:
    """The secret is taken out of the address."""
    robot = one(url)
    assert type(robot) is kind
    assert robot._url == address
    assert robot._secret == "SECx"


def test_a_plus_sign_is_a_plus_sign_and_keywords_may_be_chinese() -> None:
    """Quoted or as they are."""
    robot = one(f"feishu://{TOKEN}?secret=a+b%2Fc%3D&keyword=%E5%91%8A%E8%AD%A6")
    assert robot._secret == "a+b/c="
    assert robot.keyword == "告警"


def test_the_mark_tells_robots_apart_and_outlives_a_new_secret() -> None:
    """What waits on disk is for a robot, not for its secret."""
    marks = {one(f"feishu://{TOKEN}?secret={s}").mark for s in ("a", "b")}
    assert len(marks) == 1
    assert one(f"feishu://{TOKEN}x").mark not in marks
    assert one(f"lark://{TOKEN}").mark not in marks
    assert TOKEN not in marks.pop()


def test_several_services_and_files_are_read_and_doubles_are_not(
    tmp_path: Path,
) -> None:
    """Between blanks, and one a line."""
    path = tmp_path / "alerts"
    path.write_text(f"# ours\n\n  lark://{TOKEN}  \ndingtalk://{TOKEN}\n")
    services = read_targets(f"feishu://{TOKEN} {path}\n dingtalk://{TOKEN}")
    assert [type(s).__name__ for s in services] == ["Feishu", "Lark", "DingTalk"]


@pytest.mark.parametrize(
    "url",
    [
        "dingtalk://",
        "feishu://?secret=SECsecret",
        f"dingtalk://SECsecret@{TOKEN}/",
        f"feishu://{TOKEN}/SECsecret",
        f"feishu://{TOKEN}?SECsecret",
        f"dingtalk+ftp://relay/robot/send?access_token={TOKEN}&secret=SECsecret",
        "feishu+http:///x?secret=SECsecret",
        "https://oapi.dingtalk.com/robot/send?secret=SECsecret",
    ],
)
def test_a_url_without_meaning_is_refused_without_being_shown(url: str) -> None:
    """The message says which entry it is, and how one looks."""
    with pytest.raises(ConfigError) as caught:
        read_targets(f"lark://{TOKEN} {url}")
    assert "entry 2" in str(caught.value)
    assert "SECsecret" not in str(caught.value)
    assert TOKEN not in str(caught.value)


def test_no_repr_shows_a_secret() -> None:
    """A traceback of somebody else may hold one."""
    robot = one(f"feishu://{TOKEN}?secret=SECsecret")
    assert "SECsecret" not in repr(robot) + str(robot) + robot.name + robot.mark


def test_secrets_are_cleaned_in_every_form() -> None:
    """As they are, quoted once, and in the other case."""
    clean = Redactor(["SEC+a/b=", "to ken"]).clean
    for form in ("SEC+a/b=", "SEC%2Ba%2Fb%3D", "sec%2ba%2fb%3d", "to+ken", "to%20ken"):
        assert clean(f"x {form} y") == "x *** y"
    assert Redactor(["", "abc"]).clean("abc") == "abc"
