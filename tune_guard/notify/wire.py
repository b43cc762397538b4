"""One HTTP POST with an end: bounded in time and in what it reads."""

from __future__ import annotations

import http.client
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

MOST_BYTES = 64 * 1024
"""An answer is read this far. Both services answer in under 1 kB."""

USER_AGENT = "tune-guard"


class WireError(Exception):
    """No answer came: the message says why, and holds no part of the URL's secrets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a server answered.

    Args:
        status: HTTP status. Redirects are not followed.

        body: Up to ``MOST_BYTES`` of it.

        received_at: Own clock when it came, seconds since 1970.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes
    received_at: float

    @property
    def server_time(self) -> float | None:
        """The server's clock as its ``Date`` says, or None."""
        try:
            return parsedate_to_datetime(self.headers["date"]).timestamp()
        except (KeyError, TypeError, ValueError):
            return None

    @property
    def retry_after_s(self) -> float | None:
        """Seconds that the server asks to wait, or None."""
        try:
            return max(0.0, float(self.headers["retry-after"]))
        except (KeyError, ValueError):
            return None


def post(url: str, body: bytes, *, within_s: float) -> Answer:
    """Send JSON and return the answer, whatever its status.

    Proxies of the environment are used. The time holds for all of it, however
    slowly a server answers; only a name server can take longer.

    Args:
        url: Where to.

        body: JSON in UTF-8.

        within_s: Seconds until the connection is given up.

    Raises:
        WireError: If no answer came in time.
    """
    connections: list[http.client.HTTPConnection] = []
    timer = threading.Timer(within_s, _hang_up, [connections])
    timer.daemon = True
    timer.start()
    try:
        return _post(url, body, connections, within_s)
    except (OSError, http.client.HTTPException, ValueError) as error:
        late = not timer.is_alive()
        raise WireError(_why(url, error, within_s if late else None)) from None
    finally:
        timer.cancel()


def _post(
    url: str,
    body: bytes,
    connections: list[http.client.HTTPConnection],
    within_s: float,
) -> Answer:
    opener = urllib.request.OpenerDirector()
    opener.add_handler(urllib.request.ProxyHandler())
    opener.add_handler(_Http(connections))
    opener.add_handler(_Https(connections))
    headers = {"Content-Type": "application/json; charset=utf-8"}
    headers["User-Agent"] = USER_AGENT
    request = urllib.request.Request(url, body, headers, method="POST")  # noqa: S310 - the scheme was checked where the URL was read
    with opener.open(request, timeout=within_s) as response:
        read = response.read(MOST_BYTES)
        names = {name.lower(): value for name, value in response.headers.items()}
        return Answer(
            status=response.status, headers=names, body=read, received_at=time.time()
        )


class _Http(urllib.request.HTTPHandler):
    """Opens connections that can be hung up from another thread."""

    def __init__(self, connections: list[http.client.HTTPConnection]) -> None:
        super().__init__()
        self._connections = connections

    def http_open(self, request: urllib.request.Request) -> http.client.HTTPResponse:
        def connect(host: str, **more: Any) -> http.client.HTTPConnection:
            connection = http.client.HTTPConnection(host, **more)
            self._connections.append(connection)
            return connection

        return self.do_open(connect, request)


class _Https(urllib.request.HTTPSHandler):
    """The same over TLS."""

    def __init__(self, connections: list[http.client.HTTPConnection]) -> None:
        super().__init__()
        self._connections = connections

    def https_open(self, request: urllib.request.Request) -> http.client.HTTPResponse:
        def connect(host: str, **more: Any) -> http.client.HTTPConnection:
            connection = http.client.HTTPSConnection(host, **more)
            self._connections.append(connection)
            return connection

        return self.do_open(connect, request)


def _hang_up(connections: list[http.client.HTTPConnection]) -> None:
    for connection in connections:
        sock: socket.socket | None = connection.sock
        if sock is not None:
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue


def _why(url: str, error: Exception, late_after_s: float | None) -> str:
    """Say what happened, without the path and query, which hold the secrets."""
    parts = urlsplit(url)
    place = parts.hostname or "the server"
    proxy = urllib.request.getproxies().get(parts.scheme)
    if proxy and not urllib.request.proxy_bypass(place):
        place += f" (through the proxy {urlsplit(proxy).hostname})"
    if late_after_s is not None or isinstance(error, TimeoutError):
        return f"{place} gave no whole answer within {late_after_s or 0:.0f} s"
    cause: Any = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(cause, TimeoutError):
        return f"{place} did not answer in time"
    if isinstance(cause, socket.gaierror):
        return f"the name {place} could not be resolved"
    return f"{place} could not be reached: {type(cause).__name__} {_brief(cause)}"


def _brief(cause: Any) -> str:
    text = getattr(cause, "strerror", None)
    return str(text) if text else ""
