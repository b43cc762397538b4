"""Stagings of what leaves the machine: chat robots and exporters."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import logging
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from unittest import mock
from urllib.parse import parse_qs, urlsplit

from tests.cases.adapter import Plan
from tests.cases.staging import ROOT, Environment
from tests.cases.stream import Outcome
from tune_guard.events import TrialEnded
from tune_guard.notify.alerts import Alerts
from tune_guard.notify.config import read_settings
from tune_guard.notify.dingtalk import DingTalk
from tune_guard.notify.feishu import Feishu
from tune_guard.record import REASON, STEP, StopRecord
from tune_guard.record import Outcome as End
from tune_guard.verdict import Blame

TOKEN, SECRET, KEYWORD = "token-of-a-robot", "SEC-of-a-robot", "tune"
START_S = 1_700_000_000.0
SETTLED_WITHIN_S = 20.0


class Robot(BaseHTTPRequestHandler):
    """A chat robot's server: keeps requests and gives one answer to all."""

    status, answer = 200, b"{}"
    requests: list[tuple[str, bytes]]
    came: threading.Event

    def do_POST(self) -> None:
        """Take a message."""
        length = int(self.headers.get("Content-Length", 0))
        self.requests.append((self.path, self.rfile.read(length)))
        self.send_response(self.status)
        self.end_headers()
        self.wfile.write(self.answer)
        self.came.set()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def robot(status: int, body: Any) -> Iterator[tuple[type[Robot], str]]:
    """Serve a robot on the loopback; yield it with its address."""
    fields = {
        "status": status,
        "answer": json.dumps(body).encode(),
        "requests": [],
        "came": threading.Event(),
    }
    kind = type("OneRobot", (Robot,), fields)
    server = ThreadingHTTPServer(("127.0.0.1", 0), kind)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield kind, f"127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


# -------------------------------------------------------- an answer that refuses


def refuse(environment: Environment, plan: Plan, folder: Path) -> dict[str, Outcome]:
    """Let a robot refuse with HTTP 200, and look at what is said and sent."""
    response = environment["response"]
    outcome = Outcome()
    service = "feishu" if "feishu" in str(plan.context.get("alert")) else "dingtalk"
    with robot(response.get("http", 200), response["body"]) as (server, address):
        path = (
            "robot/send" if service == "dingtalk" else f"open-apis/bot/v2/hook/{TOKEN}"
        )
        url = f"{service}+http://{address}/{path}?access_token={TOKEN}"
        variables = {
            "TUNE_GUARD_ALERTS": f"{url}&secret={SECRET}&keyword={KEYWORD}",
            "TUNE_GUARD_STATE": str(folder),
        }
        said = _said_while_alerting(variables, server)
    code = str(response["body"].get("errcode", response["body"].get("code")))
    words = str(response["body"].get("errmsg", response["body"].get("msg", "")))
    if len([text for text in said if code in text and words in text]) != 1:
        outcome.broken.append(f"code and words are not said once: {said}")
    if len(server.requests) != 1:
        outcome.broken.append(f"{len(server.requests)} requests of one message")
    if any(KEYWORD not in body.decode() for _, body in server.requests):
        outcome.broken.append("a message without the keyword")
    if TOKEN in "".join(said) or SECRET in "".join(said):
        outcome.broken.append("a secret was logged")
    return {"": outcome}


def _said_while_alerting(variables: dict[str, str], server: type[Robot]) -> list[str]:
    """Announce a broken machine; return what was logged."""
    said: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("tune_guard")
    logger.addHandler(handler)
    with mock.patch.dict("os.environ", {"no_proxy": "127.0.0.1"}):
        alerts = Alerts(read_settings(variables))
        record = StopRecord(
            reason="gpu_fault",
            outcome=End.GUARD,
            step=3,
            blame=Blame.INFRASTRUCTURE,
            message="The GPU is lost.",
            trial="t1",
        )
        alerts.handle(TrialEnded(sweep="s", trial="t1", record=record))
        server.came.wait(SETTLED_WITHIN_S)
        alerts.close(1.0)
    logger.removeHandler(handler)
    return said


# ------------------------------------------------------------ signed each time


def sign(environment: Environment, _: Plan, __: Path) -> dict[str, Outcome]:
    """Send at several times, and compute each signature as the vendor does."""
    times = [START_S + 7200.0 * i for i, _ in enumerate(environment["alerts_at"])]
    outcome = Outcome()
    with robot(200, {"errcode": 0, "code": 0}) as (server, address):
        for kind in environment["targets"]:
            robot_of = {"dingtalk": DingTalk, "feishu": Feishu}[kind]
            for now in times:
                url = f"http://{address}/{kind}?access_token={TOKEN}"
                service = robot_of(url, TOKEN, SECRET, clock=lambda now=now: now)
                if service.send("title", "body", 5.0).status != "sent":
                    outcome.broken.append(f"{kind}: not sent at {now}")
                if not _signed(kind, now, *server.requests[-1]):
                    outcome.broken.append(f"{kind}: another signature at {now}")
    return {"": outcome}


def _signed(kind: str, now: float, path: str, body: bytes) -> bool:
    """Whether a request holds the signature for its time, where it belongs."""
    if kind == "dingtalk":
        query = {k: v[0] for k, v in parse_qs(urlsplit(path).query).items()}
        key, text = SECRET, f"{int(now * 1000)}\n{SECRET}"
        stamp, signature = query.get("timestamp"), query.get("sign")
        wanted = str(int(now * 1000))
    else:
        content = json.loads(body)
        key, text = f"{int(now)}\n{SECRET}", ""
        stamp, signature = content.get("timestamp"), content.get("sign")
        wanted = str(int(now))
    digest = hmac.new(key.encode(), text.encode(), hashlib.sha256).digest()
    return stamp == wanted and signature == base64.b64encode(digest).decode()


# ------------------------------------------------------------ exporters that raise


def export(environment: Environment, plan: Plan, folder: Path) -> dict[str, Outcome]:
    """Cut a trial in a process whose TensorBoard writer raises."""
    (named,) = (key for key in environment if key.startswith("step "))
    policy = folder / "policy.yaml"
    policy.write_text(plan.policy().to_yaml())
    command = [sys.executable, "-m", "tests.cases.exporting", str(folder)]
    done = subprocess.run(
        [*command, named.removeprefix("step ")],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    trial = json.loads(done.stdout)
    outcome = Outcome(reason=trial.get(REASON), at_step=trial.get(STEP))
    outcome.verdict = "stop" if trial["state"] == "PRUNED" else "continue"
    if trial.get("stored_before_export") != trial.get(REASON):
        outcome.broken.append("an exporter was called before the reason was stored")
    gauges = (folder / "guard.prom").read_text()
    health = [
        line for line in gauges.splitlines() if "healthy" in line and line[0] != "#"
    ]
    if not health or any(line.split()[-1] not in ("0.0", "1.0") for line in health):
        outcome.broken.append(f"the gauge of health is {health}")
    if "NaN" in gauges:
        outcome.broken.append("a gauge is NaN")
    return {"": outcome}
