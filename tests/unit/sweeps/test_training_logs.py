"""Logs that Lightning and Transformers leave: one trial a run."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.sweeps.ray_files import RayExperiment, row
from tune_guard import SourceError
from tune_guard.record import Outcome
from tune_guard.sweeps import UNKNOWN, load_sweep, load_sweeps

if TYPE_CHECKING:
    from pathlib import Path

# ----------------------------------------------------------------------- Lightning

CSV = """\
epoch,step,train_loss,val_loss
0,9,0.5,
0,9,,0.6
1,19,nan,
1,19,,0.4
"""


def lightning(folder: Path, text: str = CSV, hparams: str = "") -> Path:
    """Write one version as Lightning's CSVLogger does."""
    folder.mkdir(parents=True)
    (folder / "metrics.csv").write_text(text, encoding="utf-8")
    if hparams:
        (folder / "hparams.yaml").write_text(hparams, encoding="utf-8")
    return folder


def test_training_and_validation_of_a_step_are_one_row(tmp_path: Path) -> None:
    """Lightning writes them as two rows; an empty cell is no reading."""
    lightning(tmp_path / "logs" / "version_0", hparams="lr: 0.01\nopt: {name: sgd}\n")
    sweep = load_sweep(tmp_path / "logs")
    (trial,) = sweep.trials
    curves = sweep.curves.of("version_0")
    assert list(curves["val_loss"].steps) == [9, 19]
    assert list(map(math.isnan, curves["train_loss"].values)) == [False, True]
    assert trial.params == {"lr": 0.01, "opt/name": "sgd"}
    assert (trial.steps_run, trial.outcome, trial.reason) == (19, None, UNKNOWN)
    assert (sweep.engine, sweep.name) == ("lightning", "logs")


@pytest.mark.parametrize("name", ["", "metrics.csv"])
def test_one_version_is_enough(tmp_path: Path, name: str) -> None:
    """Its directory, or the file itself."""
    folder = lightning(tmp_path / "version_7")
    assert [t.id for t in load_sweep(folder / name).trials] == ["version_7"]


def test_a_run_that_was_started_again_is_one_curve(tmp_path: Path) -> None:
    """Rows that were run again are in the file and not in the curve."""
    again = CSV + "1,19,0.3,\n2,29,0.2,\n"
    lightning(tmp_path / "version_0", again + "0,9,0.9,\n1,19,0.8,\n")
    curves = load_sweep(tmp_path).curves.of("version_0")
    assert list(curves["train_loss"].values) == [0.9, 0.8]


def test_hyperparameters_that_would_make_objects_are_left_out(tmp_path: Path) -> None:
    """YAML of PyTorch Lightning may name Python classes; none is made."""
    bomb = f"x: !!python/object/apply:os.mkdir ['{tmp_path / 'made'}']\n"
    lightning(tmp_path / "version_0", hparams=bomb)
    sweep = load_sweep(tmp_path)
    assert not (tmp_path / "made").exists()
    assert sweep.trials[0].params == {}
    assert sweep.problems[0].file.endswith("hparams.yaml")


def test_a_torn_row_is_left_out(tmp_path: Path) -> None:
    """And named by its line."""
    lightning(tmp_path / "version_0", CSV + "2,29")
    sweep = load_sweep(tmp_path)
    assert sweep.trials[0].steps_run == 19
    assert sweep.problems[0].line == 6


def test_a_csv_of_something_else_is_no_trial(tmp_path: Path) -> None:
    """Without a step it cannot be Lightning's."""
    lightning(tmp_path / "x", "a,b\n1,2\n")
    with pytest.raises(SourceError, match="holds no sweep"):
        load_sweep(tmp_path)


# -------------------------------------------------------------------- Transformers


def state(folder: Path, steps: int, **fields: Any) -> Path:
    """Write a state as the Trainer does: training logs, and one evaluation."""
    folder.mkdir(parents=True)
    history: list[dict[str, Any]] = [
        {"step": step, "epoch": step / 10, "loss": 1.0 / step, "grad_norm": 2.0}
        for step in range(1, steps + 1)
    ]
    history.append({"step": steps, "eval_loss": 0.5})
    content = {
        "global_step": steps,
        "max_steps": 4,
        "log_history": history,
        "trial_name": "lr=0.1",
        "trial_params": {"lr": 0.1},
        **fields,
    }
    path = folder / "trainer_state.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def test_the_newest_checkpoint_of_a_run_counts(tmp_path: Path) -> None:
    """Each holds all that was logged up to it; 10 is newer than 2."""
    state(tmp_path / "run-0" / "checkpoint-2", 2)
    state(tmp_path / "run-0" / "checkpoint-10", 4)
    state(tmp_path / "run-1" / "checkpoint-2", 2)
    sweep = load_sweep(tmp_path)
    first, second = sweep.trials
    assert (first.id, first.name, first.params) == ("run-0", "lr=0.1", {"lr": 0.1})
    assert (first.steps_run, first.outcome) == (4, Outcome.COMPLETED)
    assert (second.steps_run, second.outcome, second.reason) == (2, None, UNKNOWN)
    curves = sweep.curves.of("run-0")
    assert list(curves["loss"].steps) == [1, 2, 3, 4]
    assert list(curves["eval_loss"].steps) == [4]


def test_the_state_in_the_run_s_own_directory_was_written_last(tmp_path: Path) -> None:
    """The trainer saves it there at the end."""
    state(tmp_path / "run" / "checkpoint-2", 2)
    state(tmp_path / "run" / "x", 1)
    (tmp_path / "run" / "x" / "trainer_state.json").rename(
        tmp_path / "run" / "trainer_state.json"
    )
    assert load_sweep(tmp_path).trials[0].steps_run == 1


@pytest.mark.parametrize("text", ['{"log_history": [', "[]", '{"log_history": 3}'])
def test_a_damaged_state_costs_itself_only(tmp_path: Path, text: str) -> None:
    """The other run is read."""
    state(tmp_path / "run-0", 2)
    path = state(tmp_path / "run-1", 2)
    path.write_text(text, encoding="utf-8")
    sweep = load_sweep(tmp_path)
    assert sweep.curves.of("run-0")["loss"].last == 0.5
    assert not sweep.curves.of("run-1")


# --------------------------------------------------------------------------- mixed


def test_a_directory_of_several_loggers_gives_all_sweeps(tmp_path: Path) -> None:
    """Whoever left them."""
    RayExperiment(tmp_path / "ray").trial("a_t0", [row(1, loss=1.0)])
    lightning(tmp_path / "lightning_logs" / "version_0")
    state(tmp_path / "hf" / "checkpoint-2", 2)
    engines = [sweep.engine for sweep in load_sweeps(tmp_path)]
    assert engines == ["ray", "lightning", "transformers"]


def test_a_directory_of_databases_names_them(tmp_path: Path) -> None:
    """They are sweeps when they are given by name."""
    (tmp_path / "optuna.db").touch()
    with pytest.raises(SourceError, match=r"Give the file itself: .*optuna\.db"):
        load_sweep(tmp_path)
