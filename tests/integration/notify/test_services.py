"""One message, one request: what each answer of a real server is taken for."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.request import ProxyHandler, Request, build_opener

import pytest

from tests.integration.notify.robots import (
    TOKEN,
    Robots,
    answers,
    answers_by_drops,
    closes,
    never_answers,
    sends_ten_megabytes,
)
from tune_guard.notify.dingtalk import DingTalk
from tune_guard.notify.feishu import Feishu, Lark
from tune_guard.notify.service import Delivery, Service
from tune_guard.notify.targets import read_targets
from tune_guard.notify.wire import MOST_BYTES, post

KINDS = ("dingtalk", "feishu", "lark")

pytestmark = pytest.mark.parametrize("kind", KINDS)


def send(robots: Robots, kind: str, within_s: float = 20.0, **options: str) -> Delivery:
    """Send one message to a robot of the server."""
    (service,) = read_targets(robots.url(kind, **options))
    return service.send("title", "body", within_s)


def robot(robots: Robots, kind: str, clock: Callable[[], float]) -> Service:
    """Return a robot of the server whose machine has a clock of its own."""
    (service,) = read_targets(robots.url(kind))
    address = service._url  # type: ignore[attr-defined]
    classes: dict[str, Any] = {"dingtalk": DingTalk, "feishu": Feishu, "lark": Lark}
    return classes[kind](address, TOKEN, robots.secret, clock=clock)


def test_a_signed_message_is_taken(robots: Robots, kind: str) -> None:
    """The service computes the same signature, and its own code says so."""
    assert send(robots, kind).status == "sent"
    assert robots.messages[0].text == "title\nbody"


def test_a_robot_without_a_secret_takes_an_unsigned_message(kind: str) -> None:
    """Nothing is signed where no secret was given."""
    with Robots(secret="") as robots:
        assert send(robots, kind).status == "sent"


@pytest.mark.parametrize(
    "secret",
    ["SEC+a/b=c&d%e?f#g", "sp ace\ttab", "密钥🔑", "%2B%2520", '"<&>\\', "a" * 4096],
)
def test_a_secret_may_hold_any_character(kind: str, secret: str) -> None:
    """Each is quoted once in the URL of the setting, and signs as it is."""
    with Robots(secret=secret) as robots:
        assert send(robots, kind).status == "sent"


def test_a_wrong_secret_is_named(robots: Robots, kind: str) -> None:
    """A refusal inside HTTP 200 is a refusal, and says which of many it is."""
    delivery = send(robots, kind, secret="SECwrong")
    assert delivery.status == "refused"
    assert "the signature does not match" in delivery.message
    assert delivery.code in ("310000", "19021")
    assert robots.messages == []


def test_a_missing_keyword_is_named(kind: str) -> None:
    """The advice says where to write the word."""
    with Robots(keyword="sweep-alert") as robots:
        delivery = send(robots, kind)
    assert delivery.status == "refused"
    assert "add keyword=..." in delivery.message


def test_a_refused_address_is_named(kind: str) -> None:
    """A list of allowed addresses is told apart from keyword and signature."""
    with Robots(allowed=False) as robots:
        delivery = send(robots, kind)
    assert delivery.status == "refused"
    assert "list of allowed addresses" in delivery.message


def test_an_unknown_token_is_named(robots: Robots, kind: str) -> None:
    """The token itself is not."""
    url = robots.url(kind).replace(TOKEN, "0123456789abcdef")
    (service,) = read_targets(url)
    delivery = service.send("title", "body", 20.0)
    assert delivery.status == "refused"
    assert "the token is unknown" in delivery.message
    assert "0123456789abcdef" not in delivery.message


def test_too_many_messages_wait_as_the_service_says(kind: str) -> None:
    """A robot that is silent for ten minutes is not asked before."""
    with Robots(per_minute=0) as robots:
        delivery = send(robots, kind)
    assert delivery.status == "retry"
    assert delivery.wait_s == (600.0 if kind == "dingtalk" else None)


def test_a_signature_is_made_for_each_message(robots: Robots, kind: str) -> None:
    """Two hours later the first signature is stale, and a new one is not."""
    now = [time.time()]
    robots.clock = lambda: now[0]
    service = robot(robots, kind, clock=lambda: now[0])
    assert service.send("title", "first", 20.0).status == "sent"
    now[0] += 7200.0
    assert service.send("title", "second", 20.0).status == "sent"


@pytest.mark.parametrize("off_s", [7200.0, -7200.0])
def test_a_clock_off_by_two_hours_is_named_and_made_up_for(
    robots: Robots, kind: str, off_s: float
) -> None:
    """The first message is refused; the next has the service's own time."""
    service = robot(robots, kind, clock=lambda: time.time() + off_s)
    first = service.send("title", "body", 20.0)
    assert first.status == "retry"
    assert first.wait_s == 0.0
    way = "faster" if off_s > 0 else "slower"
    assert f"this machine's clock is 2.0 h {way}" in first.message
    assert service.send("title", "body", 20.0).status == "sent"


def test_a_server_that_never_answers_is_given_up(robots: Robots, kind: str) -> None:
    """It may be there later."""
    robots.faults.append(never_answers)
    delivery = send(robots, kind, within_s=0.3)
    assert delivery.status == "retry"
    assert "no whole answer" in delivery.message


