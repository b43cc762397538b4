"""Recorded sweeps whose trials ran to their end, ready to be cut by a policy.

A folder holds ``curves/*.parquet`` (long tables) and ``trials/*.parquet``. Only
uncensored trials are used, so that what a cut would have lost is known.
"""

from __future__ import annotations

import json
import math
import random
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

CENSORED = {"PRUNED", "RUNNING", "FAIL", "WAITING", "no_measurements"}
NO_SWEEPS = {"mae_logs", "pl_oligogym"}
"""Folders of runs on different tasks: their values cannot be compared."""
HYPERPARAMETERS = ("deepobs", "algoperf", "marllib", "optuna", "ray", "pl_")
"""Sets that search over hyperparameters; the others compare seeds or methods."""
ENDS_AT_GOAL = ("algoperf", "mlperf", "pl_")
"""Sets whose runs end when they reach a goal: their length is not their budget."""
HEALTH = re.compile(r"loss(?!_scale)|grad_norm", re.IGNORECASE)
TOP_RATIO = 0.1
MIN_TRIALS = MIN_REPORTS = 10
MAX_REPORTS = 400

Stream = tuple[np.ndarray, np.ndarray]


@dataclass
class Run:
    """One recorded trial.

    ``steps`` and ``values`` are the objective's readings, ``scores`` the same
    with a higher value the better and NaN where it is not finite; ``health``
    holds the other metrics as (steps, values).
    """

    trial_id: str
    steps: np.ndarray
    values: np.ndarray
    scores: np.ndarray
    health: dict[str, Stream]
    budget: int = 0
    key: int = 0
    """Index of the reading that a cut must not precede: its best, or its target."""
    time_to_target: float = math.inf
    running: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self.running = np.fmax.accumulate(self.scores)

    def __len__(self) -> int:
        """Return the number of the objective's readings."""
        return len(self.steps)

    @property
    def best(self) -> float:
        """Best score, NaN if none was finite."""
        return float(self.running[-1])

    def streams(self, objective: str) -> Iterator[tuple[str, Stream]]:
        """Return the objective and the metrics that a NaN check watches."""
        yield objective, (self.steps, self.values)
        yield from ((m, s) for m, s in self.health.items() if HEALTH.search(m))

    def ends_non_finite(self, objective: str) -> bool:
        """Return whether the objective or a loss ended non-finite."""
        return not all(math.isfinite(v[-1]) for _, (_, v) in self.streams(objective))

    def is_sick(self, objective: str) -> bool:
        """Return whether it ended non-finite, or worse than it started."""
        finite = self.scores[np.isfinite(self.scores)]
        if self.ends_non_finite(objective) or len(finite) < 2:
            return True
        return bool(finite[-1] < finite[0])

    def rows(self, objective: str) -> Iterator[tuple[int, int, dict[str, float]]]:
        """Merge all metrics by step: (readings run so far, step, report)."""
        merged: dict[int, dict[str, float]] = defaultdict(dict)
        for metric, (steps, values) in self.health.items():
            for step, value in zip(steps.tolist(), values.tolist(), strict=True):
                merged[step][metric] = value
        for step, value in zip(self.steps.tolist(), self.values.tolist(), strict=True):
            merged[step][objective] = value
        steps = sorted(merged)
        run = np.searchsorted(self.steps, steps, "right").tolist()
        yield from zip(run, steps, (merged[step] for step in steps), strict=True)


@dataclass
class Study:
    """One recorded sweep: runs that share an objective, in their order."""

    dataset: str
    name: str
    objective: str
    mode: str
    runs: list[Run]

    def __post_init__(self) -> None:
        self.longest = max(map(len, self.runs))
        for run in self.runs:
            ends_early = self.dataset.startswith(ENDS_AT_GOAL)
            run.budget = self.longest if ends_early else len(run)
        best = np.array([run.best for run in self.runs])
        order = np.lexsort(
            (
                [run.key for run in self.runs],
                np.nan_to_num(-best, nan=np.inf),
                [run.time_to_target for run in self.runs],
            )
        )
        self.rank = np.argsort(order)
        self.best = best

    def top(self, ratio: float = TOP_RATIO) -> np.ndarray:
        """Return which runs are in the final best share, at least one."""
        return self.rank < max(1, int(ratio * len(self.runs)))

    @property
    def on_hyperparameters(self) -> bool:
        """Whether its trials differ in hyperparameters."""
        return self.dataset.startswith(HYPERPARAMETERS)


def shuffled(study: Study, seed: int) -> Study:
    """Return a sweep whose trials come in another order."""
    runs = list(study.runs)
    random.Random(f"{seed} {study.dataset} {study.name}").shuffle(runs)
    return Study(study.dataset, study.name, study.objective, study.mode, runs)


