"""Real servers of Prometheus, from Debian's packages."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import ProxyHandler, build_opener

import pytest

ROOT = Path(__file__).parents[3]
MONITORING = ROOT / "examples" / "monitoring"

_opener = build_opener(ProxyHandler({}))


def program(name: str, package: str) -> str:
    """Return a program; without it, skip by hand and fail in CI."""
    path = shutil.which(name)
    if path is None and os.environ.get("CI") == "true":
        pytest.fail(f"{name} must be installed in CI: apt-get install {package}")
    if path is None:
        pytest.skip(f"apt-get install {package}, or use .ci/run")
    return path


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def fetch(url: str) -> str:
    """Return what a server of this machine answers."""
    with _opener.open(url, timeout=10) as answer:
        text: str = answer.read().decode()
        return text


def eventually(what: Callable[[], Any], within_s: float = 90.0) -> Any:
    """Return what another process shows as soon as it does."""
    end = time.monotonic() + within_s
    while True:
        try:
            found = what()
        except (URLError, OSError):
            found = None
        if found:
            return found
        if time.monotonic() > end:
            pytest.fail(f"nothing within {within_s:.0f} s")
        time.sleep(0.2)


class Server:
    """A running Prometheus."""

    def __init__(self, port: int) -> None:
        self._url = f"http://127.0.0.1:{port}/api/v1"

    def get(self, path: str, **fields: str) -> Any:
        """Return the data of an answer of its API."""
        answer = json.loads(fetch(f"{self._url}/{path}?{urlencode(fields)}"))
        assert answer["status"] == "success", answer
        return answer["data"]

    def query(self, expression: str) -> list[tuple[dict[str, str], float]]:
        """Return labels and value of each series that an expression gives now."""
        found = self.get("query", query=expression)["result"]
        return [(series["metric"], float(series["value"][1])) for series in found]

    def firing(self) -> set[str]:
        """Return the names of the alerts that fire."""
        alerts = self.get("alerts")["alerts"]
        return {a["labels"]["alertname"] for a in alerts if a["state"] == "firing"}


@pytest.fixture
def start_server(tmp_path: Path) -> Iterator[Callable[[int], Server]]:
    """Start a Prometheus that scrapes a port every second, with our rules."""
    started: list[subprocess.Popen[bytes]] = []

    def start(target: int) -> Server:
        binary, port = program("prometheus", "prometheus"), free_port()
        config = (MONITORING / "prometheus.yml").read_text()
        config = config.replace("15s", "1s").replace("9464", str(target))
        (tmp_path / "prometheus.yml").write_text(config)
        shutil.copy(MONITORING / "tune_guard.rules.yml", tmp_path)
        arguments = [
            f"--config.file={tmp_path / 'prometheus.yml'}",
            f"--storage.tsdb.path={tmp_path / 'data'}",
            f"--web.listen-address=127.0.0.1:{port}",
        ]
        with (tmp_path / "prometheus.log").open("wb") as log:
            process = subprocess.Popen([binary, *arguments], stdout=log, stderr=log)
        started.append(process)
        server = Server(port)
        eventually(lambda: server.get("status/buildinfo"))
        return server

    yield start
    for process in started:
        process.terminate()
        process.wait(timeout=60)
