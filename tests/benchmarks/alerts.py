"""What telling costs a sweep: ``python -m tests.benchmarks.alerts [seconds]``.

10,000 trials are cut, evenly over a minute, while all listeners are on: messages
to a robot that verifies signatures and takes 20 a minute, metrics, and TensorBoard
runs. Each cut is to be named in a message. Printed are the wall time that an
announcement takes in microseconds (median, 99.9th percentile, largest), the
largest processor time that it takes, which no other process can add to, the
messages, the trials that no message names and no file keeps (lost), and how often
the robot was asked for more than it takes.

The row of the machine shows what a wait of 0.1 ms takes in the same loop with
nobody listening: that much of the times is the machine's. It exits with 1 where
something was lost or over the limit; times are printed only.
"""

from __future__ import annotations

import multiprocessing
import os
import re
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from tests.integration.notify.events import SWEEP, fault, plateau
from tests.integration.notify.robots import Robots, never_answers
from tune_guard import listeners
from tune_guard.events import Event, SweepStarted
from tune_guard.notify.outbox_files import left_behind

CUTS = 10_000
MINUTE_S = 60.0
LIMIT_US = 1000.0

MakeEvent = Callable[..., Event]
Took = tuple[float, float]
Row = tuple[str, list[Took], int, int, int]


def serve(pipe: Any, over: Any, *, hangs: bool) -> None:
    """Run the robot in a process of its own, and say in the end what it got."""
    with Robots() as robots:
        if hangs:
            robots.faults = [never_answers] * 1000
        pipe.send(robots.url("dingtalk"))
        found: set[str] = set()
        while len(found) < CUTS and not over.wait(0.5):
            found = set(re.findall(r"train_[0-9a-f]+_\d+", robots.text()))
        pipe.send((len(robots.messages), robots.over_limit, found))


def paced(seconds: float, do: Callable[[int], object]) -> list[Took]:
    """Do something 10,000 times, evenly; return the microseconds that each took.

    Returns:
        Wall time and the thread's processor time.
    """
    took, due = [], time.perf_counter()
    for number in range(CUTS):
        begin, spent = time.perf_counter(), time.thread_time()
        do(number)
        wall, cpu = time.perf_counter() - begin, time.thread_time() - spent
        took.append((wall * 1e6, cpu * 1e6))
        due += seconds / CUTS
        time.sleep(max(0.0, due - time.perf_counter()))
    return took


def measure(name: str, seconds: float, make: MakeEvent, *, hangs: bool) -> Row:
    """Announce to a robot that answers, or hangs."""
    clean = multiprocessing.get_context("spawn")
    ours, theirs = clean.Pipe()
    over = clean.Event()
    robot = clean.Process(target=serve, args=(theirs, over), kwargs={"hangs": hangs})
    robot.start()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        os.environ["TUNE_GUARD_STATE"] = folder
        os.environ["TUNE_GUARD_ALERTS"] = ours.recv()
        os.environ["TUNE_GUARD_ALERTS_ON"] = "cut fault"
        os.environ["TUNE_GUARD_PROMETHEUS"] = f"{folder}/metrics.prom"
        os.environ["TUNE_GUARD_TENSORBOARD"] = f"{folder}/runs"
        listeners.announce(SweepStarted(sweep=SWEEP))
        time.sleep(5.0)  # what is imported once is no cost of a cut
        events = [make(f"train_a1b2c_{n:05d}", params={"lr": 0.1}) for n in range(CUTS)]
        took = paced(seconds, lambda number: listeners.announce(events[number]))
        if hangs:
            over.set()
        messages, over_limit, found = ours.recv()
        for _, _, entries in left_behind(Path(folder) / "alerts"):
            found |= {name for entry in entries for name in entry.alert.trials}
        robot.join()
        listeners.shut()
        listeners._forget()
    return name, took, messages, CUTS - len(found), over_limit


def noise(seconds: float) -> Row:
    """Return what the machine adds to a short wait by itself."""
    never = threading.Lock()
    never.acquire()
    took = paced(seconds, lambda _: never.acquire(timeout=0.0001))
    return "the machine: a wait of 0.1 ms", took, 0, 0, 0


def main(arguments: list[str]) -> int:
    """Measure, print, and return the exit status."""
    seconds = float(arguments[0]) if arguments else MINUTE_S
    rows = [
        noise(seconds),
        measure("cuts, the robot answers", seconds, plateau, hangs=False),
        measure("faults, the robot answers", seconds, fault, hangs=False),
        measure("faults, the robot hangs", seconds, fault, hangs=True),
    ]
    table = Table(title=f"{CUTS} cuts in {seconds:.0f} s")
    columns = ("", "median µs", "p99.9", "max", "over 1 ms", "max cpu µs")
    for column in (*columns, "messages", "lost", "over limit"):
        table.add_column(column, justify="right" if column else "left", no_wrap=True)
    for name, took, *counts in rows:
        walls = sorted(wall for wall, _ in took)
        slow = sum(us > LIMIT_US for us in walls)
        cpu = max(cpu for _, cpu in took)
        times = (walls[CUTS // 2], walls[CUTS - CUTS // 1000], walls[-1])
        shown = [f"{us:.0f}" for us in times]
        table.add_row(name, *shown, str(slow), f"{cpu:.0f}", *map(str, counts))
    Console(width=120).print(table)
    return int(any(lost or over for *_, lost, over in rows))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
