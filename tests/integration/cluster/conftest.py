"""One cluster of three nodes, and one sweep run on it in every way there is.

Every process that uses Ray is a process of its own: the other folders of tests have
their cluster in this one.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.cluster.sweep import FIRST

ROOT = Path(__file__).parents[3]
SWEEP = Path(__file__).with_name("sweep.py")
PATIENCE_S = 240.0


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark these tests, and let each wait for the sweeps of its fixtures."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.ray)
            item.add_marker(pytest.mark.slow)


class Machines:
    """The cluster: what its drivers need, and nodes that can be killed.

    Args:
        environment: Of every process of the cluster, and of its drivers.
    """

    def __init__(self, environment: dict[str, str]) -> None:
        self.environment = environment
        module = "tests.integration.cluster.cluster_process"
        self.process = subprocess.Popen(
            [sys.executable, "-m", module],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.addresses: dict[str, str] = json.loads(self._answer())

    def kill(self, node: str) -> None:
        """Kill every process of a node's own, and wait until they are gone."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{node}\n")
        self.process.stdin.flush()
        assert self._answer().strip() == node

    def end(self) -> None:
        """End the cluster."""
        self.process.communicate(timeout=PATIENCE_S)

    def _answer(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline()


@pytest.fixture(scope="session")
def environment() -> Iterator[dict[str, str]]:
    """Ray's files in a folder of their own, and a token that the cluster asks for.

    The folder's name is short: sockets lie below it. Ray would note the cluster in
    the common one, for drivers of other tests to find.
    """
    folder = tempfile.mkdtemp(prefix="tg", dir="/tmp")
    yield {
        **{key: value for key, value in os.environ.items() if key != "RAY_ADDRESS"},
        "RAY_TMPDIR": folder,
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": secrets.token_hex(32),
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_AIR_NEW_OUTPUT": "0",
        "RAY_CLIENT_SERVER_CHECK_CHANNEL_TIMEOUT_S": "120",  # a busy machine needs it
    }
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def machines(environment: dict[str, str]) -> Iterator[Machines]:
    """The cluster, for as long as a test of this folder needs it."""
    cluster = Machines(environment)
    yield cluster
    cluster.end()


def finish(process: subprocess.Popen[str]) -> None:
    """Wait for the end of a driver, which must be a good one."""
    try:
        output, _ = process.communicate(timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        output, _ = process.communicate()
    assert process.returncode == 0, output[-3000:]


def start(command: list[Any], environment: dict[str, str]) -> subprocess.Popen[str]:
    """Start a driver."""
    return subprocess.Popen(
        list(map(str, command)),
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@pytest.fixture(scope="session")
def single_node(
    environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The sweep on one node, which the others are held against."""
    folder = tmp_path_factory.mktemp("single")
    finish(start([sys.executable, SWEEP, folder, "local"], environment))
    return folder / "sweep"


@pytest.fixture(scope="session")
def spread(machines: Machines, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sweep on the cluster, its driver on the head, stored through fsspec."""
    folder = tmp_path_factory.mktemp("spread")
    address = machines.addresses["cluster"]
    command = [sys.executable, SWEEP, folder, address, "--storage", "fsspec"]
    finish(start(command, machines.environment))
    return folder / "bucket" / "sweep"


@pytest.fixture(scope="session")
def through_client(
    machines: Machines, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The sweep of a driver outside the cluster: Ray Client."""
    folder = tmp_path_factory.mktemp("client")
    command = [sys.executable, SWEEP, folder, machines.addresses["client"]]
    finish(start(command, machines.environment))
    return folder / "sweep"


@pytest.fixture(scope="session")
def as_job(machines: Machines, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sweep as a submitted job.

    It has no working directory of its own: the nodes share this machine's disk, and
    each would unpack it anew over the others'.
    """
    folder = tmp_path_factory.mktemp("job")
    submit = [Path(sys.executable).with_name("ray"), "job", "submit"]
    address = ["--address", machines.addresses["dashboard"]]
    driver = [sys.executable, SWEEP, folder, "auto"]
    finish(start([*submit, *address, "--", *driver], machines.environment))
    return folder / "sweep"


@pytest.fixture(scope="session")
def node_killed(
    machines: Machines, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, dict[int, str], str]:
    """A sweep that loses a node while a trial runs on each.

    Returns:
        Its folder, the node of each trial that had begun, and the node that died.
    """
    folder = tmp_path_factory.mktemp("killed")
    gate, address = folder / "gate", machines.addresses["cluster"]
    command = [sys.executable, SWEEP, folder, address, "--opened"]
    driver = start(command, machines.environment)
    wait_until(lambda: all((gate / str(seed)).exists() for seed in FIRST), driver)
    marks = {seed: (gate / str(seed)).read_text().split() for seed in FIRST}
    node, process = marks[FIRST[0]]
    machines.kill(node)
    wait_until(lambda: not Path("/proc", process).exists(), driver)
    (gate / "open").touch()
    finish(driver)
    return folder / "sweep", {seed: at for seed, (at, _) in marks.items()}, node


def wait_until(happened: Callable[[], bool], driver: subprocess.Popen[str]) -> None:
    """Wait until something has happened, as long as the driver lives."""
    until = time.monotonic() + PATIENCE_S
    while not happened():
        if driver.poll() is not None or time.monotonic() > until:
            driver.kill()
            pytest.fail(f"it did not happen:\n{driver.communicate()[0][-3000:]}")
        time.sleep(0.05)
