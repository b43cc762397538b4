"""One sweep of functions, each trial with a fate of its own, and what is kept of it."""

from __future__ import annotations

import csv
import json
import math
import os
from pathlib import Path
from typing import Any

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.hparams import metadata

from tests.integration.ray.support import POLICY, by_fate, reason, rows_of, stored
from tests.schemas import stamp_in
from tune_guard import Outcome, load_sweep
from tune_guard.record import KEYS, RECORD_FILE

STEPS = 6
FATES = [
    "nan",
    "completes",
    "returns_on_nan",
    "raises",
    "silent",
    "retried_from_checkpoint",
    "retried_from_scratch",
    "goes_on",
    "odd_values",
    "dies",
]


@pytest.fixture(scope="module")
def grid(  # noqa: C901 - one fate a line
    sweep: Any, tmp_path_factory: pytest.TempPathFactory
) -> Any:
    """Run the sweep once for all tests of this module."""
    from ray import tune

    from tune_guard.ray import GuardStopper, combine

    def attempt_of(config: dict[str, Any]) -> int:
        marker = Path(config["marks"]) / config["fate"]
        with marker.open("a") as file:
            file.write("x")
        return len(marker.read_text())

    def first_step() -> int:
        checkpoint = tune.get_checkpoint()
        if checkpoint is None:
            return 1
        with checkpoint.as_directory() as folder:
            return int((Path(folder) / "step").read_text()) + 1

    def report(metrics: dict[str, Any], save_as: int | None) -> None:
        import tempfile

        if save_as is None:
            tune.report(metrics)
            return
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "step").write_text(str(save_as))
            tune.report(metrics, checkpoint=tune.Checkpoint.from_directory(folder))

    def train(config: dict[str, Any]) -> None:
        fate = config["fate"]
        attempt = attempt_of(config)
        if fate == "silent":
            return
        nan_at = {"nan": 3, "returns_on_nan": STEPS}.get(fate, 5)
        odd = [None, "0.5", [0.4, 0.3], "broken", True, {"deep": 1.0}]
        last = 20 if fate == "goes_on" else STEPS
        for step in range(first_step(), last + 1):
            if step == 3 and fate == "dies":
                os._exit(1)
            if step == 3 and fate == "raises":
                msg = "the user's own error"
                raise FloatingPointError(msg)
            if step == 4 and fate.startswith("retried") and attempt == 1:
                msg = "once only"
                raise RuntimeError(msg)
            sick = fate in ("nan", "returns_on_nan") or fate.startswith("retried")
            loss: Any = math.nan if sick and step == nan_at else 1 / step
            if fate == "odd_values":
                loss = odd[step - 1]
            saves = fate == "retried_from_checkpoint" and step == 2
            report({"loss": loss, "parts": {"a": step}}, step if saves else None)

    marks = str(tmp_path_factory.mktemp("marks"))
    return sweep(
        train,
        [],
        space={"fate": tune.grid_search(FATES), "marks": marks},
        stop=combine(GuardStopper(POLICY), {"training_iteration": 10}),
        failure_config=tune.FailureConfig(max_failures=1),
    )


@pytest.fixture(scope="module")
def results(grid: Any) -> dict[str, Any]:
    """Return each trial's result by its fate."""
    return by_fate(grid)


@pytest.mark.parametrize(
    ("fate", "outcome", "why", "step"),
    [
        ("nan", "guard", "non_finite", 3),
        ("completes", "completed", "", -1),
        ("returns_on_nan", "guard", "non_finite", 6),
        ("raises", "error", "error:FloatingPointError", 2),
        ("silent", "completed", "", -1),
        ("retried_from_checkpoint", "guard", "non_finite", 5),
        ("retried_from_scratch", "guard", "non_finite", 5),
        ("goes_on", "criterion", "criterion:training_iteration", 10),
        ("odd_values", "completed", "", -1),
        ("dies", "error", "error:ActorDiedError", 2),
    ],
)
def test_every_end_has_its_reason(
    results: dict[str, Any], fate: str, outcome: str, why: str, step: int
) -> None:
    """Outcome, reason and step, the same in the trial's file and its metrics."""
    assert reason(results[fate]) == (outcome, why)
    assert stored(results[fate])["tune_guard/step"] == step
    assert results[fate].metrics["tune_guard/step"] == step


def test_no_fate_is_forgotten(results: dict[str, Any]) -> None:
    """Every trial has its file, and it says that it is final."""
    assert sorted(results) == sorted(FATES)
    assert all(stored(result)["final"] is True for result in results.values())


