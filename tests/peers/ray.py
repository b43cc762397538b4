"""Run Ray's own stopper and controller tests with a GuardStopper in every run.

``python -m tests.peers.ray CHECKOUT``

CHECKOUT is a working tree of Ray, of the version that is installed or near it: its
tests are copied and run against the installed Ray. Nothing is fetched. No test may end
in another way than without the guard. Exits 1 where that does not hold. A test that
differs is run a second time, both ways, and the second time counts: Ray itself repeats
some of them up to three times. Their conftest is left out: it starts stand-ins for
clouds, which these tests do not ask for.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import re
import shutil
import sys
import tempfile
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from tests.peers.comparison import Comparison, run_tests
from tests.peers.table import print_table

TUNE = Path("python/ray/tune/tests")
HELPERS = Path("python/ray/train/tests/util.py")
SELECTION = ("tune/tests/test_stopper.py", "tune/tests/execution")
DOCUMENTED: dict[str, str] = {}
"""Tests that differ, with the reason for each: none."""


def main() -> int:
    """Run the tests both ways and print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkout", type=Path, help="working tree of Ray")
    checkout = parser.parse_args().checkout
    if not (checkout / TUNE).is_dir():
        parser.error(f"{checkout} has no {TUNE}")
    print(_versions(checkout), flush=True)
    # A short name: Ray's sockets lie below it.
    with tempfile.TemporaryDirectory(prefix="peers-") as folder:
        place = Path(folder)
        _copy(checkout, place)
        selection = [path for path in SELECTION if (place / path).exists()]
        comparison = _compare(place, selection)
        counts = json.loads((place / "asked.json").read_text(encoding="utf-8"))
        unsteady = list(comparison.differences)
        if unsteady:
            comparison = _compare(place, unsteady, comparison)
    print_table(comparison, {"rules": "default"}, counts)
    for name in unsteady:
        print(f"- run a second time, both ways: `{name}`")
    return int(bool(comparison.broken))


def _compare(
    place: Path, selection: Sequence[str], first: Comparison | None = None
) -> Comparison:
    """Run tests without and with the guard; their outcomes replace those of before."""
    common = {
        "PEERS_FOLDER": str(place),
        "RAY_TMPDIR": str(place),
        "RAY_USAGE_STATS_ENABLED": "0",
    }
    baseline = run_tests(place, selection, ("ray_checkout",), common)
    plugins = ("ray_checkout", "guarded_stoppers")
    guard = {**common, "GUARDED_ASKED": str(place / "asked.json")}
    guarded = run_tests(place, selection, plugins, guard)
    if first is not None:
        baseline = {**first.baseline, **baseline}
        guarded = {**first.guarded, **guarded}
    return Comparison(baseline, guarded, DOCUMENTED)


def _copy(checkout: Path, place: Path) -> None:
    skipped = shutil.ignore_patterns("conftest.py", "__pycache__")
    shutil.copytree(checkout / TUNE, place / "tune" / "tests", ignore=skipped)
    # Names of tests begin at this file's folder.
    (place / "pytest.ini").write_text("[pytest]\n")
    helpers = place / "train" / "tests"
    helpers.mkdir(parents=True)
    shutil.copy(checkout / HELPERS, helpers)


def _versions(checkout: Path) -> str:
    names = ", ".join(f"{n} {version(n)}" for n in ("ray", "tune-guard"))
    file = checkout / "python" / "ray" / "_version.py"
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    found = re.search(r'version = "(.+)"', text)
    day = dt.datetime.now(tz=dt.UTC).date()
    return f"{names}; tests of Ray {found[1] if found else '?'}; {day}"


if __name__ == "__main__":
    sys.exit(main())
