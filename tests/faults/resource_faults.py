"""Faults of what a sweep stands on: memory, the driver's process, disks, buckets."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

from tests.faults.bucket import Bucket
from tests.faults.ledger import Count, Verdict, compare
from tests.faults.processes import isolated, module, started
from tests.faults.ray_faults import NAN, recorded, run


def _found(said: list[Any]) -> list[tuple[Any, Verdict]]:
    return [(trial, (reason, step)) for trial, reason, step in said]


def _isolated(
    task: str, folder: Path, expected: dict[Any, Verdict | None], size: str = "8m"
) -> Count:
    """Hold what a task finds on a disk of its own against what is expected."""
    said = isolated(task, folder, size)
    if said is None:
        return Count(remarks=[f"{task}: this machine mounts no disk for a process"])
    return compare(expected, _found(said))


def host_memory(folder: Path) -> Count:
    """A trial eats the machine's memory until Ray's monitor kills it."""
    import json

    with started(*module("faults.memory", str(folder)), cwd=Path.cwd()) as process:
        assert process.stdout is not None
        said = process.stdout.read()
    found = json.loads(said.splitlines()[-1])
    expected: dict[Any, Verdict | None] = {"host_memory": ("error:host_oom", 2)}
    return compare(expected, _found(found))


def driver_killed(folder: Path) -> Count:
    """Ctrl-C, then kill -9, then restored to the end: as an undisturbed run."""
    import ray

    from tests.integration.ray.sweep_process import END
    from tests.integration.ray.test_restore import RUNNING, Driver, ends_of, in_state

    address = ray.get_runtime_context().gcs_address
    place = folder / "work"
    driver = Driver(place, address)
    driver.wait_for(lambda: all((place / f"{f}_at_first").exists() for f in RUNNING))
    driver.wait_for(lambda: {"nan", "returns"} <= set(ends_of(place)))
    driver.wait_for(lambda: all(in_state(place, fate, 5) for fate in RUNNING))
    driver.process.send_signal(signal.SIGINT)
    (place / "first").touch()
    driver.process.communicate(timeout=120)
    for fate in RUNNING:
        (place / f"{fate}_at_second").unlink(missing_ok=True)
    driver = Driver(place, address)
    driver.wait_for(lambda: all((place / f"{f}_at_second").exists() for f in RUNNING))
    driver.wait_for(lambda: all(in_state(place, fate, 11) for fate in RUNNING))
    driver.end(signal.SIGKILL)
    (place / "second").touch()
    Driver(place, address).process.communicate(timeout=120)
    count = ("count_to", END)
    expected = {"nan": NAN, "returns": None, "saves": count, "starts_over": count}
    return compare(expected, recorded(str(place / "results" / "sweep")))


def ray_disk_full(folder: Path) -> Count:
    """The experiment's disk is full before the cut, and stays so."""
    return _isolated("ray_disk_full", folder, {"nan": NAN, "healthy": None})


def ray_read_only(folder: Path) -> Count:
    """The experiment's disk turns read-only before the cut."""
    return _isolated("ray_read_only", folder, {"nan": NAN, "healthy": None})


def bucket_refuses(folder: Path) -> Count:
    """A bucket takes everything but the guard's files: 403 Forbidden."""
    return _in_bucket(folder, Bucket(refuses="tune_guard"))


def bucket_stalls(folder: Path) -> Count:
    """A bucket lets the guard's files wait for seconds."""
    return _in_bucket(folder, Bucket(stalls="tune_guard", stalls_s=2.0))


def _in_bucket(folder: Path, bucket: Bucket) -> Count:
    with bucket:
        filesystem = bucket.filesystem()
        expected: dict[str, Verdict | None] = {"nan": NAN, "healthy": None}
        place = {"storage_path": "bucket/results", "storage_filesystem": filesystem}
        run(folder, list(expected), **place)
        found = bucket.download("results/sweep", folder / "downloaded" / "sweep")
        return compare(expected, recorded(str(found)))


def sqlite_disk_full(folder: Path) -> Count:
    """The database's disk is full at the moment of the cut."""
    return _isolated("sqlite_disk_full", folder, {0: ("non_finite", 1)}, size="300k")


def journal_read_only(folder: Path) -> Count:
    """The journal's disk turns read-only before the cut."""
    return _isolated("journal_read_only", folder, {0: ("non_finite", 1)})


def evidence_disk_full(folder: Path) -> Count:
    """The evidence does not fit its disk: the first parts are there, the cut is."""
    expected = {0: ("non_finite", 600), "record.json": ("non_finite", 600)}
    return _isolated("evidence_disk_full", folder, expected, size="64k")
