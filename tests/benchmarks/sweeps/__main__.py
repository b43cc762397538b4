"""Print one table: our policies, the peers, ours in front of peers, the oracles."""

from __future__ import annotations

import argparse
import logging
import multiprocessing
import time
import warnings
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from tests.benchmarks.sweeps.data import Study, load, shuffled
from tests.benchmarks.sweeps.figures import measure, summary
from tests.benchmarks.sweeps.guard import POLICIES, run_guard, watching
from tests.benchmarks.sweeps.peers import (
    ORACLES,
    PEERS,
    nan_check,
    oracle,
    run_peer,
)

IN_FRONT_OF = ("Ray ASHA", "Optuna Median")
UNDER_VETO = ("Ray ASHA", "Optuna Hyperband", "Optuna Median")
STUDIES: list[Study] = []
ONLY_OURS = False


def judge(number: int) -> tuple[list[tuple[str, dict[str, Any]]], dict[str, Counter]]:
    """Run every policy over one sweep."""
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    study = STUDIES[number]
    full = np.array([len(run) for run in study.runs])
    rows, reasons = [], {}
    guarded = full
    for name, make in POLICIES.items():
        done, why = run_guard(study, make)
        guarded = done if name == "tune_guard default" else guarded
        rows.append((name, measure(study, done)))
        reasons[name] = Counter(why)
    if not ONLY_OURS:
        for name in IN_FRONT_OF:
            done = run_peer(study, PEERS[name](study), guarded)
            rows.append((f"tune_guard + {name}", measure(study, done)))
        for name in UNDER_VETO:
            done, _ = run_guard(study, watching, PEERS[name](study))
            rows.append((f"veto: behind x {name}", measure(study, done)))
        rows.append(("NaN check alone", measure(study, nan_check(study))))
        for name, make_peer in PEERS.items():
            done = run_peer(study, make_peer(study), full)
            rows.append((name, measure(study, done)))
        rows += [
            (f"oracle: {name}", measure(study, oracle(study, name))) for name in ORACLES
        ]
    return rows, reasons


def main(argv: Sequence[str] | None = None) -> None:
    """Read the folder, judge every sweep, print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="holds curves/ and trials/")
    parser.add_argument("--only", nargs="*", default=[], help="names of data sets")
    parser.add_argument("--ours", action="store_true", help="leave out the peers")
    parser.add_argument(
        "--shuffle", type=int, metavar="SEED", help="run the trials in another order"
    )
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args(argv)
    started = time.monotonic()
    global ONLY_OURS  # noqa: PLW0603 - what forked workers see
    ONLY_OURS = options.ours
    STUDIES[:] = load(options.folder, options.only)
    if options.shuffle is not None:
        STUDIES[:] = [shuffled(study, options.shuffle) for study in STUDIES]
    trials = sum(len(study.runs) for study in STUDIES)
    print(f"{len(STUDIES)} sweeps, {trials} trials that ran to their end", flush=True)
    largest = sorted(range(len(STUDIES)), key=lambda i: -sum(map(len, STUDIES[i].runs)))
    found: list[tuple[str, dict[str, Any]]] = []
    reasons: dict[str, Counter] = {}
    with multiprocessing.get_context("fork").Pool(options.jobs) as pool:
        for rows, why in pool.imap_unordered(judge, largest):
            found += rows
            for name, counts in why.items():
                reasons.setdefault(name, Counter()).update(counts)
    frame = pd.DataFrame([{"policy": name, **row} for name, row in found])
    order = list(dict.fromkeys(name for name, _ in found))
    table = {name: summary(frame[frame.policy == name]) for name in order}
    print(pd.DataFrame(table).T.to_string())
    for name, counts in reasons.items():
        print(f"{name}: " + ", ".join(f"{k} {v}" for k, v in counts.most_common()))
    print(f"{time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()