def test_a_server_that_drips_is_given_up(robots: Robots, kind: str) -> None:
    """A byte now and then does not keep the connection alive for ever."""
    robots.faults.append(answers_by_drops)
    delivery = send(robots, kind, within_s=0.5)
    assert delivery.status == "retry"
    assert "no whole answer" in delivery.message


def test_a_closed_connection_is_tried_again(robots: Robots, kind: str) -> None:
    """Without an answer nothing is known to have arrived."""
    robots.faults.append(closes)
    delivery = send(robots, kind)
    assert delivery.status == "retry"
    assert "could not be reached" in delivery.message


def test_ten_megabytes_are_not_read(robots: Robots, kind: str) -> None:
    """What holds no code of the service is no success."""
    robots.faults += [sends_ten_megabytes, sends_ten_megabytes]
    url = f"http://127.0.0.1:{robots.port}/{kind}"
    assert len(post(url, b"{}", within_s=20.0).body) == MOST_BYTES
    delivery = send(robots, kind)
    assert delivery.status == "retry"
    assert "something else answers in its place" in delivery.message


@pytest.mark.parametrize(
    "body",
    [b"", b"<html>log in</html>", b"null", b"[]", b"{}", b"\xff\xfe", b"[" * 9999],
)
def test_http_200_without_a_code_is_no_success(
    robots: Robots, kind: str, body: bytes
) -> None:
    """A proxy's page says 200 as well."""
    robots.faults.append(answers(200, body))
    assert send(robots, kind).status == "retry"


def test_429_waits_as_long_as_asked(robots: Robots, kind: str) -> None:
    """The server's own wait goes before any of ours."""
    robots.faults.append(answers(429, b"", Retry_After="77"))
    delivery = send(robots, kind)
    assert (delivery.status, delivery.code, delivery.wait_s) == ("retry", "429", 77.0)


@pytest.mark.parametrize("status", [500, 502, 503, 504])
def test_a_server_error_is_tried_again(robots: Robots, kind: str, status: int) -> None:
    """The next message may pass."""
    robots.faults.append(answers(status))
    delivery = send(robots, kind)
    assert (delivery.status, delivery.code) == ("retry", str(status))


def test_a_redirect_is_not_followed(robots: Robots, kind: str) -> None:
    """The token goes nowhere that was not named."""
    with Robots() as elsewhere:
        where = f"http://127.0.0.1:{elsewhere.port}/"
        robots.faults.append(answers(302, b"", Location=where))
        delivery = send(robots, kind)
        assert elsewhere.requests == 0
    assert (delivery.status, delivery.code) == ("refused", "302")


def test_a_name_that_cannot_be_resolved_is_named(kind: str) -> None:
    """Nobody is asked; the message may pass later."""
    url = f"{kind}+http://robot.invalid/{TOKEN}?access_token={TOKEN}&secret=SECx"
    (service,) = read_targets(url)
    delivery = service.send("title", "body", 20.0)
    assert delivery.status == "retry"
    assert "robot.invalid could not be resolved" in delivery.message
    assert TOKEN not in delivery.message


def test_a_port_that_nobody_listens_on_is_named(kind: str) -> None:
    """The reason is the system's own."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"{kind}+http://127.0.0.1:{port}/{TOKEN}?access_token={TOKEN}"
    (service,) = read_targets(url)
    delivery = service.send("title", "body", 20.0)
    assert delivery.status == "retry"
    assert "Connection refused" in delivery.message


class _Proxy(BaseHTTPRequestHandler):
    """Passes a request on, as a company's proxy does."""

    passed: list[str]

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_POST(self) -> None:
        """Pass it on."""
        self.passed.append(self.path)
        body = self.rfile.read(int(self.headers["Content-Length"]))
        opener = build_opener(ProxyHandler({}))
        with opener.open(Request(self.path, body, method="POST")) as answer:  # noqa: S310 - loopback
            data = answer.read()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(data)


def test_a_proxy_of_the_environment_is_used(
    robots: Robots, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Clusters often reach the world through one."""
    passed: list[str] = []
    handler = type("Bound", (_Proxy,), {"passed": passed})
    proxy = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=proxy.serve_forever, daemon=True).start()
    monkeypatch.setenv("http_proxy", f"http://u:pw@127.0.0.1:{proxy.server_port}")
    with proxy:
        assert send(robots, kind).status == "sent"
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        assert send(robots, kind).status == "sent"
        proxy.shutdown()
    assert [path.startswith("http://127.0.0.1:") for path in passed] == [True]
    assert len(robots.messages) == 2


def test_a_dead_proxy_is_named_without_its_password(
    robots: Robots, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who reads it looks at the proxy first."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    monkeypatch.setenv("http_proxy", f"http://user:proxypass@127.0.0.1:{port}")
    delivery = send(robots, kind)
    assert delivery.status == "retry"
    assert "through the proxy 127.0.0.1" in delivery.message
    assert "proxypass" not in delivery.message


def test_a_server_that_echoes_the_secret_does_not_get_it_into_a_message(
    robots: Robots, kind: str
) -> None:
    """What others write is cleaned before anybody sees it."""
    said = f"no {robots.secret} here, {TOKEN}"
    name = "errcode" if kind == "dingtalk" else "code"
    text = "errmsg" if kind == "dingtalk" else "msg"
    body = json.dumps({name: 99999, text: said}).encode()
    robots.faults.append(answers(200, body))
    delivery = send(robots, kind)
    assert delivery.status == "refused"
    assert robots.secret not in delivery.message
    assert TOKEN not in delivery.message
    assert "99999" in delivery.message
