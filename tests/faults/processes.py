"""Processes that faults are injected into: waited for, killed, kept apart."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PATIENCE_S = 180.0


@contextlib.contextmanager
def started(*command: str, cwd: Path | None = None) -> Iterator[subprocess.Popen[str]]:
    """Start a process; whatever happens, it is gone in the end."""
    process = subprocess.Popen(
        command,
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def start_ray(num_cpus: int, **more: Any) -> None:
    """Start Ray in this process, silent: what fails here fails on purpose."""
    import ray

    ray.init(
        num_cpus=num_cpus,
        include_dashboard=False,
        logging_level="CRITICAL",
        log_to_driver=False,
        **more,
    )


def module(name: str, *words: str) -> list[str]:
    """Return the command that runs a module of the tests."""
    return [sys.executable, "-m", f"tests.{name}", *words]


def wait_for(happened: Callable[[], Any], process: subprocess.Popen[str]) -> None:
    """Wait until something has happened, as long as the process lives.

    Raises:
        RuntimeError: If it ended, or time is up.
    """
    until = time.monotonic() + PATIENCE_S
    while not happened():
        if process.poll() is not None or time.monotonic() > until:
            msg = f"it did not happen; the process ended with {process.poll()}"
            raise RuntimeError(msg)
        time.sleep(0.05)


def line_of(process: subprocess.Popen[str]) -> str:
    """Return the next line that a process prints."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


def free_port() -> int:
    """Return a port that nobody listens at."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def isolated(task: str, folder: Path, size: str) -> list[Any] | None:
    """Run a task of ``tests.faults.isolated`` on a small disk of its own.

    The disk is mounted in a name space of the task's processes, for which no
    privileges are needed where the kernel allows such.

    Returns:
        What it found; None where there can be no such disk.
    """
    disk = folder / "disk"
    disk.mkdir()
    mount = 'mount -t tmpfs -o "size=$1" tmpfs "$2" && shift 2 && exec "$@"'
    apart = ["unshare", "-rm", "sh", "-c", mount, "sh", size, str(disk)]
    probe = subprocess.run([*apart, "true"], check=False, capture_output=True)
    if probe.returncode:
        return None
    command = [*apart, *module("faults.isolated", task, str(disk))]
    work = Path.cwd()
    with started(*command, cwd=work) as process:
        assert process.stdout is not None
        said = process.stdout.read()
        process.wait(PATIENCE_S)
    lines = [line for line in said.splitlines() if line.startswith("FOUND ")]
    if not lines:
        msg = f"{task} found nothing: {said[-500:]}"
        raise RuntimeError(msg)
    found: list[Any] = json.loads(lines[-1].removeprefix("FOUND "))
    return found
