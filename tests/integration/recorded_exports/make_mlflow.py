"""Train four small runs under MLflow and export them in every way that people do.

The files beside this script were made by it, in an environment of its own::

    pip install mlflow==3.17.2 pandas;  python make_mlflow.py .

``runs.csv`` and ``runs.json`` are what ``mlflow.search_runs()`` gives, as a data
frame writes it; ``client.json`` holds the client's runs, ``history.csv`` their
metrics' histories. ``database.sql`` dumps MLflow's own database, ``mlruns.json``
holds the files of its older folder by their path.
"""

import getpass
import json
import math
import os
import sqlite3
import sys
import tempfile
from pathlib import Path
from typing import Any

os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"

import mlflow
import pandas as pd

RUNS = {
    "good": (0.1, "FINISHED"),
    "broke": (30.0, "FINISHED"),
    "cut": (0.001, "KILLED"),
}


def train(experiment: str) -> None:
    """Log three runs under a fourth that only holds them; one meets NaN, then inf."""
    with mlflow.start_run(experiment_id=experiment, run_name="sweep"):
        for name, (lr, end) in RUNS.items():
            mlflow.start_run(experiment_id=experiment, run_name=name, nested=True)
            mlflow.log_params({"lr": lr, "optimizer": "sgd", "layers": [8, 8]})
            for step in range(4):
                loss = lr / (step + 1)
                if name == "broke" and step:
                    loss = math.nan if step == 1 else math.inf
                mlflow.log_metrics({"val_loss": loss, "acc/top1": step / 4}, step=step)
            mlflow.end_run(end)


def histories(runs: list[Any]) -> list[dict[str, Any]]:
    """Return every reading of every run, one a row."""
    client = mlflow.MlflowClient()
    return [
        {
            "run_id": run.info.run_id,
            "key": reading.key,
            "value": reading.value,
            "timestamp": reading.timestamp,
            "step": reading.step,
        }
        for run in runs
        for metric in run.data.metrics
        for reading in client.get_metric_history(run.info.run_id, metric)
    ]


def from_database(folder: Path) -> dict[str, str]:
    """Return what a tracking database gives."""
    mlflow.set_tracking_uri(f"sqlite:///{folder / 'mlflow.db'}")
    experiment = mlflow.create_experiment("digits")
    train(experiment)
    runs = list(mlflow.MlflowClient().search_runs([experiment]))
    table = mlflow.search_runs([experiment])
    tables = ("experiments", "runs", "params", "tags", "metrics", "latest_metrics")
    dump = sqlite3.connect(folder / "mlflow.db").iterdump()
    kept = tuple(
        f"{word} {quote}{name}{quote}"
        for word in ("CREATE TABLE", "INSERT INTO")
        for name in tables
        for quote in ('"', "")
    )
    lines = [line for line in dump if line.startswith(kept)]
    return {
        "runs.csv": table.to_csv(),
        "runs.json": table.to_json(),
        "client.json": json.dumps([run.to_dictionary() for run in runs], indent=1),
        "history.csv": pd.DataFrame(histories(runs)).to_csv(index=False),
        "database.sql": "\n".join(lines) + "\n",
    }


def from_folder(folder: Path) -> dict[str, str]:
    """Return what the older folder holds."""
    home = folder / "mlruns"
    mlflow.set_tracking_uri(home.as_uri())
    train(mlflow.create_experiment("digits"))
    files = sorted(path for path in home.rglob("*") if path.is_file())
    texts = {str(path.relative_to(folder)): path.read_text() for path in files}
    return {"mlruns.json": json.dumps(texts, indent=1)}


def main(target: str) -> None:
    """Write the files, with no name of this machine in them."""
    with tempfile.TemporaryDirectory() as name:
        made = {**from_database(Path(name)), **from_folder(Path(name))}
        for file, text in made.items():
            # The database's runs keep their artifacts below the current folder.
            harmless = text.replace(name, "/tracking").replace(
                str(Path.cwd()), "/tracking"
            )
            harmless = harmless.replace(getpass.getuser(), "somebody")
            Path(target, file).write_text(harmless, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
