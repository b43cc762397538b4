"""The listener for Prometheus, and the three ways in which metrics leave.

``TUNE_GUARD_PROMETHEUS`` holds one or several, between blanks:

``9464`` or ``127.0.0.1:9464``
    An endpoint to scrape, ``/metrics``; on the loopback address unless another is
    given.
``/var/lib/node_exporter/tune_guard.prom``
    A file for the node exporter's textfile collector; its name ends in ``.prom``.
``push+http://gateway:9091``
    A push gateway, with ``user:password@`` before the host where it asks for that.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import unquote, urlsplit

from tune_guard.events import Event
from tune_guard.exceptions import ConfigError
from tune_guard.export.tally import Tally
from tune_guard.notices import Notices

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

PERIOD_S = 15.0
"""How often a file is written or a gateway pushed to, when something has changed."""

PUSH_WITHIN_S = 5.0

LOOPBACK = "127.0.0.1"

FORMS = "Write a port, the path of a .prom file, or push+http://HOST:PORT."


class Outlet(Protocol):
    """One way in which metrics leave."""

    def close(self, within_s: float) -> None:
        """Bring out the last state and end."""


class Prometheus:
    """Counts events and lets the counts out.

    Args:
        setting: As ``TUNE_GUARD_PROMETHEUS`` is written.

    Raises:
        ConfigError: If an outlet cannot be meant, or cannot be opened.
    """

    def __init__(self, setting: str) -> None:
        try:
            from tune_guard.export.metrics import registry_of
        except ImportError as error:
            msg = (
                "Prometheus needs prometheus-client. Install it with:"
                " pip install 'tune-guard[prometheus]'"
            )
            raise ConfigError(msg) from error
        words = setting.split()
        makers = [_maker(place, word) for place, word in enumerate(words, 1)]
        self._tally = Tally()
        self._notices = Notices()
        registry = registry_of(self._tally)
        self._outlets: list[Outlet] = []
        for make in makers:
            try:
                self._outlets.append(make(registry, self._notices))
            except OSError as error:
                self._notices.once(f"prometheus:{error}", _advice(error))

    def handle(self, event: Event) -> None:
        """Count one event."""
        self._tally.handle(event)

    def close(self, within_s: float) -> None:
        """Let the last state out."""
        end = time.monotonic() + within_s
        for outlet in self._outlets:
            outlet.close(max(0.0, end - time.monotonic()))


def from_environment() -> Prometheus:
    """Return the listener that the environment asks for.

    Raises:
        ConfigError: If the setting cannot be meant.
    """
    return Prometheus(os.environ.get("TUNE_GUARD_PROMETHEUS", ""))


def _advice(error: OSError) -> str:
    return (
        f"Metrics are not served ({error}). Where several processes run on one"
        " machine, give each a port of its own, or let them push to a gateway."
    )


Maker = Callable[["CollectorRegistry", Notices], Outlet]


def _maker(place: int, word: str) -> Maker:
    """Return what opens an outlet; raise without showing what may hold a password."""
    if word.startswith("push+"):
        parts = urlsplit(word.removeprefix("push+"))
        if parts.scheme not in ("http", "https") or not parts.hostname:
            msg = f"TUNE_GUARD_PROMETHEUS: entry {place} is no gateway. {FORMS}"
            raise ConfigError(msg)
        return lambda registry, notices: _Periodic(
            _pusher(registry, word.removeprefix("push+")), "A push gateway", notices
        )
    if word.endswith(".prom"):
        path = Path(word).expanduser()
        return lambda registry, notices: _Periodic(
            _writer(registry, path), f"The file {path}", notices
        )
    host, _, port = word.rpartition(":")
    if not port.isdigit() or int(port) > 65535:  # noqa: PLR2004 - the last port
        msg = f"TUNE_GUARD_PROMETHEUS: entry {place} has no meaning. {FORMS}"
        raise ConfigError(msg)
    address = host.strip("[]") or LOOPBACK
    return lambda registry, _: _Endpoint(registry, address, int(port))


class _Endpoint:
    """Serves ``/metrics`` from a thread."""

    def __init__(self, registry: CollectorRegistry, host: str, port: int) -> None:
        from prometheus_client import start_http_server

        self._server, self._thread = start_http_server(port, host, registry)

    def close(self, within_s: float) -> None:
        """Stop serving."""
        threading.Thread(target=self._server.shutdown, daemon=True).start()
        self._thread.join(within_s)
        self._server.server_close()


class _Periodic:
    """Brings the metrics out now and then, in a thread of its own."""

    def __init__(self, bring: Callable[[], None], name: str, notices: Notices) -> None:
        self._bring, self._name, self._notices = bring, name, notices
        self._closing = threading.Event()
        self._thread = threading.Thread(
            target=self._run, name="tune_guard-metrics", daemon=True
        )
        self._thread.start()

    def _run(self) -> None:
        while not self._closing.wait(PERIOD_S):
            self._once()
        self._once()

    def _once(self) -> None:
        try:
            self._bring()
        except Exception as error:  # noqa: BLE001 - tried again with the next period
            # Without the error's own text, in which a URL and its password may be.
            self._notices.once(
                f"prometheus:{self._name}",
                f"{self._name} did not take the metrics ({type(error).__name__}"
                f"{_status(error)}). It is tried again every {PERIOD_S:.0f} s.",
            )

    def close(self, within_s: float) -> None:
        """Bring out the last state."""
        self._closing.set()
        self._thread.join(within_s)


def _status(error: Exception) -> str:
    code = getattr(error, "code", None)
    return f" {code}" if isinstance(code, int) else ""


def _writer(registry: CollectorRegistry, path: Path) -> Callable[[], None]:
    from prometheus_client import write_to_textfile

    def write() -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_to_textfile(str(path), registry)

    return write


def _pusher(registry: CollectorRegistry, to: str) -> Callable[[], None]:
    from prometheus_client import exposition, push_to_gateway

    parts = urlsplit(to)
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    host = parts.netloc.rpartition("@")[2]
    gateway = parts._replace(netloc=host).geturl()

    def login(
        url: str, method: str, timeout: Any, headers: Any, data: bytes
    ) -> Callable[[], None]:
        return exposition.basic_auth_handler(
            url, method, timeout, headers, data, user, password
        )

    handler = login if user else exposition.default_handler
    instance = {"instance": f"{socket.gethostname()}:{os.getpid()}"}

    def push() -> None:
        push_to_gateway(
            gateway, "tune_guard", registry, instance, PUSH_WITHIN_S, handler
        )

    return push
