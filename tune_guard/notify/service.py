"""What every service that takes messages has in common."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, Protocol
from urllib.parse import quote, quote_plus

SHORTEST_SECRET = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """What became of one message.

    Args:
        status: ``sent``: the service itself said so. ``retry``: it may pass later.
            ``refused``: it will not pass until somebody changes something.

        code: The service's own code, or the HTTP status, or empty.

        message: What happened and what to do, free of secrets.

        wait_s: Seconds that the service asks to wait before the next message.
    """

    status: Literal["sent", "retry", "refused"]
    code: str = ""
    message: str = ""
    wait_s: float | None = None


SENT = Delivery(status="sent")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """How many messages a service takes.

    Args:
        count: Messages within ``per_s``.

        per_s: Seconds that the count is taken over.

        silence_s: Seconds that it refuses all messages when there were more.
    """

    count: int
    per_s: float = 60.0
    silence_s: float = 60.0


class Service(Protocol):
    """A place that takes messages: one robot, one mailbox, one channel."""

    name: str
    """What to call it: holds no secret."""

    mark: str
    """Tells it from others across processes: holds no secret."""

    keyword: str
    """A word that the service asks for in each message, or empty."""

    limit: Limit

    most_bytes: int
    """Largest request, as :meth:`size` measures it."""

    def size(self, title: str, body: str) -> int:
        """Return the bytes of a request that carries these texts."""

    def send(self, title: str, body: str, within_s: float) -> Delivery:
        """Send one message. Never raises."""


def mark_of(kind: str, identity: str) -> str:
    """Return a short mark of a robot, from which its token cannot be read."""
    digest = hashlib.sha256(f"{kind}\n{identity}".encode(errors="surrogateescape"))
    return f"{kind}-{digest.hexdigest()[:10]}"


class Redactor:
    """Takes secrets out of texts that others wrote, in each form they may have.

    Args:
        secrets: What must appear in no log, record or file.

    Example:
        >>> Redactor(["to/ken"]).clean("no to/ken, no to%2Fken")
        'no ***, no ***'
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        forms: set[str] = set()
        for secret in secrets:
            forms |= {secret, quote(secret, safe=""), quote(secret), quote_plus(secret)}
        long = sorted((f for f in forms if len(f) >= SHORTEST_SECRET), key=len)
        pattern = "|".join(re.escape(form) for form in reversed(long))
        self._pattern = re.compile(pattern, re.IGNORECASE) if pattern else None

    def clean(self, text: str) -> str:
        """Return the text with every secret as ``***``."""
        return self._pattern.sub("***", text) if self._pattern else text
