"""Sweeps as MLflow itself writes and exports them; see recorded_exports.make_mlflow."""

from __future__ import annotations

import contextlib
import json
import math
import shutil
import sqlite3
from pathlib import Path

import pytest

from tests.readers import line_of
from tune_guard import Outcome, load_sweep
from tune_guard.sweeps import Sweep, load_sweeps
from tune_guard.sweeps.foreign import judged

RECORDED = Path(__file__).parent / "recorded_exports"
WAYS = ("database", "database url", "mlruns", "exports")


def unpacked(way: str, folder: Path) -> str:
    """Lay out what was recorded as a user has it, and return what to load."""
    if way.startswith("database"):
        path = folder / "mlflow.db"
        with contextlib.closing(sqlite3.connect(path)) as database:
            database.executescript((RECORDED / "database.sql").read_text())
        return f"sqlite:///{path}" if way.endswith("url") else str(path)
    if way == "mlruns":
        for name, text in json.loads((RECORDED / "mlruns.json").read_text()).items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    else:
        for name in ("runs.csv", "history.csv"):
            shutil.copy(RECORDED / name, folder)
    return str(folder)


@pytest.fixture(params=WAYS)
def sweep(request: pytest.FixtureRequest, tmp_path: Path) -> Sweep:
    """The three runs, however they were left."""
    return load_sweep(unpacked(request.param, tmp_path))


def test_runs_have_their_ends_and_hyperparameters(sweep: Sweep) -> None:
    """The run that only holds the others is none of them, and that is said."""
    assert sweep.engine == "mlflow"
    found = {trial.name: trial for trial in sweep.trials}
    assert {name: trial.outcome for name, trial in found.items()} == {
        "good": Outcome.COMPLETED,
        "broke": Outcome.COMPLETED,
        "cut": None,
    }
    assert {name: trial.params["lr"] for name, trial in found.items()} == {
        "good": 0.1,
        "broke": 30.0,
        "cut": 0.001,
    }
    assert found["good"].params["layers"] == "[8, 8]"
    assert found["good"].time_s is not None
    assert [p.what for p in sweep.problems] == [
        "left out: 1 run without metrics, only around others"
    ]


def test_readings_are_those_that_were_logged(sweep: Sweep) -> None:
    """NaN and infinity too: the database holds the largest number for it."""
    names = {trial.name: trial.id for trial in sweep.trials}
    curve = sweep.curves.of(names["broke"])["val_loss"]
    assert list(curve.steps) == [0, 1, 2, 3]
    assert curve.values[0] == 30.0
    assert math.isnan(curve.values[1])
    assert list(curve.values[2:]) == [math.inf, math.inf]
    assert list(sweep.curves.of(names["good"])["acc/top1"].values) == [
        0.0,
        0.25,
        0.5,
        0.75,
    ]


def test_the_reason_is_found_by_replay(sweep: Sweep) -> None:
    """At the step of the first NaN."""
    found = judged(sweep.with_objective("val_loss", "min"))
    (broke,) = (trial for trial in found.trials if trial.name == "broke")
    record = found.records[broke.id]
    assert (record.reason, record.step) == ("non_finite", 1)


@pytest.mark.parametrize("name", ["runs.csv", "runs.json", "client.json"])
def test_a_table_of_runs_alone_has_final_values(name: str) -> None:
    """Of a data frame as CSV and as JSON, and of the client's runs."""
    sweep = load_sweep(RECORDED / name)
    found = {trial.name: trial for trial in sweep.trials}
    assert found.keys() == {"good", "broke", "cut"}
    assert found["good"].finals == {"val_loss": 0.025, "acc/top1": 0.75}
    assert found["broke"].finals["val_loss"] == math.inf


def test_the_database_is_not_written_to(tmp_path: Path) -> None:
    """Nothing is left beside it; its directory is as good a name."""
    source = Path(unpacked("database", tmp_path))
    before = source.read_bytes()
    assert line_of(load_sweeps(tmp_path)) == line_of(load_sweeps(source))
    assert line_of(load_sweeps(source)).startswith("read: 1 sweep, 3 trials, 6 curves")
    assert source.read_bytes() == before
    assert list(tmp_path.iterdir()) == [source]
