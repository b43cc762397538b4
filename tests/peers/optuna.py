"""Run Optuna's own tests with every pruner wrapped in GuardPruner.

``python -m tests.peers.optuna CHECKOUT [--rules none|nan] [--wide]``

CHECKOUT is a working tree of Optuna, of the version that is installed or near it: its
tests are copied and run against the installed Optuna. Nothing is fetched. Without rules
no test may end in another way than without the guard; with the rule for NaN exactly the
documented ones must. Exits 1 where that does not hold.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import re
import shutil
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

from tests.peers.comparison import Comparison, run_tests
from tests.peers.table import print_table

NARROW = ("tests/pruners_tests",)
WIDE = (
    *NARROW,
    "tests/trial_tests",
    "tests/test_callbacks.py",
    "tests/storages_tests/test_callbacks.py",
    "tests/storages_tests/test_heartbeat.py",
    "tests/terminator_tests/test_callback.py",
    "tests/study_tests/test_optimize.py",
    "tests/study_tests/test_dataframe.py",
)

_NAN = "the pruner lets a trial with NaN run on, the guard cuts it"
_UNASKED = "the pruner would warn, but is not asked: the guard has cut the trial"
_BAD_BEST = "wilcoxon.py::test_wilcoxon_pruner_warn_bad_best_trial[minimize-"
_NAN_RULE = {
    "median.py::test_median_pruner_intermediate_values_nan": _NAN,
    "patient.py::test_patient_pruner_intermediate_values_nan": _NAN,
    "percentile.py::test_25_percentile_pruner_intermediate_values_nan": _NAN,
    "successive_halving.py::test_successive_halving_pruner_with_nan": _NAN,
    f"{_BAD_BEST}best_intermediate_values1-intermediate_values1]": f"NaN; {_UNASKED}",
    f"{_BAD_BEST}best_intermediate_values3-intermediate_values3]": f"inf; {_UNASKED}",
}
DOCUMENTED: dict[str, dict[str, str]] = {
    "none": {},
    "nan": {f"tests/pruners_tests/test_{n}": why for n, why in _NAN_RULE.items()},
}
"""Tests that differ, by the guard's rules, with the reason for each.

The same two Wilcoxon tests that maximise do not: there a first NaN is held back, as of
a reward before its first episode ends.
"""


def main() -> int:
    """Run the tests both ways and print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkout", type=Path, help="working tree of Optuna")
    parser.add_argument("--rules", choices=tuple(DOCUMENTED), default="none")
    parser.add_argument(
        "--wide", action="store_true", help="also trials, callbacks, optimize"
    )
    wanted = parser.parse_args()
    if not (wanted.checkout / "tests" / "pruners_tests").is_dir():
        parser.error(f"{wanted.checkout} has no tests/pruners_tests")
    print(_versions(wanted.checkout), flush=True)
    with tempfile.TemporaryDirectory(prefix="peers-") as folder:
        place = Path(folder)
        shutil.copytree(wanted.checkout / "tests", place / "tests")
        shutil.copy(wanted.checkout / "pyproject.toml", place)
        selection = [
            p for p in (WIDE if wanted.wide else NARROW) if (place / p).exists()
        ]
        baseline = run_tests(place, selection, (), {})
        asked = place / "asked.json"
        guard = {"GUARDED_RULES": wanted.rules, "GUARDED_ASKED": str(asked)}
        guarded = run_tests(place, selection, ("guarded_pruners",), guard)
        counts = json.loads(asked.read_text(encoding="utf-8"))
    comparison = Comparison(baseline, guarded, DOCUMENTED[wanted.rules])
    print_table(comparison, {"rules": wanted.rules}, counts)
    return int(bool(comparison.broken))


def _versions(checkout: Path) -> str:
    text = (checkout / "optuna" / "version.py").read_text(encoding="utf-8")
    found = re.search(r'"(.+)"', text)
    names = ", ".join(f"{n} {version(n)}" for n in ("optuna", "tune-guard"))
    day = dt.datetime.now(tz=dt.UTC).date()
    return f"{names}; tests of Optuna {found[1] if found else '?'}; {day}"


if __name__ == "__main__":
    sys.exit(main())