def test_the_trial_is_cut_at_the_very_row(results: dict[str, Any]) -> None:
    """No row comes after the one with the NaN."""
    assert [row["training_iteration"] for row in rows_of(results["nan"])] == [1, 2, 3]


@pytest.mark.parametrize("fate", [fate for fate in FATES if fate != "silent"])
def test_every_row_has_the_same_five_values(results: dict[str, Any], fate: str) -> None:
    """result.json has all five from the first row on."""
    assert all(set(stamp_in(row)) == set(KEYS) for row in rows_of(results[fate]))


def test_ordinary_rows_say_that_the_trial_runs(results: dict[str, Any]) -> None:
    """Before its last row a trial is running, with nothing to say."""
    rows = rows_of(results["nan"])[:-1]
    assert [row["tune_guard/status"] for row in rows] == ["running", "running"]
    assert all(row["tune_guard/detail"] == "" for row in rows)


def test_the_csv_has_the_reason(results: dict[str, Any]) -> None:
    """progress.csv keeps only the first row's columns: they are there from then."""
    with (Path(results["nan"].path) / "progress.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["tune_guard/reason"] for row in rows] == ["", "", "non_finite"]
    assert json.loads(rows[-1]["tune_guard/detail"])["value"] == "NaN"


def test_the_data_frame_has_the_reason(grid: Any) -> None:
    """ResultGrid.get_dataframe() shows what was in a last row."""
    frame = grid.get_dataframe().set_index("config/fate")
    assert frame.loc["nan", "tune_guard/reason"] == "non_finite"
    assert frame.loc["nan", "tune_guard/blame"] == "config"
    assert frame.loc["goes_on", "tune_guard/reason"] == "criterion:training_iteration"


def test_a_restored_experiment_has_every_reason(grid: Any) -> None:
    """Result.metrics has the reason after reading it all from disk again."""
    from ray import tune

    def train(config: dict[str, Any]) -> None:
        """Stand in for the function of the same name: nothing is run again."""

    restored = tune.Tuner.restore(grid.experiment_path, trainable=train).get_results()
    assert {fate: reason(result) for fate, result in by_fate(restored).items()} == {
        fate: reason(result) for fate, result in by_fate(grid).items()
    }


def test_load_sweep_has_every_reason(grid: Any) -> None:
    """The project's own reader finds outcome and reason of every trial."""
    trials = load_sweep(grid.experiment_path).trials
    loaded = {trial.params["fate"]: trial for trial in trials}
    assert {fate: loaded[fate].reason for fate in loaded} == {
        fate: reason(result)[1] for fate, result in by_fate(grid).items()
    }
    assert loaded["dies"].outcome is Outcome.ERROR


def test_tensorboard_has_the_reason_among_the_hyperparameters(
    results: dict[str, Any],
) -> None:
    """The HParams that Ray's own logger wrote have it as a column."""
    for fate, why in (("nan", "non_finite"), ("completes", "completed")):
        events = EventAccumulator(results[fate].path).Reload()
        tags = events.PluginTagToContent("hparams")
        content = tags[metadata.SESSION_START_INFO_TAG]
        columns = metadata.parse_session_start_info_plugin_data(content).hparams
        assert columns["tune_guard/reason"].string_value == why


@pytest.mark.parametrize("fate", ["retried_from_checkpoint", "retried_from_scratch"])
def test_a_retried_trial_says_which_attempt_was_cut(
    results: dict[str, Any], fate: str
) -> None:
    """The record names the second attempt."""
    assert stored(results[fate])["tune_guard/detail"]["attempt"] == 2


def test_the_record_knows_the_best_value(results: dict[str, Any]) -> None:
    """Also where the guard was not the one to end the trial."""
    for fate, best in (("completes", 1 / 6), ("goes_on", 1 / 10), ("raises", 1 / 2)):
        detail = stored(results[fate])["tune_guard/detail"]
        assert detail["best_value"] == pytest.approx(best)


def test_a_dead_worker_is_the_machines_fault(results: dict[str, Any]) -> None:
    """Blame: the machine's for a process that died, nobody's for an exception."""
    assert stored(results["dies"])["tune_guard/blame"] == "infrastructure"
    assert stored(results["raises"])["tune_guard/blame"] == ""


def test_nothing_of_the_draft_is_left(results: dict[str, Any]) -> None:
    """The file is renamed into place: no draft lies beside it."""
    for result in results.values():
        drafts = [path for path in Path(result.path).iterdir() if path.suffix == ".tmp"]
        assert not drafts
        assert (Path(result.path) / RECORD_FILE).is_file()
