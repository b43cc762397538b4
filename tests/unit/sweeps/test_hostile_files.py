"""Files of sweeps that were damaged or made up: a gap or a refusal, never a crash."""

from __future__ import annotations

import json
import os
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from tests.fuzz import seeds, sources
from tests.unit.sweeps.ray_files import RayExperiment, row
from tune_guard import SourceError
from tune_guard.sweeps import load_sweep
from tune_guard.sweeps.readers import ray_rows, readings, stream_sweeps

HUGE = ["1e300", "9" * 400, "-9223372036854775809", "Infinity", "NaN"]
WIDE = '"' + "x" * 200_000 + '"'
"""A cell wider than Python's csv reads."""


def deep(levels: int) -> Any:
    """Return a mapping in a mapping in a mapping."""
    found: Any = 1.0
    for _ in range(levels):
        found = {"a": found}
    return found


# ----------------------------------------------------------------------------- Ray


@pytest.mark.parametrize("step", HUGE)
def test_a_step_that_no_array_holds_counts_on(tmp_path: Path, step: str) -> None:
    """As a row without a step does."""
    rows = [row(1, loss=0.5), '{"loss": 0.4, "training_iteration": ' + step + "}\n"]
    RayExperiment(tmp_path / "e").trial("a_t0", rows)
    sweep = load_sweep(tmp_path / "e")
    assert list(sweep.curves.of("a_t0")["loss"].steps) == [1, 2]


def test_nesting_without_end_is_read_to_twenty_levels(tmp_path: Path) -> None:
    """In rows, where what lies deeper is no metric, and in hyperparameters."""
    rows = [row(1, loss=0.5, deep=deep(300))]
    RayExperiment(tmp_path / "e").trial(
        "a_t0", rows, params={"lr": 1, "deep": deep(300)}
    )
    sweep = load_sweep(tmp_path / "e")
    assert set(sweep.curves.of("t0")) == {"loss"}
    name = next(name for name in sweep.trials[0].params if name != "lr")
    assert name.count("/") == 20


def test_a_tag_of_very_many_digits_numbers_no_trial(tmp_path: Path) -> None:
    """Python refuses to read such a number."""
    experiment = RayExperiment(tmp_path / "e")
    tag = "9" * 5000 + "_lr=1"
    experiment.state({"trial_id": "t0", "status": "ERROR", "experiment_tag": tag})
    assert load_sweep(experiment.path).trials[0].name == tag


@pytest.mark.parametrize("cell", ["{[]: 1}", "{'a': {1: 2}}", "{" * 500])
def test_a_literal_that_is_none_stays_a_text(tmp_path: Path, cell: str) -> None:
    """What looks like a nested result of an early version need not be one."""
    text = f'loss,training_iteration,x\n0.5,1,"{cell}"\n'
    RayExperiment(tmp_path / "e").trial("a_t0", progress=text)
    sweep = load_sweep(tmp_path / "e")
    assert sweep.trials[0].steps_run == 1


def test_a_cell_that_is_too_wide_ends_a_progress_file(tmp_path: Path) -> None:
    """Its rows so far are read; also in the header, with none."""
    text = f"loss,training_iteration\n0.5,1\n0.4,{WIDE}\n"
    experiment = RayExperiment(tmp_path / "e")
    experiment.trial("a_t0", progress=text)
    experiment.trial("b_t1", progress=f"{WIDE},training_iteration\n0.5,1\n")
    sweep = load_sweep(experiment.path)
    assert [trial.steps_run for trial in sweep.trials] == [1, 0]
    said = [problem.what for problem in sweep.problems]
    assert sum("field larger than field limit" in what for what in said) == 2


