"""Other services: apprise sends, and what it cannot send is kept and said."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.integration.notify.clock import VirtualClock
from tests.integration.notify.events import fault
from tune_guard.exceptions import ConfigError
from tune_guard.notify.alerts import Alerts
from tune_guard.notify.apprise_bridge import AppriseService

MARKUP = "<script>x</script> [a](http://e.example) **b** `c` @everyone <!channel> & |"

PASSWORD = "hunter2secret"


class Hook:
    """Takes what apprise posts, or answers with a status."""

    def __init__(self) -> None:
        self.bodies: list[str] = []
        self.status = 200
        hook = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: object) -> None:
                """Say nothing."""

            def do_POST(self) -> None:
                """Take a message."""
                size = int(self.headers["Content-Length"])
                hook.bodies.append(self.rfile.read(size).decode())
                self.send_response(hook.status)
                self.end_headers()

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        serve = self.server.serve_forever
        threading.Thread(target=serve, args=(0.01,), daemon=True).start()
        self.address = f"user:{PASSWORD}@127.0.0.1:{self.server.server_address[1]}"


@pytest.fixture
def hook() -> Iterator[Hook]:
    """A server for apprise's generic services."""
    found = Hook()
    yield found
    found.server.shutdown()
    found.server.server_close()


def test_a_message_arrives(hook: Hook) -> None:
    """Title and text are handed to apprise as plain text."""
    service = AppriseService(f"json://{hook.address}/")
    assert service.send("title", "line 1\nline 2", 10.0).status == "sent"
    (body,) = map(json.loads, hook.bodies)
    assert (body["title"], body["message"]) == ("title", "line 1\nline 2")


def test_a_failure_is_named_without_any_part_of_the_url(hook: Hook) -> None:
    """What apprise says is cleaned: its URLs are secrets as a whole."""
    hook.status = 403
    service = AppriseService(f"json://{hook.address}/some/hidden/path")
    delivery = service.send("title", "body", 10.0)
    assert delivery.status == "retry"
    assert delivery.message
    for part in (PASSWORD, "hidden", hook.address):
        assert part not in delivery.message + service.name + service.mark


@pytest.mark.parametrize(
    "url", ["nosuchservice://hidden-token", "slack://hidden-token", "json://"]
)
def test_a_url_that_apprise_does_not_know_is_refused(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """At construction, and apprise's own log does not show it either."""
    caplog.set_level(logging.DEBUG)
    with pytest.raises(ConfigError, match="apprise does not know this URL"):
        AppriseService(url)
    assert "hidden-token" not in caplog.text


def test_no_logger_shows_the_path_of_a_url(
    hook: Hook, caplog: pytest.LogCaptureFixture
) -> None:
    """Tokens stand in it, and libraries log it at their lowest level."""
    caplog.set_level(logging.DEBUG)
    service = AppriseService(f"json://{hook.address}/hidden-token/path")
    assert service.send("title", "body", 10.0).status == "sent"
    assert "POST" in caplog.text
    assert "hidden-token" not in caplog.text


@pytest.mark.parametrize("form", ["html", "markdown", "text"])
def test_markup_in_names_is_only_text(
    hook: Hook,
    settings_of: Callable[..., object],
    clock: VirtualClock,
    form: str,
) -> None:
    """In HTML, in Markdown, and where the service parses plain text."""
    settings = settings_of(f"json://{hook.address}/?format={form}")
    alerts = Alerts(settings, clock.as_clock())  # type: ignore[arg-type]
    alerts.handle(fault(f"train_1 {MARKUP}", sweep=MARKUP, message=MARKUP))
    assert clock.run_until(lambda: len(hook.bodies) == 1)
    alerts.close(0.0)
    body = json.loads(hook.bodies[0])
    text = f"{body['title']}\n{body['message']}".replace("<br/>", "\n")
    for bad in ("<script", "](", "**", "`", "@everyone", "<!", "://"):
        assert bad not in text, bad


def test_a_dead_service_is_tried_again_and_nothing_is_lost(
    hook: Hook,
    settings_of: Callable[..., object],
    clock: VirtualClock,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """As with the robots; the password is in no log and no file."""
    caplog.set_level(logging.DEBUG)
    hook.status = 503
    settings = settings_of(f"json://{hook.address}/")
    alerts = Alerts(settings, clock.as_clock())  # type: ignore[arg-type]
    for number in range(30):
        alerts.handle(fault(f"train_a_{number}"))
    assert clock.run_until(lambda: len(hook.bodies) == 3)
    hook.status = 200
    tried = len(hook.bodies)
    assert clock.run_until(
        lambda: (
            "train_a_29" in "".join(hook.bodies[tried:]) and len(hook.bodies) > tried
        )
    )
    alerts.close(0.0)
    files = [path.read_text() for path in tmp_path.rglob("*") if path.is_file()]
    assert PASSWORD not in "\n".join([caplog.text, *files])
    assert "was not delivered" in caplog.text


def test_a_small_service_gets_small_messages(hook: Hook) -> None:
    """A text that fits Teams' 1000 letters leaves room for the title."""
    service = AppriseService(
        "workflows://prod-0.example.com:443/643e69f83c8944/signature/"
    )
    assert service.most_bytes < 1000
    assert service.size("ab", "cd") == 5
