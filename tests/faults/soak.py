"""Faults in random order for minutes: ``python -m tests.faults.soak [--seconds 300]``.

One process drives sweep after sweep; the order comes from a fixed seed. Every verdict
must be the one that the fault's oracle names, and the process must not grow: memory,
file descriptors and threads are compared between the second fifth of the rounds (the
first warms up) and the last.
"""

from __future__ import annotations

import argparse
import gc
import random
import statistics
import sys
import time
from dataclasses import dataclass

import psutil

from tests.faults.catalogue import FAULTS
from tests.faults.ledger import Count
from tests.faults.stage import inject, say, set_up

QUICK = (
    "NaN in a report",
    "NaN between reports",
    "an exception",
    "worker killed (-9)",
    "worker crashes (SIGSEGV)",
    "worker killed, retried from checkpoint",
    "GPU lost once, retried",
    "NVML answers with errors",
    "clocks jump by hours",
    "trial paused, then resumed",
    "SQLite file locked",
    "worker killed (-9), then stale",
    "GPU lost, queued again",
    "Ray: bucket refuses",
    "Ray: bucket stalls",
    "Optuna: SQLite on a full disk",
    "evidence on a full disk",
)
"""Faults of a few seconds each; those that start clusters of their own are left out."""

MIB = 2**20
ROUNDS_OF_A_FIFTH = 3
MOST_MORE_BYTES = 32 * MIB
MOST_MORE_FDS = 8
MOST_MORE_THREADS = 4


@dataclass(frozen=True, slots=True)
class Size:
    """What the process holds after a round."""

    rss_bytes: float
    fds: float
    threads: float

    @classmethod
    def now(cls, process: psutil.Process) -> Size:
        """Look at it, after what can be freed is freed."""
        gc.collect()
        rss = process.memory_info().rss
        return cls(rss, process.num_fds(), process.num_threads())

    @classmethod
    def typical(cls, sizes: list[Size]) -> Size:
        """Return the medians."""
        names = ("rss_bytes", "fds", "threads")
        return cls(*(statistics.median(getattr(s, n) for s in sizes) for n in names))


def soak(seconds: float, seed: int) -> tuple[Count, list[Size]]:
    """Inject faults until the time is up; return the counts and the sizes."""
    drawn, process = random.Random(seed), psutil.Process()
    total, sizes = Count(), list[Size]()
    until = time.monotonic() + seconds
    while time.monotonic() < until or len(sizes) < 5 * ROUNDS_OF_A_FIFTH:
        name = drawn.choice(QUICK)
        count = inject(name, FAULTS[name])
        place = f"round {len(sizes) + 1}, {name}"
        count.remarks = [f"{place}: {remark}" for remark in count.remarks]
        total += count
        sizes.append(Size.now(process))
        last = sizes[-1]
        say(
            f"{len(sizes):>4} {name:<40} {total.recorded} of {total.expected} recorded,"
            f" {last.rss_bytes / MIB:.0f} MiB, {last.fds:.0f} descriptors,"
            f" {last.threads:.0f} threads"
        )
    return total, sizes


def main() -> int:
    """Soak, then say whether verdicts were lost or anything grew."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    set_up()
    total, sizes = soak(options.seconds, options.seed)
    fifth = len(sizes) // 5
    early = Size.typical(sizes[fifth : 2 * fifth])
    late = Size.typical(sizes[-fifth:])
    say(
        f"{total.sweeps} sweeps: {total.expected} verdicts expected,"
        f" {total.recorded} recorded, {total.lost} lost, {total.duplicated} duplicated"
    )
    grown = (
        ("MiB", (late.rss_bytes - early.rss_bytes) / MIB, MOST_MORE_BYTES / MIB),
        ("descriptors", late.fds - early.fds, MOST_MORE_FDS),
        ("threads", late.threads - early.threads, MOST_MORE_THREADS),
    )
    for what, more, most in grown:
        say(f"{more:+.0f} {what} from the second fifth to the last (limit +{most:g})")
    for remark in total.remarks:
        say(f"  {remark}")
    leaks = any(more > most for _, more, most in grown)
    return int(leaks or total.lost + total.duplicated > 0)


if __name__ == "__main__":
    sys.exit(main())