def test_a_line_of_nothing_but_beginnings_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each beginning is tried with all that follows it: that is bounded in all."""
    tried: list[int] = []
    monkeypatch.setattr(ray_rows, "_MOST_SALVAGED", 1000)
    monkeypatch.setattr(
        ray_rows.json, "loads", lambda text: tried.append(len(text)) or _torn()
    )
    assert ray_rows._salvaged(b'{"a' * 1000) is None
    assert len(tried) == 1


def _torn() -> None:
    msg = "torn"
    raise ValueError(msg)


def test_pipes_and_devices_are_no_files_of_a_sweep(tmp_path: Path) -> None:
    """Reading one would never end."""
    experiment = RayExperiment(tmp_path / "e")
    experiment.trial("a_t0", [row(1, loss=0.5)])
    (experiment.path / "b_t1").mkdir()
    os.mkfifo(experiment.path / "b_t1" / "result.json")
    (experiment.path / "a_t0" / "params.json").symlink_to("/dev/zero")
    assert [trial.id for trial in load_sweep(experiment.path).trials] == ["t0"]


# ----------------------------------------------------------------------- other logs


@pytest.mark.parametrize("step", HUGE)
def test_such_a_step_is_left_out_of_other_logs(tmp_path: Path, step: str) -> None:
    """Of Lightning's, the Trainer's, and of an export."""
    (tmp_path / "a").mkdir()
    (tmp_path / "a/metrics.csv").write_text(f"step,loss\n1,0.5\n{step},0.4\n")
    log = '{"log_history": [{"step": 1, "loss": 0.5}, {"step": ' + step
    text = log + ', "loss": 0.4}], "max_steps": 1, "global_step": ' + step + "}"
    (tmp_path / "b").mkdir()
    (tmp_path / "b/trainer_state.json").write_text(text)
    (tmp_path / "c").mkdir()
    (tmp_path / "c/run.csv").write_text(f"_step,loss\n1,0.5\n{step},0.4\n")
    for name in "abc":
        sweep = load_sweep(tmp_path / name)
        curve = sweep.curves.of(sweep.trials[0].id)["loss"]
        assert (list(curve.steps), list(curve.values)) == ([1], [0.5]), name


def test_a_cell_that_is_too_wide_ends_other_logs(tmp_path: Path) -> None:
    """What stands before it is read."""
    (tmp_path / "a").mkdir()
    (tmp_path / "a/metrics.csv").write_text(f"step,loss\n1,0.5\n2,{WIDE}\n")
    (tmp_path / "b").mkdir()
    (tmp_path / "b/run.csv").write_text(f"_step,loss\n1,0.5\n2,{WIDE}\n")
    for name in "ab":
        sweep = load_sweep(tmp_path / name)
        curve = sweep.curves.of(sweep.trials[0].id)["loss"]
        assert list(curve.steps) == [1]
        assert sweep.problems, name


def test_a_time_before_all_calendars_is_none(tmp_path: Path) -> None:
    """Year 1 has no seconds since 1970 in every time zone."""
    text = "run_id,status,start_time,metrics.loss\nr,FINISHED,0001-01-01,0.5\n"
    (tmp_path / "runs.csv").write_text(text)
    assert load_sweep(tmp_path / "runs.csv").trials[0].began_at is None


def test_a_mapping_that_is_none_is_a_gap(tmp_path: Path) -> None:
    """A list is no key."""
    text = "name,config,summary\na,{[]: 1},{}\nb,{},{}\n"
    (tmp_path / "runs.csv").write_text(text)
    sweep = load_sweep(tmp_path / "runs.csv")
    assert [trial.id for trial in sweep.trials] == ["b"]
    assert "no mapping" in sweep.problems[0].what


# ---------------------------------------------------------------------- long tables


def table(tmp_path: Path, *lines: str) -> Path:
    """Write a long table."""
    path = tmp_path / "t.csv"
    head = "sweep_id,trial_id,step,metric_name,value"
    path.write_text("\n".join([head, *lines]) + "\n")
    return path


def test_a_step_beyond_64_bits_is_left_out_of_a_table(tmp_path: Path) -> None:
    """NumPy would make another number of it, with a warning."""
    path = table(tmp_path, "s,a,1,loss,0.5", "s,a,1e300,loss,0.4")
    sweep = load_sweep(path)
    assert list(sweep.curves.of("a")["loss"].steps) == [1]
    assert "1 rows left out" in sweep.problems[0].what


def test_a_table_with_a_cell_that_is_too_wide_is_refused(tmp_path: Path) -> None:
    """Read at once, in turn, and by its header."""
    path = table(tmp_path, "s,a,1,loss,0.5", f"s,a,2,loss,{WIDE}")
    with pytest.raises(SourceError, match="field larger"):
        load_sweep(path)
    with pytest.raises(SourceError, match="field larger"):
        stream_sweeps(str(path))
    path.write_text(f"{WIDE},trial_id\n")
    with pytest.raises(SourceError, match="field larger"):
        load_sweep(path)


def test_hyperparameters_of_any_depth_are_left_out_of_a_table(tmp_path: Path) -> None:
    """Their JSON is deeper than Python reads."""
    for folder, text in (("curves", seeds.LONG_TABLE), ("trials", seeds.LONG_TRIALS)):
        (tmp_path / folder).mkdir()
        deepest = b'"' + b"[" * 100_000 + b'"'
        hostile = text.replace(b'"{""lr"": 0.1}"', deepest)
        (tmp_path / folder / "t.csv").write_bytes(hostile)
    assert load_sweep(f"{tmp_path}/curves/t.csv").trials[0].params == {}


@pytest.mark.parametrize("at", [0.05, 0.2, 0.3])
def test_a_damaged_parquet_file_is_refused(tmp_path: Path, at: float) -> None:
    """Whatever pyarrow says of it."""
    whole = bytearray(sources.parquet())
    start = int(at * len(whole))
    whole[start : start + 60] = b"\xff" * 60
    path = tmp_path / "t.parquet"
    path.write_bytes(whole)
    with pytest.raises(SourceError, match=r"t\.parquet cannot be read"):
        load_sweep(path)
    with pytest.raises(SourceError, match=r"t\.parquet cannot be read"):
        list(stream_sweeps(str(path))[1])


def test_a_parquet_file_of_endless_rows_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They cost nothing on disk."""
    monkeypatch.setattr(readings, "_MOST_ROWS", 3)
    path = tmp_path / "t.parquet"
    path.write_bytes(sources.parquet())
    with pytest.raises(SourceError, match="has 4 rows"):
        load_sweep(path)


