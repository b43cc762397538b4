"""Every other service, over a hundred of them, through the library apprise."""

from __future__ import annotations

import logging
import re
import threading
from typing import Any

from tune_guard.exceptions import ConfigError
from tune_guard.notify.service import SENT, Delivery, Limit, Redactor, mark_of

LEAST_BYTES = 120
LARGEST_BYTES = 32_000
LONGEST_REASON = 200

TALKATIVE = ("apprise", "urllib3.connectionpool")
"""Loggers that write URLs down, whole or in part."""

_capturing = threading.Lock()


class _Cleaner(logging.Filter):
    """Takes the secrets of our URLs out of what others log of them."""

    def __init__(self) -> None:
        super().__init__()
        self._parts: set[str] = set()
        self._redactor = Redactor([])

    def watch(self, parts: list[str]) -> None:
        """Clean these from now on."""
        self._parts |= set(parts)
        self._redactor = Redactor(self._parts)
        for name in TALKATIVE:
            logging.getLogger(name).addFilter(self)

    def filter(self, record: logging.LogRecord) -> bool:
        """Let a record pass, cleaned."""
        record.msg = self._redactor.clean(record.getMessage())
        record.args = None
        return True


_cleaner = _Cleaner()


class AppriseService:
    """One URL of apprise: Slack, mail, Teams, PagerDuty, and so on.

    Apprise itself takes any answer with a good HTTP status for success: whether
    a service refused inside such an answer is not known here.

    Args:
        url: URL as apprise documents it for the service.

    Raises:
        ConfigError: If apprise is not installed, or does not know the URL.
    """

    limit = Limit(count=20)
    keyword = ""

    def __init__(self, url: str) -> None:
        apprise = _apprise()
        parts = _parts_of(url)
        _cleaner.watch(parts)
        # One after the other and here: this is a thread of its own already.
        asset = apprise.AppriseAsset(async_mode=False, secure_logging=True)
        self._plugin = apprise.Apprise.instantiate(url, asset=asset)
        if self._plugin is None:
            msg = "apprise does not know this URL. See its pages on the service."
            raise ConfigError(msg)
        self._apprise, self._asset = apprise, asset
        kind = url.partition("://")[0].lower()
        self._redactor = Redactor(parts)
        self.mark = mark_of(kind, url)
        self.name = f"{kind} {self.mark.rpartition('-')[2][:4]}"
        longest = int(self._plugin.body_maxlen) - 20
        self.most_bytes = min(max(longest, LEAST_BYTES), LARGEST_BYTES)

    def size(self, title: str, body: str) -> int:
        """Return the bytes of the two texts; apprise's own limits are in letters."""
        return len(f"{title}\n{body}".encode(errors="replace"))

    def send(self, title: str, body: str, within_s: float) -> Delivery:
        """Send one message. Never raises.

        Args:
            title: First line.

            body: The text.

            within_s: Not used: apprise has limits of its own, set in the URL.
        """
        del within_s
        sender = self._apprise.Apprise(asset=self._asset)
        sender.add(self._plugin)
        try:
            said, ok = self._notify(sender, title, body)
        except Exception as error:  # noqa: BLE001 - a plugin may raise anything
            said, ok = type(error).__name__, False
        if ok:
            return SENT
        reason = self._redactor.clean(" ".join(said.split()))[-LONGEST_REASON:]
        return Delivery(status="retry", message=reason or "apprise gave no reason")

    def _notify(self, sender: Any, title: str, body: str) -> tuple[str, bool]:
        level = self._apprise.logging.WARNING
        with _capturing, self._apprise.LogCapture(level=level) as log:
            kind = self._apprise.NotifyFormat.TEXT
            ok = bool(sender.notify(title=title, body=body, body_format=kind))
            return str(log.getvalue()), ok


def _apprise() -> Any:
    try:
        import apprise
    except ImportError as error:
        msg = (
            "this service needs apprise. Install it with:"
            " pip install 'tune-guard[notify]'"
        )
        raise ConfigError(msg) from error
    return apprise


def _parts_of(url: str) -> list[str]:
    """Return every part of a URL that may be secret: all but its scheme."""
    rest = url.partition("://")[2]
    return [rest, *re.split(r"[/:@?&=#]+", rest)]
