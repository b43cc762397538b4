"""Signed messages to a DingTalk group robot.

Source: the vendor's page on custom robots and their security settings
(open.dingtalk.com/document/robots/customize-robot-security-settings) and its
table of error codes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from tune_guard.notify.robot import Robot, quoted, sign
from tune_guard.notify.service import SENT, Delivery, Limit

TOO_FAST = frozenset({"130101", "410100"})
BUSY = frozenset({"-1", "90018"})
SECURITY = "310000"

_ADVICE = {
    "300001": "the token is unknown: copy the robot's URL again",
    "300005": "the token is unknown: copy the robot's URL again",
    "400013": "the group was dismissed",
    "400101": "the token is unknown: copy the robot's URL again",
    "400102": "the robot is switched off in its group's settings",
    "400106": "the robot was removed from its group",
    "430101": "the message holds a link that DingTalk holds for unsafe",
    "430102": "DingTalk holds the text for improper",
    "430104": "DingTalk holds the text for improper",
    "460101": "the message is too long",
}


class DingTalk(Robot):
    r"""A DingTalk robot.

    Success is ``errcode`` 0, whatever the HTTP status. One robot takes 20
    messages a minute, and is silent for 10 minutes after more. The signature is
    the HMAC-SHA256 over ``<ms>\n<secret>`` under the secret, in the query.

    Example:
        >>> robot = DingTalk("https://oapi.dingtalk.com/robot/send?access_token=t",
        ...                  "t", "SECabc")
        >>> robot.signed({}, 1700000000.0)[0].partition("&sign=")[2]
        'jcUpW0QmtKduN03n4JqQ0PBosVjqnM8gU7fIIvsDmCM%3D'
    """

    kind: str = "dingtalk"
    label: str = "DingTalk"
    limit: Limit = Limit(count=20, per_s=60.0, silence_s=600.0)
    most_bytes: int = 19_000
    """DingTalk refuses 20,000 bytes and more; some room is left."""

    def payload(self, title: str, body: str) -> dict[str, Any]:
        """Return a plain text message: its text is shown as it is."""
        return {"msgtype": "text", "text": {"content": f"{title}\n{body}"}}

    def signed(self, payload: dict[str, Any], now: float) -> tuple[str, dict[str, Any]]:
        """Return URL and payload; the signature is quoted once, in the URL."""
        if not self._secret:
            return self._url, payload
        ms = int(now * 1000)
        signature = quote(sign(self._secret, f"{ms}\n{self._secret}"), safe="")
        return f"{self._url}&timestamp={ms}&sign={signature}", payload

    def read(self, reply: Mapping[str, Any]) -> Delivery | None:
        """Return what DingTalk's own code says."""
        if "errcode" not in reply:
            return _blocked(reply)
        code, said = str(reply["errcode"]), quoted(reply.get("errmsg"))
        if code == "0":
            return SENT
        words = f"DingTalk says {code} {said}"
        if code in TOO_FAST or "too fast" in said:
            wait = self.limit.silence_s
            return Delivery(status="retry", code=code, message=words, wait_s=wait)
        if code in BUSY:
            return Delivery(status="retry", code=code, message=words)
        advice = _security(said) if code == SECURITY else _ADVICE.get(code, "")
        message = f"{words}: {advice}" if advice else words
        return Delivery(status="refused", code=code, message=message)

    def is_stale(self, refused: Delivery) -> bool:
        """Whether a refusal is for the time stamp, or for a signature made of it."""
        said = refused.message
        return refused.code == SECURITY and ("timestamp" in said or "sign" in said)


def _blocked(reply: Mapping[str, Any]) -> Delivery | None:
    """Read the answer of DingTalk's gateway, which throttles before the robot does."""
    if reply.get("punish") != "deny":
        return None
    wait = reply.get("wait")
    return Delivery(
        status="retry",
        code=str(reply.get("status", "")),
        message="DingTalk's gateway throttles this machine",
        wait_s=float(wait) if isinstance(wait, (int, float)) else None,
    )


def _security(said: str) -> str:
    """Tell apart what one code stands for: keyword, address, time stamp, signature."""
    low = said.lower()
    if "keyword" in low:
        return (
            "the robot asks for a keyword: add keyword=... to its URL in"
            " TUNE_GUARD_ALERTS"
        )
    if "whitelist" in low or "ip " in low:
        return "this machine's address is not on the robot's list of allowed addresses"
    if "timestamp" in low:
        return "the time stamp is stale; check this machine's clock"
    if "sign" in low:
        return "the signature does not match; check secret=... (it begins with SEC)"
    return "the robot's security settings refuse it"
