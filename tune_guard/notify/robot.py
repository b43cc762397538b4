"""What the signed chat robots share: one message, one request, one honest answer."""

from __future__ import annotations

import abc
import base64
import hashlib
import hmac
import json
import time
from collections.abc import Callable, Mapping
from typing import Any

from tune_guard.notify.service import Delivery, Limit, Redactor, mark_of
from tune_guard.notify.wire import Answer, WireError, post

CLOCK_IS_OFF_S = 3000.0
"""Both services refuse a time stamp that is an hour off. An answer's ``Date`` is
rounded to the second and took its way, so that a little less counts as off."""

LONGEST_QUOTE = 200


class Robot(abc.ABC):
    """A robot in a chat group that takes signed messages over HTTP.

    The signature is made anew for each message, for it holds only an hour. If
    this machine's clock is off, the service's own clock is taken from the answer
    to the first message that it refuses for that.

    Args:
        url: Where messages go, with the robot's token.

        token: The robot's token.

        secret: Key of the signature, or empty when the robot asks for none.

        keyword: A word that the robot asks for in each message, or empty.

        clock: Seconds since 1970.
    """

    kind: str
    label: str
    limit: Limit
    most_bytes: int

    def __init__(
        self,
        url: str,
        token: str,
        secret: str = "",
        keyword: str = "",
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._url, self._secret = url, secret
        self._clock = clock
        self._clock_error_s = 0.0
        self._redactor = Redactor([token, secret])
        self.keyword = keyword
        self.mark = mark_of(self.kind, token)
        self.name = f"{self.label} robot {self.mark.rpartition('-')[2][:4]}"

    @abc.abstractmethod
    def payload(self, title: str, body: str) -> dict[str, Any]:
        """Return the message in the service's own form, unsigned."""

    @abc.abstractmethod
    def signed(self, payload: dict[str, Any], now: float) -> tuple[str, dict[str, Any]]:
        """Return URL and payload with the signature for the time ``now``."""

    @abc.abstractmethod
    def read(self, reply: Mapping[str, Any]) -> Delivery | None:
        """Return what the service's own reply says; None when it says nothing."""

    @abc.abstractmethod
    def is_stale(self, refused: Delivery) -> bool:
        """Whether a refusal may be for the time stamp."""

    def size(self, title: str, body: str) -> int:
        """Return the bytes of a request that carries these texts."""
        _, payload = self.signed(self.payload(title, body), self._clock())
        return len(_encoded(payload))

    def send(self, title: str, body: str, within_s: float) -> Delivery:
        """Send one message. Never raises."""
        now = self._clock() + self._clock_error_s
        url, payload = self.signed(self.payload(title, body), now)
        try:
            answer = post(url, _encoded(payload), within_s=within_s)
        except WireError as error:
            return Delivery(status="retry", message=self._redactor.clean(str(error)))
        delivery = self._judged(answer)
        if delivery.status == "refused" and self.is_stale(delivery):
            return self._corrected(delivery, answer)
        return delivery

    def _judged(self, answer: Answer) -> Delivery:
        """Return what became of the message: the service's own word goes first."""
        try:
            reply = json.loads(answer.body)
        except (ValueError, RecursionError):
            reply = None
        found = self.read(reply) if isinstance(reply, dict) else None
        if found is None:
            return _by_status(answer)
        return Delivery(
            status=found.status,
            code=found.code,
            message=self._redactor.clean(found.message),
            wait_s=answer.retry_after_s if found.wait_s is None else found.wait_s,
        )

    def _corrected(self, refused: Delivery, answer: Answer) -> Delivery:
        """Take the service's clock over when this machine's is the one that is off."""
        theirs = answer.server_time
        if theirs is None:
            return refused
        error_s = theirs - (self._clock() + self._clock_error_s)
        if abs(error_s) < CLOCK_IS_OFF_S:
            return refused
        self._clock_error_s += error_s
        return Delivery(
            status="retry",
            code=refused.code,
            message=(
                f"{self.label} refused the time stamp: this machine's clock is"
                f" {_hours(error_s)} than {self.label}'s. Set it right; until then"
                f" the time of {self.label} is used."
            ),
            wait_s=0.0,
        )


def sign(key: str, message: str) -> str:
    """Return the HMAC-SHA256 of a message in base64."""
    digest = hmac.new(key.encode(), message.encode(), hashlib.sha256).digest()
    return base64.b64encode(digest).decode()


def quoted(message: object) -> str:
    """Return a service's own words, cut to a length for a log."""
    text = " ".join(str(message).split())
    return text[:LONGEST_QUOTE]


def _encoded(payload: Mapping[str, Any]) -> bytes:
    return json.dumps(payload, ensure_ascii=False).encode(errors="replace")


def _by_status(answer: Answer) -> Delivery:
    """Judge an answer in which the service itself said nothing."""
    status, code = answer.status, str(answer.status)
    if status == 429 or status >= 500:  # noqa: PLR2004 - HTTP's own numbers
        message = f"the server answered HTTP {status}"
        wait_s = answer.retry_after_s
        return Delivery(status="retry", code=code, message=message, wait_s=wait_s)
    if 200 <= status < 300:  # noqa: PLR2004 - HTTP's own numbers
        message = (
            f"the server answered HTTP {status} without the service's code: something"
            " else answers in its place, such as a proxy's login page"
        )
        return Delivery(status="retry", code=code, message=message)
    message = f"the server answered HTTP {status}: check the URL"
    return Delivery(status="refused", code=code, message=message)


def _hours(error_s: float) -> str:
    return f"{abs(error_s) / 3600:.1f} h {'slower' if error_s > 0 else 'faster'}"
