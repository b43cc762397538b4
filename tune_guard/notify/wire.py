"""One HTTP POST with an end: bounded in time and in what it reads."""

from __future__ import annotations

import contextlib
import encodings.idna  # noqa: F401 - names are looked up at exit, when imports fail
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
    deadline = _Deadline()
    timer = threading.Timer(within_s, deadline.hang_up)
    timer.daemon = True
    timer.start()
    try:
        answer = _post(url, body, deadline, within_s)
    except TimeoutError:
        raise WireError(_late(url, within_s)) from None
    except (OSError, http.client.HTTPException, LookupError, ValueError) as error:
        why = _late(url, within_s) if deadline.passed else _why(url, error)
        raise WireError(why) from None
    finally:
        timer.cancel()
    if deadline.passed:
        # A connection that was hung up looks like an answer that ended.
        raise WireError(_late(url, within_s))
    return answer


class _Deadline:
    """Hangs up from another thread: a server that drips never times out a socket."""

    def __init__(self) -> None:
        self.connections: list[http.client.HTTPConnection] = []
        self.passed = False

    def hang_up(self) -> None:
        """End every connection that was opened."""
        self.passed = True
        for connection in self.connections:
            sock: socket.socket | None = connection.sock
            if sock is not None:
                with contextlib.suppress(OSError):
                    sock.shutdown(socket.SHUT_RDWR)


def _post(url: str, body: bytes, deadline: _Deadline, within_s: float) -> Answer:
    opener = urllib.request.OpenerDirector()
    opener.add_handler(urllib.request.ProxyHandler())
    opener.add_handler(_Http(deadline))
    opener.add_handler(_Https(deadline))
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

    def __init__(self, deadline: _Deadline) -> None:
        super().__init__()
        self._deadline = deadline

    def http_open(self, request: urllib.request.Request) -> http.client.HTTPResponse:
        def connect(host: str, **more: Any) -> http.client.HTTPConnection:
            connection = http.client.HTTPConnection(host, **more)
            self._deadline.connections.append(connection)
            return connection

        return self.do_open(connect, request)


class _Https(urllib.request.HTTPSHandler):
    """The same over TLS."""

    def __init__(self, deadline: _Deadline) -> None:
        super().__init__()
        self._deadline = deadline

    def https_open(self, request: urllib.request.Request) -> http.client.HTTPResponse:
        def connect(host: str, **more: Any) -> http.client.HTTPConnection:
            connection = http.client.HTTPSConnection(host, **more)
            self._deadline.connections.append(connection)
            return connection

        return self.do_open(connect, request)


def _place(url: str) -> str:
    """Name the server without path and query, which hold the secrets."""
    parts = urlsplit(url)
    place = parts.hostname or "the server"
    proxy = urllib.request.getproxies().get(parts.scheme)
    if proxy and not urllib.request.proxy_bypass(place):
        place += f" (through the proxy {urlsplit(proxy).hostname})"
    return place


def _late(url: str, within_s: float) -> str:
    return f"{_place(url)} gave no whole answer within {within_s:.0f} s"


def _why(url: str, error: Exception) -> str:
    cause: Any = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(cause, TimeoutError):
        return f"{_place(url)} could not be connected to in time"
    if isinstance(cause, socket.gaierror):
        return f"the name {_place(url)} could not be resolved"
    said = getattr(cause, "strerror", None) or ""
    kind = type(cause).__name__
    return f"{_place(url)} could not be reached: {kind} {said}".rstrip()
