"""Exports of W&B and MLflow, each in the formats that people have."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING

import pytest

from tune_guard.exceptions import SourceError
from tune_guard.record import Outcome
from tune_guard.sweeps import INTERRUPTED, UNKNOWN, Sweep, load_sweep
from tune_guard.sweeps.foreign import judged
from tune_guard.sweeps.sweep import NO_FINDING

if TYPE_CHECKING:
    from pathlib import Path


def loaded(folder: Path, **files: str) -> Sweep:
    """Write files, named ``stem__ending``, and load their folder."""
    for name, text in files.items():
        stem, _, ending = name.rpartition("__")
        (folder / f"{stem}.{ending}").write_text(text, encoding="utf-8")
    return load_sweep(folder)


def values(sweep: Sweep, trial: str, metric: str) -> list[tuple[int, float]]:
    """Return the readings of a curve."""
    curve = sweep.curves.of(trial)[metric]
    return list(zip(curve.steps, curve.values, strict=True))


# --------------------------------------------------------------------------- W&B

API = (
    ",name,config,summary,state\n"
    "0,swift-1,\"{'lr': 0.1, 'opt': {'name': 'sgd'}}\","
    "\"{'val_loss': 0.5, '_runtime': 60, '_timestamp': 1000.0, '_step': 2}\",finished\n"
    "1,calm-2,\"{'lr': 30, '_wandb': {}}\",\"{'val_loss': 'NaN'}\",crashed\n"
)


def test_throttle_reasons_may_be_hexadecimal(tmp_path: Path) -> None:
    """In a run's history, and among its final values."""
    summary = "\"{'gpu_reasons': '0x60', 'commit': '0x60'}\""
    sweep = loaded(
        tmp_path,
        project__csv=f",name,config,summary,state\n0,a,{{}},{summary},finished\n"
        f"1,b,{{}},{summary},finished\n",
        b__csv="_step,gpu_reasons\n0,0x20\n",
    )
    assert {trial.id: trial.finals for trial in sweep.trials} == {
        "a": {"gpu_reasons": 96.0},
        "b": {},
    }
    assert values(sweep, "b", "gpu_reasons") == [(0, 32.0)]


def test_runs_and_histories_of_wandb_make_one_sweep(tmp_path: Path) -> None:
    """The table of the public API, and a history for each run, named after it."""
    sweep = loaded(
        tmp_path,
        project__csv=API,
        **{
            "swift-1__csv": "_step,_runtime,val_loss,lr\n0,10,0.9,0.1\n1,20,,0.1\n"
            "2,30,0.5,0.1\n",
            "calm-2__jsonl": '{"_step": 0, "val_loss": 2.3}\n'
            '{"_step": 1, "val_loss": NaN}\n{"_step": 2, "val_lo',
        },
    )
    found = {trial.id: trial for trial in sweep.trials}
    first, second = found["swift-1"], found["calm-2"]
    assert sweep.engine == "wandb"
    assert (first.id, first.outcome, first.time_s) == (
        "swift-1",
        Outcome.COMPLETED,
        60.0,
    )
    assert first.params == {"lr": 0.1, "opt/name": "sgd"}
    assert (first.began_at, first.ended_at) == (940.0, 1000.0)
    assert values(sweep, "swift-1", "val_loss") == [(0, 0.9), (2, 0.5)]
    assert (second.reason, second.params) == ("error:crashed", {"lr": 30})
    assert math.isnan(sweep.curves.of("calm-2")["val_loss"].values[1])
    assert str(sweep.problems[0]).endswith("calm-2.jsonl:3: torn line left out")


def test_the_history_is_what_ranks_where_there_is_one(tmp_path: Path) -> None:
    """A summary holds the last value, not the best."""
    history = "_step,val_loss\n0,0.2\n1,0.9\n"
    files = {"swift-1__csv": history, "project__csv": API}
    sweep = loaded(tmp_path, **files).with_objective("val_loss", "min")
    assert sweep.trials[0].best_value == 0.2


