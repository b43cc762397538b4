"""Long tables of curves: one reading a row, and what is known of the trials."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from tune_guard import SourceError
from tune_guard.record import Outcome
from tune_guard.sweeps import UNKNOWN, load_sweep, load_sweeps

HEADER = "sweep_id,trial_id,step,metric_name,value,mode,wall_time_s\n"


def table(tmp_path: Path, *lines: str, header: str = HEADER) -> Path:
    """Write a CSV of curves in a folder ``curves``."""
    path = tmp_path / "curves" / "runs.csv"
    path.parent.mkdir()
    path.write_text(header + "\n".join(lines) + "\n", encoding="utf-8")
    return path


def describe(tmp_path: Path, *rows: dict[str, Any]) -> None:
    """Write the second table, in the folder ``trials`` beside it."""
    names = ["sweep_id", "trial_id", "config", "status", "objective", "objective_mode"]
    lines = [
        ",".join(
            '"' + str(row.get(name, "")).replace('"', '""') + '"' for name in names
        )
        for row in rows
    ]
    folder = tmp_path / "trials"
    folder.mkdir()
    text = ",".join(names) + "\n" + "\n".join(lines) + "\n"
    (folder / "runs.csv").write_text(text, encoding="utf-8")


def test_readings_become_curves(tmp_path: Path) -> None:
    """NaN and infinities are kept, steps are put in order."""
    path = table(
        tmp_path,
        "s,a,2,loss,nan,min,4.0",
        "s,a,1,loss,0.5,min,2.0",
        "s,a,3,loss,inf,min,6.0",
        "s,a,1,acc,0.1,max,",
    )
    sweep = load_sweep(path)
    loss = sweep.curves.of("a")["loss"]
    assert list(loss.steps) == [1, 2, 3]
    assert (loss.values[0], math.isnan(loss.values[1]), loss.values[2]) == (
        0.5,
        True,
        math.inf,
    )
    assert list(loss.times_s or []) == [2.0, 4.0, 6.0]
    assert sweep.modes == {"loss": "min", "acc": "max"}
    assert (sweep.trials[0].steps_run, sweep.trials[0].time_s) == (3, 6.0)


def test_of_two_readings_at_one_step_the_later_holds(tmp_path: Path) -> None:
    """As after a retry."""
    path = table(
        tmp_path, "s,a,1,loss,9,min,", "s,a,2,loss,8,min,", "s,a,1,loss,1,min,"
    )
    assert list(load_sweep(path).curves.of("a")["loss"].values) == [1.0, 8.0]


def test_each_sweep_of_the_table_is_one(tmp_path: Path) -> None:
    """They can be chosen by name, in the call and in the address."""
    path = table(tmp_path, "s,a,1,loss,1,min,", "t,a,1,loss,2,min,")
    assert [sweep.name for sweep in load_sweeps(path)] == ["s", "t"]
    assert load_sweep(path, study_name="t").curves.of("a")["loss"].last == 2.0
    assert load_sweep(f"{path}?study=s").curves.of("a")["loss"].last == 1.0
    with pytest.raises(SourceError, match="no sweep `u`"):
        load_sweep(path, study_name="u")


def test_throttle_reasons_may_be_hexadecimal(tmp_path: Path) -> None:
    """A live guard reads them so; under any other name it is text."""
    rows = ["s,a,1,gpu_reasons,0x60,,", "s,a,1,loss,1,min,", "s,a,2,loss,0x60,min,"]
    curves = load_sweep(table(tmp_path, *rows)).curves.of("a")
    assert list(curves["gpu_reasons"].values) == [96.0]
    assert list(curves["loss"].steps) == [1]


def test_rows_without_a_number_are_named(tmp_path: Path) -> None:
    """Where the first one is, and how many."""
    rows = ["s,a,1,loss,1,min,", "s,a,2,loss,,min,", "s,a,x,loss,1,min,"]
    sweep = load_sweep(table(tmp_path, *rows))
    (problem,) = sweep.problems
    assert (problem.line, problem.lines) == (3, 2)
    assert len(sweep.curves) == 1


@pytest.mark.parametrize("rows", [[], ["s,a,1,loss,,min,"]])
def test_a_table_without_a_reading_is_said(tmp_path: Path, rows: list[str]) -> None:
    """There is nothing to compare."""
    with pytest.raises(SourceError, match="holds no reading"):
        load_sweep(table(tmp_path, *rows))


def test_four_columns_are_enough(tmp_path: Path) -> None:
    """The others are used where they are there."""
    path = table(tmp_path, "a,1,loss,0.5", header="trial_id,step,metric_name,value\n")
    assert load_sweep(path).trials[0].reason == UNKNOWN


def test_a_missing_column_is_said(tmp_path: Path) -> None:
    """Any other CSV is no table of curves."""
    path = table(tmp_path, "1,2", header="a,step\n")
    with pytest.raises(
        SourceError, match="no column `trial_id`, `metric_name`, `value`"
    ):
        load_sweep(path)


def test_the_second_table_says_how_the_trials_ended(tmp_path: Path) -> None:
    """Also of trials that never reported, and in any case of letters."""
    path = table(tmp_path, "s,a,1,loss,1,min,")
    common = {"sweep_id": "s", "objective": "loss", "objective_mode": "min"}
    config = json.dumps({"lr": 0.1})
    describe(
        tmp_path,
        {"trial_id": "a", "config": config, "status": "COMPLETE", **common},
        {"trial_id": "b", "config": "no JSON", "status": "aborted", **common},
        {"trial_id": "c", "status": "PRUNED", **common},
        {"trial_id": "d", "status": "stopped_or_running", **common},
    )
    sweep = load_sweep(path)
    assert [(t.id, t.outcome, t.reason) for t in sweep.trials] == [
        ("a", Outcome.COMPLETED, ""),
        ("b", Outcome.ERROR, "error"),
        ("c", Outcome.PRUNER, UNKNOWN),
        ("d", None, UNKNOWN),
    ]
    assert sweep.trials[0].params == {"lr": 0.1}
    assert (sweep.metric, sweep.mode) == ("loss", "min")


def test_parquet_is_read_like_csv(tmp_path: Path) -> None:
    """With NaN kept apart from a reading that is missing."""
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "runs.parquet"
    columns = {
        "trial_id": ["a", "a", "a"],
        "step": [1, 2, 3],
        "metric_name": ["loss"] * 3,
        "value": [0.5, math.nan, None],
    }
    parquet.write_table(pa.table(columns), path)
    sweep = load_sweep(path)
    assert list(sweep.curves.of("a")["loss"].steps) == [1, 2]
    assert len(sweep.problems) == 1


def test_a_file_that_is_no_parquet_is_said(tmp_path: Path) -> None:
    """Its name alone makes it none."""
    pytest.importorskip("pyarrow")
    path = tmp_path / "runs.parquet"
    path.write_text("text", encoding="utf-8")
    with pytest.raises(SourceError, match="cannot be read as parquet"):
        load_sweep(path)
