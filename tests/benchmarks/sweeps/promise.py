"""Does a calibrated policy keep its promise? Split and resample recorded sweeps.

``python -m tests.benchmarks.sweeps.promise CURVES`` (minutes). Every
level is run once over every sweep; then calibration is repeated many times:

- *resampled*: the past is drawn with replacement from all sweeps, which stand for
  all there will ever be. The true rate of what is chosen is then known.
- *split*: the past is a random half, the future the other half. What is measured on
  the future scatters around the true rate, so that more of it lies above the limit.
"""

from __future__ import annotations

import argparse
import functools
import logging
import multiprocessing
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from tests.benchmarks.sweeps.data import Run, Study, load
from tests.benchmarks.sweeps.figures import measure
from tests.benchmarks.sweeps.guard import run_guard
from tune_guard.policy import Policy
from tune_guard.sweeps.levels import LEVELS, Level
from tune_guard.sweeps.promise import fixed_sequence
from tune_guard.sweeps.risk import fewest

LIMITS = (0.02, 0.03, 0.05, 0.1)
CONFIDENCE = 0.9
TIMES = 1000
STUDIES: list[Study] = []


def policy_of(level: Level, study: Study, run: Run) -> Policy:
    """Return a level's policy for a trial whose budget is known."""
    return Policy.default(
        study.objective,
        "max" if study.mode == "max" else "min",
        rules=level.rules,
        budget_steps=run.budget,
    )


def judged(number: int) -> list[tuple[float, float]]:
    """Return each level's share of the best that it killed, and what it saved."""
    study, found = STUDIES[number], []
    for level in LEVELS:
        done, _ = run_guard(study, functools.partial(policy_of, level))
        row = measure(study, done)
        found.append((row["kills"] / row["top"], row["saved"]))
    return found


def quiet() -> None:
    """Let the guard's notices pass: every sweep lacks some signal."""
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)


def judge_all(studies: Sequence[Study], jobs: int = 1) -> np.ndarray:
    """Return losses and savings: sweeps by levels by two."""
    STUDIES[:] = studies
    numbers = range(len(studies))
    with multiprocessing.get_context("fork").Pool(jobs, quiet) as pool:
        return np.array(pool.map(judged, numbers, chunksize=1))


def chosen(losses: np.ndarray, limit: float) -> int | None:
    """Return the level that calibration takes, or None where it refuses."""
    if len(losses) < fewest(limit, CONFIDENCE):
        return None
    tried = fixed_sequence(losses.tolist(), limit, 1 - CONFIDENCE)
    passed = [number for number, (_, _, kept) in enumerate(tried) if kept]
    return passed[-1] if passed else None


def repeated(
    found: np.ndarray,
    limit: float,
    draw: Callable[[np.random.Generator], tuple[np.ndarray, np.ndarray]],
) -> dict[str, float]:
    """Calibrate on many pasts, and look at what is chosen in their futures.

    Args:
        found: What :func:`judge_all` returned.

        limit: The false-kill rate to be promised.

        draw: Returns the numbers of the past sweeps, and of the future ones.
    """
    rng, rates, saved, refused = np.random.default_rng(0), [], [], 0
    for _ in range(TIMES):
        past, future = draw(rng)
        level = chosen(found[past, :, 0], limit)
        if level is None:
            refused += 1
            rates.append(0.0)
            continue
        rates.append(found[future, level, 0].mean())
        saved.append(found[future, level, 1].mean())
    return {
        "promise broken": float(np.mean(np.array(rates) > limit)),
        "mean rate": float(np.mean(rates)),
        "mean saved": float(np.mean(saved)) if saved else 0.0,
        "refused": refused / TIMES,
    }


def table(found: np.ndarray) -> pd.DataFrame:
    """Return how often the promise was broken, by limit and way."""
    count = len(found)
    everyone, half = np.arange(count), count // 2

    def resample(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        return rng.choice(count, count), everyone

    def split(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        order = rng.permutation(count)
        return order[:half], order[half:]

    rows = [
        {"limit": limit, "way": way, **repeated(found, limit, draw)}
        for limit in LIMITS
        for way, draw in (("resampled", resample), ("split", split))
    ]
    return pd.DataFrame(rows)


def main(argv: Sequence[str] | None = None) -> None:
    """Print each level's figures, and how often the promise was broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="holds curves/ and trials/")
    parser.add_argument("--only", nargs="*", default=[], help="names of data sets")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args(argv)
    studies = load(options.folder, options.only)
    found = judge_all(studies, options.jobs)
    print(f"{len(studies)} sweeps; at {CONFIDENCE:.0%} confidence, {TIMES} times each")
    levels = pd.DataFrame(
        found.mean(0), index=[x.name for x in LEVELS], columns=["killed", "saved"]
    )
    print((100 * levels).round(2).to_string(), "\n")
    print(table(found).round(4).to_string(index=False))


if __name__ == "__main__":
    main()