@pytest.mark.parametrize(
    ("state", "outcome", "reason"),
    [
        ("finished", Outcome.COMPLETED, ""),
        ("failed", Outcome.ERROR, "error"),
        ("killed", None, UNKNOWN),
        ("running", Outcome.INTERRUPTED, INTERRUPTED),
        ("a new one", None, UNKNOWN),
    ],
)
def test_the_state_says_who_ended_a_run(
    tmp_path: Path, state: str, outcome: Outcome | None, reason: str
) -> None:
    """Who killed a run is not written down: a sweep's early stop, or a person."""
    (trial,) = loaded(tmp_path, runs__csv=f"Name,State,lr\na,{state},0.1\n").trials
    assert (trial.outcome, trial.reason) == (outcome, reason)


def test_the_table_of_the_app_says_what_it_cannot_tell(tmp_path: Path) -> None:
    """Hyperparameters and final values stand in it side by side."""
    sweep = loaded(
        tmp_path,
        runs__csv='"Name","State","Runtime","lr","loss"\na,finished,9,0.1,0.5\n',
    )
    (trial,) = sweep.trials
    assert trial.params == {"lr": 0.1, "loss": 0.5}
    assert (trial.finals["loss"], trial.time_s) == (0.5, 9.0)
    assert sweep.problems[0].line == 1
    assert "do not say which are hyperparameters" in sweep.problems[0].what


def test_the_lines_of_a_panel_become_curves(tmp_path: Path) -> None:
    """The envelope that the app draws around a line is none of its readings."""
    panel = (
        '"Step","a - b - val_loss","a - b - val_loss__MIN","c - val_loss"\n'
        "1,0.5,0.4,\n2,0.4,0.3,0.9\n"
    )
    sweep = loaded(tmp_path, panel__csv=panel)
    assert values(sweep, "a - b", "val_loss") == [(1, 0.5), (2, 0.4)]
    assert values(sweep, "c", "val_loss") == [(2, 0.9)]


def test_numbers_that_are_not_finite_are_read_from_pythons_text(
    tmp_path: Path,
) -> None:
    """As `str` writes a dictionary; a call beside them is still refused."""
    text = (
        ",name,config,summary\n"
        "0,a,\"{'lr': 1, 'clip': inf}\",\"{'loss': nan, 'low': -inf}\"\n"
        "1,b,\"{'lr': float('nan')}\",{}\n"
    )
    sweep = loaded(tmp_path, project__csv=text)
    (trial,) = sweep.trials
    assert trial.params == {"lr": 1, "clip": math.inf}
    assert math.isnan(trial.finals["loss"])
    assert trial.finals["low"] == -math.inf
    assert sweep.problems[0].line == 3


@pytest.mark.parametrize(("stride", "said"), [(1, 0), (3, 1)])
def test_a_sampled_history_is_said_to_be_one(
    tmp_path: Path, stride: int, said: int
) -> None:
    """`run.history()` gives 500 rows of a longer run."""
    rows = "".join(f"{step * stride},0.5\n" for step in range(500))
    sweep = loaded(tmp_path, a__csv=f"_step,val_loss\n{rows}")
    assert [p.what for p in sweep.problems] == said * [
        "a sample of 500 rows: `run.scan_history()` gives all"
    ]


def test_the_binary_files_of_wandb_are_named(tmp_path: Path) -> None:
    """With what to do instead."""
    (tmp_path / "run-x.wandb").write_bytes(b":W&B")
    with pytest.raises(SourceError, match=r"`wandb sync`.*run\.history\(\)"):
        load_sweep(tmp_path)


def test_a_config_that_is_no_mapping_is_named_with_its_line(tmp_path: Path) -> None:
    """The other runs are read; nothing is evaluated."""
    text = API + "2,bad-3,__import__('os').getcwd(),{},finished\n"
    sweep = loaded(tmp_path, project__csv=text)
    assert [trial.id for trial in sweep.trials] == ["swift-1", "calm-2"]
    (problem,) = sweep.problems
    assert (problem.line, problem.what) == (
        4,
        "left out: `config` or `summary` is no mapping",
    )