# --------------------------------------------------------------------------- Optuna


@pytest.mark.parametrize("value", ["1e300", '"x"', "[1]", "9" * 400])
def test_a_journal_that_optuna_did_not_write_is_refused(
    tmp_path: Path, value: str
) -> None:
    """A step or a value that Optuna takes over without a look."""
    lines = seeds.journal().decode().splitlines()
    place = next(i for i, line in enumerate(lines) if '"step"' in line)
    entry = json.loads(lines[place]) | {"step": 77}
    lines[place] = json.dumps(entry).replace('"step": 77', f'"step": {value}')
    path = tmp_path / "journal.log"
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(SourceError, match=r"journal\.log cannot be re(ad|played)"):
        load_sweep(path)


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """Return a SQLite file with a study."""
    path = tmp_path / "study.db"
    path.write_bytes(seeds.database())
    return path


def change(path: Path, *commands: str) -> None:
    """Run SQL on a file."""
    connection = sqlite3.connect(path)
    connection.executescript(";".join(commands))
    connection.close()


def test_a_database_with_a_date_that_is_none_is_refused(study: Path) -> None:
    """SQLAlchemy has an error of its own for it."""
    change(study, "UPDATE trials SET datetime_start = 'yesterday'")
    with pytest.raises(SourceError, match=r"study\.db cannot be read"):
        load_sweep(study)


def test_a_view_in_a_tables_place_is_never_run(study: Path) -> None:
    """It could count for ever; the file itself stays as it is."""
    change(
        study,
        "DROP TABLE trial_user_attributes",
        "CREATE VIEW trial_user_attributes AS WITH RECURSIVE n(x) AS"
        " (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x FROM n",
    )
    before = study.read_bytes()
    with pytest.raises(SourceError, match=r"study\.db cannot be read"):
        load_sweep(study)
    assert study.read_bytes() == before


def test_a_view_of_ones_own_does_no_harm(study: Path) -> None:
    """It is left out of the copy that is read."""
    change(study, 'CREATE VIEW "my ""view" AS SELECT * FROM trials')
    assert len(load_sweep(study).trials) == 4


def test_a_column_that_is_computed_is_refused(study: Path) -> None:
    """A short expression can stand for gigabytes."""
    bomb = "printf('%.*c', 1000000000, 'x')"
    change(study, f"ALTER TABLE trials ADD COLUMN more TEXT AS ({bomb})")
    with pytest.raises(SourceError, match="trials computes a column"):
        load_sweep(study)


# --------------------------------------------------------------------------- MLflow


@pytest.fixture
def mlflow(tmp_path: Path) -> Path:
    """Return MLflow's database with one run."""
    path = tmp_path / "mlflow.db"
    path.write_bytes(seeds.mlflow())
    return path


def test_a_view_is_none_of_mlflows_tables(mlflow: Path) -> None:
    """It is never run: the file is then of something else."""
    change(
        mlflow,
        "DROP TABLE metrics",
        "CREATE VIEW metrics AS WITH RECURSIVE n(x) AS"
        " (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x FROM n",
    )
    with pytest.raises(SourceError, match="no Optuna study"):
        load_sweep(mlflow)


def test_a_computed_column_of_mlflows_is_refused(mlflow: Path) -> None:
    """As in a study."""
    change(mlflow, "ALTER TABLE runs ADD COLUMN x TEXT AS (printf('%.*c', 9, 'x'))")
    with pytest.raises(SourceError, match="runs computes a column"):
        load_sweep(mlflow)


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE runs SET experiment_id = 7",
        "ALTER TABLE params RENAME COLUMN value TO worth",
        "UPDATE experiments SET name = NULL",
        "UPDATE metrics SET step = 1e300, key = NULL, value = x'00'",
    ],
)
def test_a_damaged_database_of_mlflows_is_refused_or_read(
    mlflow: Path, damage: str
) -> None:
    """Nothing else comes out."""
    change(mlflow, damage)
    try:
        assert load_sweep(mlflow).trials[0].id == "r"
    except SourceError as error:
        assert "cannot be read" in str(error)  # noqa: PT017 - either will do


@pytest.mark.parametrize("line", ["", "1700000000700"])
def test_a_torn_line_of_mlruns_is_a_gap(tmp_path: Path, line: str) -> None:
    """The readings around it are read."""
    for name, data in seeds.MLRUNS.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(data)
    path = tmp_path / "1/r/metrics/val/loss"
    path.write_text(f"1700000000500 0.5 1\n{line}\n1700000000900 0.4 3\n")
    sweep = load_sweep(tmp_path)
    assert list(sweep.curves.of("r")["val/loss"].steps) == [1, 3]
    assert [problem.line for problem in sweep.problems] == [2]


# -------------------------------------------------------------------------- secrets


def test_the_password_of_an_address_is_not_shown() -> None:
    """Nobody listens there; what is said of that goes into logs."""
    with pytest.raises(SourceError) as caught:
        load_sweep("ftp://me:hunter2@127.0.0.1:1/results")
    assert "hunter2" not in str(caught.value)
    assert "me:***@127.0.0.1" in str(caught.value)
