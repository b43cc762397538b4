"""Record the sample anew: ``python -m tests.benchmarks.sample.record`` (minutes).

Every trial runs to its end, whatever happens to it: no guard, no pruner. Numbers
may differ in their last digits on another machine, which is why the tables are kept
in the repository: ``curves/trainings.parquet`` and ``trials/trainings.parquet``.
"""

from __future__ import annotations

import argparse
import functools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from examples import digits
from tests.benchmarks.sample import tabular
from tune_guard.space import Space

FOLDER = Path(__file__).parent
SPACES = FOLDER.parents[2] / "search_spaces"
FILE = "trainings.parquet"
EPOCHS = 40
SEED = 6
METRICS = ("loss", "val_loss", "val_accuracy", "grad_norm")

Train = Callable[[Mapping[str, Any], int], Iterable[Mapping[str, float]]]
SWEEPS: dict[str, tuple[str, str, str, int, Train]] = {
    "digits": ("image_classifier", "val_loss", "min", 80, digits.train),
    "wine": (
        "tabular_mlp",
        "val_accuracy",
        "max",
        60,
        functools.partial(tabular.train, "wine"),
    ),
    "breast_cancer": (
        "tabular_mlp",
        "val_loss",
        "min",
        60,
        functools.partial(tabular.train, "breast_cancer"),
    ),
}
"""By name: search space, objective, mode, number of trials, training."""


def record(folder: Path, epochs: int = EPOCHS, most: int | None = None) -> None:
    """Train every sweep and write both tables.

    Args:
        folder: Where ``curves/`` and ``trials/`` go.

        epochs: How long each trial trains.

        most: Trials of each sweep; None for all.
    """
    curves: list[dict[str, Any]] = []
    trials: list[dict[str, Any]] = []
    for name, (space, objective, mode, count, train) in SWEEPS.items():
        for number, config in enumerate(configs(space, most or count)):
            trial = {"sweep_id": name, "trial_id": f"{name}-{number:02d}"}
            trials.append(
                {
                    **trial,
                    "config": json.dumps(config),
                    "status": "completed",
                    "objective": objective,
                    "objective_mode": mode,
                }
            )
            curves += rows(trial, train(config, epochs))
            print(f"{trial['trial_id']} recorded", flush=True)
    write(folder / "curves" / FILE, _compact(pd.DataFrame(curves)))
    write(folder / "trials" / FILE, pd.DataFrame(trials))


def configs(space: str, count: int) -> Iterator[dict[str, Any]]:
    """Draw configurations from a packaged space, always the same."""
    found, rng = Space.from_yaml(SPACES / f"{space}.yaml"), Random(SEED)
    return (dict(found.sample(rng)) for _ in range(count))


def rows(
    trial: Mapping[str, str], reports: Iterable[Mapping[str, float]]
) -> Iterator[dict[str, Any]]:
    """Return one row for each reading of each metric."""
    for step, report in enumerate(reports, start=1):
        for metric in METRICS:
            yield {
                **trial,
                "step": step,
                "metric_name": metric,
                "value": report[metric],
            }


def _compact(curves: pd.DataFrame) -> pd.DataFrame:
    """Keep single precision, in an order that compresses well."""
    curves = curves.sort_values(
        ["sweep_id", "trial_id", "metric_name", "step"], kind="stable"
    )
    return curves.astype(
        {
            "value": "float32",
            "step": "int16",
            "sweep_id": "category",
            "trial_id": "category",
            "metric_name": "category",
        }
    ).assign(wall_time_s=float("nan"))


def write(path: Path, table: pd.DataFrame) -> None:
    """Write a table as parquet in which a NaN stays a NaN: pandas makes it a null."""
    path.parent.mkdir(parents=True, exist_ok=True)
    found = pa.Table.from_pandas(table, preserve_index=False)
    if "value" in table:
        place = found.column_names.index("value")
        values = pa.array(table["value"].to_numpy(), from_pandas=False)
        found = found.set_column(place, "value", values)
    pq.write_table(found, path, compression="zstd")


def main(argv: Sequence[str] | None = None) -> None:
    """Record into the repository, or into another folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=FOLDER)
    record(parser.parse_args(argv).folder)


if __name__ == "__main__":
    main()
