"""What each rule, each hold and warm-up is worth: the default policy without it.

``python -m tests.benchmarks.sweeps.ablation CURVES`` prints one row a
variant as it is done: what is saved, whom it kills, and the difference to the
default. A hold earns its keep where leaving it out kills more than it saves.
"""

from __future__ import annotations

import argparse
import functools
import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd

from tests.benchmarks.sweeps.data import Run, Study, load
from tests.benchmarks.sweeps.figures import measure
from tests.benchmarks.sweeps.guard import MakePolicy, default, run_guard
from tests.benchmarks.sweeps.promise import quiet
from tune_guard.policy import DEFAULT, Policy
from tune_guard.rules.base import Rule

WARMUP_RATIOS = (0.05, 0.1, 0.2)
JUDGED = ("non_finite", "gradient_explosion", "divergence", "no_progress", "relapse")
STUDIES: list[Study] = []
_Change = Callable[[Rule], Rule | None]


def variants() -> Iterator[tuple[str, MakePolicy]]:
    """Return the default policy, and the same without each part of it."""
    yield "default", default
    for rule in DEFAULT:
        if rule.id not in JUDGED:
            continue
        for hold in getattr(rule, "holds", ()):
            yield f"{rule.id} without {hold.id}", _with(_no_hold(rule.id, hold.id))
    for name in JUDGED:
        yield f"without {name}", _with(_no_rule(name))
    for ratio in WARMUP_RATIOS:
        yield f"warm-up of {ratio:.0%}", functools.partial(_warming, ratio)


def _no_hold(rule_id: str, hold_id: str) -> _Change:
    def change(rule: Rule) -> Rule | None:
        if rule.id != rule_id:
            return rule
        kept = tuple(hold for hold in rule.holds if hold.id != hold_id)
        return replace(rule, holds=kept)

    return change


def _no_rule(*ids: str) -> _Change:
    return lambda rule: None if rule.id in ids else rule


def _with(change: _Change) -> MakePolicy:
    rules = tuple(filter(None, map(change, DEFAULT)))

    def make(study: Study, run: Run) -> Policy:
        return replace(default(study, run), rules=rules)

    return make


def _warming(ratio: float, study: Study, run: Run) -> Policy:
    return replace(default(study, run), warmup_steps=int(ratio * run.budget))


def judge(work: tuple[int, int]) -> dict[str, object]:
    """Run one variant over one sweep."""
    variant, number = work
    _, make = list(variants())[variant]
    return measure(STUDIES[number], run_guard(STUDIES[number], make)[0])


def figures(rows: pd.DataFrame) -> dict[str, float]:
    """Return the figures of one variant, shares in percent."""
    total = rows.sum(numeric_only=True)
    return {
        "saved": 100 * rows.saved.mean(),
        "saved hp": 100 * rows[rows.hp].saved.mean(),
        "kills": total.kills,
        "top-30% kills": total.third_kills,
        "sick saved": 100 * total.sick_saved / max(1, total.sick_reports),
        "premature": total.premature,
    }


def main(argv: Sequence[str] | None = None) -> None:
    """Print the figures of every variant, and its difference to the default."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="holds curves/ and trials/")
    parser.add_argument("--only", nargs="*", default=[], help="names of data sets")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args(argv)
    STUDIES[:] = load(options.folder, options.only)
    STUDIES.sort(key=lambda study: -sum(map(len, study.runs)))
    trials = sum(len(study.runs) for study in STUDIES)
    print(f"{len(STUDIES)} sweeps, {trials} trials", flush=True)
    base: dict[str, float] = {}
    with multiprocessing.get_context("fork").Pool(options.jobs, quiet) as pool:
        for number, (name, _) in enumerate(variants()):
            work = [(number, study) for study in range(len(STUDIES))]
            found = figures(pd.DataFrame(pool.map(judge, work, chunksize=1)))
            if not base:
                base = found
                print("| variant | " + " | ".join(found) + " |")
                print("|---|" + "---:|" * len(found))
            cells = [f"{v:.1f} ({v - base[k]:+.1f})" for k, v in found.items()]
            print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
