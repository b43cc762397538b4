"""Signatures against known answers, made with openssl."""

from __future__ import annotations

from tune_guard.notify.dingtalk import DingTalk
from tune_guard.notify.feishu import Feishu

NOW = 1_700_000_000.0


def test_dingtalk_signs_milliseconds_under_the_secret_in_the_query() -> None:
    r"""Quoted once.

    printf '1700000000000\nSECabc' | openssl dgst -sha256 -hmac SECabc -binary | base64
    """
    robot = DingTalk("https://h/robot/send?access_token=t", "t", "SECabc")
    url, payload = robot.signed({"msgtype": "text"}, NOW)
    assert url == (
        "https://h/robot/send?access_token=t&timestamp=1700000000000"
        "&sign=jcUpW0QmtKduN03n4JqQ0PBosVjqnM8gU7fIIvsDmCM%3D"
    )
    assert payload == {"msgtype": "text"}


def test_feishu_signs_nothing_under_seconds_and_secret_in_the_body() -> None:
    r"""The key holds the time.

    printf '' | openssl dgst -sha256 -mac HMAC \
      -macopt hexkey:$(printf '1700000000\nabc' | xxd -p) -binary | base64
    """
    url, payload = Feishu("https://h/hook/t", "t", "abc").signed({"x": 1}, NOW)
    assert url == "https://h/hook/t"
    assert payload == {
        "timestamp": "1700000000",
        "sign": "VIS10b0EBvzzSdFnuk4tznEmK5wHaruvf/WnViv2yR4=",
        "x": 1,
    }


def test_each_time_has_its_own_signature() -> None:
    """Two hours later, and a millisecond later."""
    robot = DingTalk("https://h?access_token=t", "t", "SECabc")
    urls = {robot.signed({}, NOW + later)[0] for later in (0.0, 0.001, 7200.0)}
    assert len(urls) == 3