# ------------------------------------------------------------------------ MLflow

RUNS = (
    "run_id,status,start_time,end_time,metrics.val_loss,params.lr,params.opt,"
    "tags.mlflow.runName\n"
    "r1,FINISHED,2026-01-01 00:00:00+00:00,2026-01-01 00:01:00+00:00,0.5,0.1,sgd,a\n"
    "r2,FAILED,2026-01-01 00:00:00+00:00,,,30,adam,b\n"
)


def test_runs_and_histories_of_mlflow_make_one_sweep(tmp_path: Path) -> None:
    """`search_runs().to_csv()`, and the answers of `metrics/get-history`."""
    history = [
        {"key": "val_loss", "value": v, "step": s, "timestamp": 1000 * s}
        for s, v in ((2, 0.5), (1, 0.9), (3, "NaN"))
    ]
    sweep = loaded(tmp_path, runs__csv=RUNS, r1__json=json.dumps({"metrics": history}))
    first, second = sweep.trials
    assert sweep.engine == "mlflow"
    assert (first.name, first.outcome, first.time_s) == ("a", Outcome.COMPLETED, 60.0)
    assert first.params == {"lr": 0.1, "opt": "sgd"}
    assert [step for step, _ in values(sweep, "r1", "val_loss")] == [1, 2, 3]
    assert math.isnan(values(sweep, "r1", "val_loss")[2][1])
    assert (second.outcome, second.time_s) == (Outcome.ERROR, None)


def test_a_table_of_histories_names_its_runs(tmp_path: Path) -> None:
    """One row a reading; an empty value is NaN; a row without a step is counted."""
    rows = ("r1,loss,0.5,1,5", "r2,loss,0.4,1,5", "r1,loss,1,,6", "r2,loss,,2,6")
    text = "\n".join(["run_id,key,value,step,timestamp", *rows])
    sweep = loaded(tmp_path, history__csv=text)
    (first, (step, value)) = values(sweep, "r2", "loss")
    assert first == (1, 0.4)
    assert (step, math.isnan(value)) == (2, True)
    assert sweep.problems[0].what == "1 row left out: no step or no number"


def test_the_answer_of_the_server_is_read(tmp_path: Path) -> None:
    """`runs/search`: parameters and last metrics as pairs, times in milliseconds."""
    run = {
        "info": {
            "run_id": "r1",
            "status": "KILLED",
            "start_time": 1_000_000,
            "end_time": 1_060_000,
        },
        "data": {
            "params": [{"key": "lr", "value": "0.1"}],
            "metrics": [{"key": "loss", "value": 0.5, "step": 3, "timestamp": 1}],
        },
    }
    (trial,) = loaded(tmp_path, runs__json=json.dumps({"runs": [run]})).trials
    assert (trial.id, trial.reason, trial.params) == ("r1", UNKNOWN, {"lr": 0.1})
    assert (trial.began_at, trial.time_s) == (1000.0, 60.0)
    assert trial.finals == {"loss": 0.5}


# -------------------------------------------------------------------------- both


def test_one_file_can_be_given_by_name(tmp_path: Path) -> None:
    """And gets its reasons by replay."""
    path = tmp_path / "history.csv"
    path.write_text("run,_step,val_loss\na,0,0.9\na,1,NaN\nb,0,0.9\nb,1,0.5\n")
    sweep = judged(load_sweep(path).with_objective("val_loss", "min"))
    assert sweep.name == "history"
    assert {t.id: t.reason for t in sweep.trials} == {
        "a": "non_finite",
        "b": NO_FINDING,
    }


@pytest.mark.parametrize("text", ["", "a,b\n1,2\n", "Step,loss\n1,2\n"])
def test_any_other_table_is_refused_by_its_name(tmp_path: Path, text: str) -> None:
    """Never guessed at."""
    path = tmp_path / "table.csv"
    path.write_text(text)
    with pytest.raises(SourceError, match=r"table\.csv"):
        load_sweep(path)
    with pytest.raises(SourceError, match="no export of MLflow or W&B"):
        load_sweep(tmp_path)
