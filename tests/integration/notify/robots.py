"""DingTalk and Feishu on loopback: they verify and refuse as the services do.

Written from the vendors' pages, not from the package: a signature is computed
here anew, each request is parsed as a server parses it, and an answer that
refuses is HTTP 200.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs, quote, urlsplit

TOKEN = "f4cb3e1d9a7c4d1f8b3c5a6e7d8f9a0b"
SECRET = "SEC5f2d0c7a91b34e68a0d2c4b6e8f00112"

Fault = Callable[["Handler"], None]


@dataclass(frozen=True)
class Message:
    """One message that was taken."""

    kind: str
    text: str
    at: float
    size: int


@dataclass
class Robots:
    """A server that stands for both services.

    Args:
        secret: Key of the signature; empty for a robot that asks for none.

        keyword: A word that each message must hold.

        allowed: Whether the sender's address is on the list.

        per_minute: Messages a minute, and silence for ten after more.

        clock: The service's own clock.

        token: The one token that it knows.
    """

    secret: str = SECRET
    keyword: str = ""
    allowed: bool = True
    per_minute: int = 20
    clock: Callable[[], float] = time.time
    token: str = TOKEN
    messages: list[Message] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    requests: int = 0
    over_limit: int = 0

    def __post_init__(self) -> None:
        """Listen on a free port."""
        self._arrivals: list[float] = []
        self._silent_until = 0.0
        self.changed = threading.Condition()
        self.released = threading.Event()
        handler = type("BoundHandler", (Handler,), {"robots": self})
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        serve = self.server.serve_forever
        threading.Thread(target=serve, args=(0.01,), daemon=True).start()

    def __enter__(self) -> Self:
        """Return the server."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop it, and let go of connections that it holds."""
        self.released.set()
        self.server.shutdown()
        self.server.server_close()

    def url(self, kind: str, **options: str) -> str:
        """Return the URL of a robot for ``TUNE_GUARD_ALERTS``."""
        options = {"secret": self.secret, **options}
        fields = [f"{name}={quote(value, safe='')}" for name, value in options.items()]
        if kind == "dingtalk":
            fields.insert(0, f"access_token={self.token}")
            path = "/robot/send"
        else:
            path = f"/open-apis/bot/v2/hook/{self.token}"
        return f"{kind}+http://127.0.0.1:{self.port}{path}?{'&'.join(fields)}"

    def wait_for(self, done: Callable[[], bool], within_s: float = 60.0) -> bool:
        """Wait until something holds, looked at after each request."""
        with self.changed:
            return self.changed.wait_for(done, within_s)

    def text(self) -> str:
        """Return everything that was taken."""
        return "\n".join(message.text for message in self.messages)

    def is_too_fast(self) -> bool:
        """Count an arrival; whether it is one too many."""
        now = self.clock()
        if now < self._silent_until:
            self.over_limit += 1
            return True
        self._arrivals = [t for t in self._arrivals if now - t < 60.0]
        self._arrivals.append(now)
        if len(self._arrivals) > self.per_minute:
            self.over_limit += 1
            self._silent_until = now + 600.0
            return True
        return False


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    robots: Robots
    protocol_version = "HTTP/1.0"

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_POST(self) -> None:
        """Take a message."""
        robots = self.robots
        with robots.changed:
            robots.requests += 1
            robots.changed.notify_all()
            fault = robots.faults.pop(0) if robots.faults else None
        if fault is not None:
            fault(self)
        else:
            raw = self.rfile.read(int(self.headers["Content-Length"]))
            with robots.changed:
                answer = self._answer(raw)
                code = str(answer.get("errcode", answer.get("code")))
                if code != "0":
                    robots.refusals.append(code)
            self.reply(200, json.dumps(answer).encode())
        with robots.changed:
            robots.changed.notify_all()

    def reply(self, status: int, body: bytes, **headers: str) -> None:
        """Send an answer; a peer that has gone is nobody's business."""
        try:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            for name, value in headers.items():
                self.send_header(name.replace("_", "-"), value)
            self.end_headers()
            self.wfile.write(body)
        except OSError:
            self.close_connection = True

    def date_time_string(self, timestamp: float | None = None) -> str:
        """Say the service's own time."""
        return super().date_time_string(timestamp or int(self.robots.clock()))

    def _answer(self, raw: bytes) -> dict[str, Any]:
        parts = urlsplit(self.path)
        try:
            body = json.loads(raw.decode("utf-8"))
        except ValueError:
            body = {}
        if parts.path == "/robot/send":
            return self._dingtalk(parse_qs(parts.query), body, len(raw))
        return self._feishu(parts.path.rpartition("/")[2], body, len(raw))

    def _dingtalk(
        self, query: dict[str, list[str]], body: dict[str, Any], size: int
    ) -> dict[str, Any]:
        robots = self.robots
        if query.get("access_token") != [robots.token]:
            return {"errcode": 300005, "errmsg": "token is not exist"}
        if not robots.allowed:
            said = "ip 127.0.0.1 not in whitelist"
            return {"errcode": 310000, "errmsg": said}
        if robots.secret:
            stamp = query.get("timestamp", [""])[0]
            if not stamp.isdigit() or abs(robots.clock() - int(stamp) / 1e3) > 3600:
                return {"errcode": 310000, "errmsg": "invalid timestamp"}
            key = robots.secret.encode()
            due = hmac.new(key, f"{stamp}\n{robots.secret}".encode(), hashlib.sha256)
            if query.get("sign") != [base64.b64encode(due.digest()).decode()]:
                return {"errcode": 310000, "errmsg": "sign not match"}
        text = body.get("text", {}).get("content", "")
        if robots.keyword not in text:
            return {"errcode": 310000, "errmsg": "keywords not in content"}
        if size >= 20_000:
            return {"errcode": 460101, "errmsg": "message too long, exceed 20000 bytes"}
        if robots.is_too_fast():
            said = "send too fast, exceed 20 times per minute"
            return {"errcode": 130101, "errmsg": said}
        robots.messages.append(Message("dingtalk", text, robots.clock(), size))
        return {"errcode": 0, "errmsg": "ok"}

    def _feishu(self, token: str, body: dict[str, Any], size: int) -> dict[str, Any]:
        robots = self.robots
        if token != robots.token:
            said = "param invalid: incoming webhook access token invalid"
            return {"code": 19001, "msg": said, "data": {}}
        if not robots.allowed:
            return {"code": 19022, "msg": "Ip Not Allowed", "data": {}}
        if robots.secret:
            stamp = str(body.get("timestamp", ""))
            key = f"{stamp}\n{robots.secret}".encode()
            due = base64.b64encode(hmac.new(key, b"", hashlib.sha256).digest()).decode()
            stale = not stamp.isdigit() or abs(robots.clock() - int(stamp)) > 3600
            if stale or body.get("sign") != due:
                said = "sign match fail or timestamp is not within one hour"
                said += " from current time"
                return {"code": 19021, "msg": said, "data": {}}
        if size > 20_480 or body.get("msg_type") != "post":
            return {"code": 9499, "msg": "Bad Request", "data": {}}
        post = body["content"]["post"]["zh_cn"]
        elements = [element for line in post["content"] for element in line]
        if any(element["tag"] != "text" for element in elements):
            return {"code": 9499, "msg": "Bad Request", "data": {}}
        text = "\n".join([post["title"], *(element["text"] for element in elements)])
        if robots.keyword not in text:
            return {"code": 19024, "msg": "Key Words Not Found", "data": {}}
        if robots.is_too_fast():
            return {"code": 11232, "msg": "frequency limited psm", "data": {}}
        robots.messages.append(Message("feishu", text, robots.clock(), size))
        return {"code": 0, "msg": "success", "data": {}, "StatusCode": 0}


def never_answers(handler: Handler) -> None:
    """Hold the connection and say nothing."""
    handler.robots.released.wait()


def answers_by_drops(handler: Handler) -> None:
    """Send one byte of a header after the other, for ever."""
    robots = handler.robots
    try:
        handler.wfile.write(b"HTTP/1.0 200 OK\r\nX-Slow: ")
        while not robots.released.wait(0.05):
            handler.wfile.write(b".")
    except OSError:
        handler.close_connection = True


def closes(handler: Handler) -> None:
    """Close the connection without an answer."""
    handler.close_connection = True


def sends_ten_megabytes(handler: Handler) -> None:
    """Answer with far more than any service does."""
    handler.reply(200, b"x" * 10_000_000)


def answers(status: int, body: bytes = b"", **headers: str) -> Fault:
    """Answer with a status, a body and headers."""
    return lambda handler: handler.reply(status, body, **headers)
