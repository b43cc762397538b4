"""Inject the faults and print the table: ``python -m tests.faults [NAME ...]``."""

from __future__ import annotations

import argparse
import sys
import time

from tests.faults.catalogue import FAULTS, Run
from tests.faults.ledger import Count
from tests.faults.stage import inject, say, set_up

_ROW = "{:<40} {:>6} {:>9} {:>9} {:>5} {:>11} {:>6}"


def main() -> int:
    """Run the faults that are asked for, or all, and print what became of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="faults whose name has this text")
    wanted = parser.parse_args().names
    set_up()
    chosen = {
        name: run
        for name, run in FAULTS.items()
        if not wanted or any(text in name for text in wanted)
    }
    heads = ("fault", "sweeps", "expected", "recorded", "lost", "duplicated", "s")
    say(_ROW.format(*heads))
    total, begun_s = Count(), time.monotonic()
    for name, run in chosen.items():
        total += _one(name, run)
    _print_row(f"{len(chosen)} faults", total, time.monotonic() - begun_s)
    for remark in total.remarks:
        say(f"  {remark}")
    return int(total.lost + total.duplicated > 0)


def _one(name: str, run: Run) -> Count:
    begun_s = time.monotonic()
    count = inject(name, run)
    _print_row(name, count, time.monotonic() - begun_s)
    return count


def _print_row(name: str, count: Count, seconds: float) -> None:
    numbers = (count.sweeps, count.expected, count.recorded, count.lost)
    say(_ROW.format(name, *numbers, count.duplicated, f"{seconds:.0f}"))


if __name__ == "__main__":
    sys.exit(main())