def load(folder: Path, only: Sequence[str] = ()) -> list[Study]:
    """Read all sweeps of at least ten trials with at least ten readings each."""
    studies: list[Study] = []
    for path in sorted((folder / "curves").glob("*.parquet")):
        if path.stem not in NO_SWEEPS and (not only or path.stem in only):
            studies += _read(folder, path)
    return studies


def _read(folder: Path, path: Path) -> Iterator[Study]:
    trials = pd.read_parquet(folder / "trials" / path.name)
    trials = trials[~trials.status.isin(CENSORED) & trials.objective.notna()]
    trials = trials.drop_duplicates(["sweep_id", "trial_id"])
    sizes = trials.groupby("sweep_id").trial_id.transform("size")
    trials = trials[sizes >= MIN_TRIALS].reset_index(drop=True)
    if trials.empty:
        return
    streams = _streams(path, trials.assign(key=trials.index))
    for sweep_id, group in trials.groupby("sweep_id", sort=False):
        study = _study(folder, path.stem, str(sweep_id), group, streams)
        if study is not None:
            yield study


def _streams(path: Path, trials: pd.DataFrame) -> dict[int, dict[str, Any]]:
    """Return for each trial's key its metrics as (steps, values, times)."""
    text = dict.fromkeys(["sweep_id", "trial_id", "metric_name"], str)
    columns = ["sweep_id", "trial_id", "step", "metric_name", "value", "wall_time_s"]
    rows = pd.read_parquet(path, columns=columns).astype(text)
    ids = ["sweep_id", "trial_id"]
    rows = rows.merge(trials[[*ids, "key"]].astype(dict.fromkeys(ids, str)))
    rows = rows.sort_values(["key", "metric_name", "step"], kind="stable")
    rows = rows.drop_duplicates(["key", "metric_name", "step"])
    streams: dict[int, dict[str, Any]] = defaultdict(dict)
    for (key, metric), part in rows.groupby(["key", "metric_name"], sort=False):
        streams[key][metric] = (
            part.step.to_numpy(),
            part.value.to_numpy(float),
            part.wall_time_s.to_numpy(float),
        )
    return streams


def _study(
    folder: Path, dataset: str, name: str, group: pd.DataFrame, streams: Any
) -> Study | None:
    """Build a sweep on the objective that most of its trials have."""
    objective, mode = group.groupby(["objective", "objective_mode"]).size().idxmax()
    if name.endswith("/rnnt"):
        mode = "min"  # MLPerf labels this word error rate as one to maximise
    target = _algoperf_target(folder, name) if dataset == "algoperf" else None
    runs = []
    for row in group[group.objective == objective].itertuples():
        metrics = dict(streams[row.Index])
        stream = metrics.pop(objective, None)
        if stream is None or len(stream[0]) < MIN_REPORTS:
            continue
        goal = target
        if dataset.startswith("mlperf") and row.status == "success":
            goal = _thinned(*stream)[1][-1]  # such a run ends at its target
        runs.append(_run(str(row.trial_id), stream, metrics, mode, goal))
    enough = len(runs) >= MIN_TRIALS and any(math.isfinite(r.best) for r in runs)
    return Study(dataset, name, objective, mode, runs) if enough else None


def _run(
    trial_id: str, stream: Any, metrics: dict[str, Any], mode: str, target: Any
) -> Run:
    steps, values, times = _thinned(*stream)
    sign = 1.0 if mode == "max" else -1.0
    scores = np.where(np.isfinite(values), sign * values, np.nan)
    health = {metric: found[:2] for metric, found in metrics.items()}
    run = Run(trial_id, steps, values, scores, health)
    run.key = int(np.nanargmax(scores)) if math.isfinite(run.best) else 0
    hits = [] if target is None else np.flatnonzero(scores >= sign * target)
    if len(hits):
        run.key = first = int(hits[0])
        known = math.isfinite(times[first])
        run.time_to_target = float(times[first] if known else steps[first])
    return run


def _thinned(
    steps: np.ndarray, values: np.ndarray, times: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Thin a very long objective evenly: no peer is asked a million times."""
    if len(steps) <= MAX_REPORTS:
        return steps, values, times
    kept = np.unique(np.linspace(0, len(steps) - 1, MAX_REPORTS).round().astype(int))
    return steps[kept], values[kept], times[kept]


def _algoperf_target(folder: Path, name: str) -> float | None:
    version = "v05" if name.startswith("algoperf_v05") else "current"
    table = json.loads((folder / f"algoperf_targets_{version}.json").read_text())
    base = name.split("#", maxsplit=1)[0].rsplit("/", maxsplit=1)[-1]
    workload = re.sub(r"_(jax|pytorch)$", "", base)
    return table["workloads"].get(workload, {}).get("validation_target_value")
