"""What a policy saves at how many false kills, and what is left of it elsewhere.

``python -m tests.benchmarks.sweeps.frontier CURVES`` moves what trades the
two and prints a row for each value: the levels of ``tune-guard calibrate`` for the
default policy, and ``leader_growth`` of the rule ``behind`` for the thrifty one, over
several orders of the trials, as who finishes first decides who leads. The last row,
*left out*, is measured on data that did not choose: for each collection the value is
taken that saves most on all others within the limits, and measured on that collection.
"""

from __future__ import annotations

import argparse
import functools
import math
import multiprocessing
from collections.abc import Sequence
from dataclasses import replace
from multiprocessing.pool import Pool
from pathlib import Path

import pandas as pd

from tests.benchmarks.sweeps.data import Run, Study, load, shuffled
from tests.benchmarks.sweeps.figures import measure
from tests.benchmarks.sweeps.guard import MakePolicy, run_guard, thrifty
from tests.benchmarks.sweeps.promise import policy_of, quiet
from tune_guard.policy import Policy
from tune_guard.sweeps.levels import LEVELS
from tune_guard.sweeps.scoring import wilson

GROWTHS = (0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 3.0)
MOST_KILLS = 0.01
MOST_THIRD_KILLS = {"default": 0.015, "thrifty": math.inf}
ORDERS: list[list[Study]] = []


def growing(growth: float, study: Study, run: Run) -> Policy:
    """Return the thrifty policy with another number of leaders."""
    policy = thrifty(study, run)
    rules = tuple(
        replace(rule, leader_growth=growth) if rule.id == "behind" else rule
        for rule in policy.rules
    )
    return replace(policy, rules=rules)


FAMILIES: dict[str, dict[str, MakePolicy]] = {
    "default": {level.name: functools.partial(policy_of, level) for level in LEVELS},
    "thrifty": {
        f"{growth:g}": functools.partial(growing, growth) for growth in GROWTHS
    },
}


def judge(work: tuple[str, str, int, int]) -> dict[str, object]:
    """Run one value over one sweep in one order."""
    family, value, order, number = work
    study = ORDERS[order][number]
    done, _ = run_guard(study, FAMILIES[family][value])
    return {"value": value, "order": order, **measure(study, done)}


def figures(rows: pd.DataFrame) -> dict[str, str]:
    """Return one row of the table: shares in percent, kills over all orders."""
    total = rows.sum(numeric_only=True)
    by_order = rows.groupby("order")[["kills", "top"]].sum()
    rates = 100 * by_order.kills / by_order.top
    low, high = wilson(int(total.kills), int(total.top))
    return {
        "saved": f"{100 * rows.saved.mean():.1f}",
        "saved hp": f"{100 * rows[rows.hp].saved.mean():.1f}",
        "false kills": f"{100 * total.kills / total.top:.2f}",
        "95%": f"{100 * low:.1f}-{100 * high:.1f}",
        "by order": f"{rates.min():.1f} to {rates.max():.1f}",
        "top-30% kills": f"{100 * total.third_kills / total.third:.2f}",
    }


def left_out(rows: pd.DataFrame, most_third_kills: float) -> pd.DataFrame:
    """Return each collection's rows at the value that the others choose."""
    parts = []
    for collection, own in rows.groupby("dataset"):
        others = rows[rows.dataset != collection].groupby("value", sort=False)
        total = others[["kills", "top", "third_kills", "third", "saved"]].sum()
        safe = total[
            (total.kills <= MOST_KILLS * total.top)
            & (total.third_kills <= most_third_kills * total.third)
        ]
        if safe.empty:
            safe = total.nsmallest(1, "kills")
        parts.append(own[own.value == safe.saved.idxmax()])
    return pd.concat(parts)


def frontier(family: str, orders: int, pool: Pool) -> None:
    """Print a row for each value of a family, and what left-out collections keep."""
    found: list[dict[str, object]] = []
    for value in FAMILIES[family]:
        work = [
            (family, value, order, number)
            for order in range(orders)
            for number in range(len(ORDERS[order]))
        ]
        rows = pool.map(judge, work, chunksize=4)
        cells = figures(pd.DataFrame(rows))
        if not found:
            print(f"| {family} | " + " | ".join(cells) + " |")
            print("|---|" + "---:|" * len(cells))
        print(f"| {value} | " + " | ".join(cells.values()) + " |", flush=True)
        found += rows
    cells = figures(left_out(pd.DataFrame(found), MOST_THIRD_KILLS[family]))
    print("| left out | " + " | ".join(cells.values()) + " |\n", flush=True)


def main(argv: Sequence[str] | None = None) -> None:
    """Print the frontier of each policy that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="holds curves/ and trials/")
    parser.add_argument(
        "families", nargs="*", metavar="POLICY", help="default, thrifty"
    )
    parser.add_argument("--only", nargs="*", default=[], help="names of data sets")
    parser.add_argument(
        "--orders", type=int, default=3, help="the recorded one, others"
    )
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args(argv)
    studies = load(options.folder, options.only)
    ORDERS[:] = [
        [shuffled(study, seed) if seed else study for study in studies]
        for seed in range(options.orders)
    ]
    print(f"{len(studies)} sweeps", flush=True)
    with multiprocessing.get_context("fork").Pool(options.jobs, quiet) as pool:
        for family in options.families or FAMILIES:
            # Nothing of the default policy depends on the order.
            frontier(family, 1 if family == "default" else options.orders, pool)


if __name__ == "__main__":
    main()
