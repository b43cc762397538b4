"""Real storages by their addresses, and workers as processes."""

from __future__ import annotations

import socket
import subprocess
import sys
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

import optuna
import pytest
from optuna.storages._grpc.server import make_server

from tests.integration.optuna.worker import open_storage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).parents[3]

pytestmark = pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")

LOCAL = ("sqlite", "rdb+sqlite", "journal", "grpc")
SERVICES = ("postgres", "mysql", "redis")


@pytest.fixture(
    params=[*LOCAL, *(pytest.param(s, marks=pytest.mark.service) for s in SERVICES)]
)
def address(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Address of a storage of every kind that several processes can share."""
    kind = request.param
    if kind in SERVICES:
        yield request.getfixturevalue(f"{kind}_url")
    elif kind == "journal":
        yield f"journal:{tmp_path / 'journal.log'}"
    elif kind == "grpc":
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        backend = open_storage(f"sqlite:///{tmp_path / 'behind.db'}")
        server = make_server(backend, "127.0.0.1", port)
        server.start()
        yield f"grpc:{port}"
        server.stop(grace=None).wait()
    else:
        yield f"{kind}:///{tmp_path / 'study.db'}"


@pytest.fixture
def study_name(address: str) -> Iterator[str]:
    """Name of a new study there; it is deleted afterwards."""
    name = f"tune-guard-{uuid.uuid4()}"
    storage = open_storage(address)
    optuna.create_study(study_name=name, storage=storage)
    yield name
    optuna.delete_study(study_name=name, storage=storage)


@pytest.fixture
def start_worker() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start workers as processes; those that still run are killed in the end."""
    started: list[subprocess.Popen[str]] = []

    def start(
        task: str, address: str, name: str, count: int = 0
    ) -> subprocess.Popen[str]:
        module = "tests.integration.optuna.worker"
        process = subprocess.Popen(
            [sys.executable, "-m", module, task, address, name, str(count)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()
