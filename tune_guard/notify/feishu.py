"""Signed messages to a Feishu or Lark group robot.

Source: the vendor's guide to custom bots
(open.larkoffice.com/document/ukTMukTMukTM/ucTM5YjL3ETO24yNxkjN).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tune_guard.notify.robot import Robot, quoted, sign
from tune_guard.notify.service import SENT, Delivery, Limit

TOO_FAST = "11232"
STALE_OR_BAD_SIGN = "19021"

_ADVICE = {
    "9499": "Feishu holds the request for malformed",
    "19001": "the token is unknown: copy the robot's URL again",
    "19007": "the robot is switched off in its group's settings",
    STALE_OR_BAD_SIGN: "the signature does not match; check secret=... of its URL",
    "19022": "this machine's address is not on the robot's list of allowed addresses",
    "19024": (
        "the robot asks for a keyword: add keyword=... to its URL in TUNE_GUARD_ALERTS"
    ),
}


class Feishu(Robot):
    r"""A Feishu robot, or, on its own host, a Lark robot.

    Success is ``code`` 0, whatever the HTTP status; servers of old answer
    ``StatusCode`` 0. One robot takes 100 messages a minute and 5 a second. The
    signature is the HMAC-SHA256 over nothing under ``<s>\n<secret>``, in the body.

    Example:
        >>> robot = Feishu("https://open.feishu.cn/open-apis/bot/v2/hook/t", "t", "abc")
        >>> robot.signed({}, 1700000000.0)[1]["timestamp"]
        '1700000000'
    """

    kind: str = "feishu"
    label: str = "Feishu"
    limit: Limit = Limit(count=100, per_s=60.0, silence_s=60.0)
    most_bytes: int = 19_000
    """Feishu refuses more than 20 KB; some room is left."""

    def payload(self, title: str, body: str) -> dict[str, Any]:
        """Return a rich text message made of plain text elements only.

        In the simpler message of kind ``text``, ``<at user_id="all">`` in a
        trial's name would wake everybody; an element of text is only text.
        """
        lines = [[{"tag": "text", "text": line}] for line in body.split("\n")]
        post = {"title": title, "content": lines}
        return {"msg_type": "post", "content": {"post": {"zh_cn": post}}}

    def signed(self, payload: dict[str, Any], now: float) -> tuple[str, dict[str, Any]]:
        """Return URL and payload; the signature goes into the payload."""
        if not self._secret:
            return self._url, payload
        seconds = str(int(now))
        signature = sign(f"{seconds}\n{self._secret}", "")
        return self._url, {"timestamp": seconds, "sign": signature, **payload}

    def read(self, reply: Mapping[str, Any]) -> Delivery | None:
        """Return what Feishu's own code says."""
        found = reply.get("code", reply.get("StatusCode"))
        if found is None:
            return None
        code = str(found)
        said = quoted(reply.get("msg", reply.get("StatusMessage")))
        if code == "0":
            return SENT
        words = f"{self.label} says {code} {said}"
        if code == TOO_FAST or "too many" in said.lower():
            return Delivery(status="retry", code=code, message=words)
        advice = _ADVICE.get(code, "")
        message = f"{words}: {advice}" if advice else words
        return Delivery(status="refused", code=code, message=message)

    def is_stale(self, refused: Delivery) -> bool:
        """Whether a refusal may be for the time stamp: the code means either."""
        return refused.code == STALE_OR_BAD_SIGN


class Lark(Feishu):
    """A Lark robot: Feishu's protocol, under another name and host."""

    kind: str = "lark"
    label: str = "Lark"
