"""One Ray experiment: its trials, and states of all versions."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest

from tests.unit.sweeps.ray_files import (
    RayExperiment,
    known,
    row,
)
from tune_guard.sweeps import UNKNOWN, load_sweep

# ------------------------------------------------------------------- the tables


def test_a_trial_has_its_name_parameters_and_cost(experiment: RayExperiment) -> None:
    """Nested parameters become ``a/b`` and a list its text."""
    params = {"lr": 0.1, "opt": {"name": "adam", "betas": [0.9, 0.99]}}
    experiment.trial("a_t0", [row(1, loss=1.0), row(2, loss=0.5)], params)
    trial = load_sweep(experiment.path).trials[0]
    assert (trial.id, trial.name, trial.sweep) == ("t0", "a_t0", "experiment")
    assert trial.params == {
        "lr": 0.1,
        "opt/name": "adam",
        "opt/betas": "[0.9, 0.99]",
    }
    assert (trial.steps_run, trial.time_s) == (2, 4.0)


def test_parameters_come_from_the_rows_where_their_file_is_broken(
    experiment: RayExperiment,
) -> None:
    """The configuration also lies in every row."""
    folder = experiment.trial("a_t0", [row(1, loss=1.0)])
    (folder / "params.json").write_text('{"lr": ', encoding="utf-8")
    sweep = load_sweep(experiment.path)
    assert sweep.trials[0].params == {"lr": 0.1}
    assert sweep.problems[0].file.endswith("params.json")


def test_a_trial_that_never_reported_is_a_trial(experiment: RayExperiment) -> None:
    """It has parameters and no curve, and that is said."""
    experiment.trial("a_t0", [row(1, loss=1.0)])
    experiment.trial("b_t1", [], {"lr": 10.0})
    sweep = load_sweep(experiment.path)
    silent = sweep.trials[1]
    assert (silent.steps_run, silent.params) == (0, {"lr": 10.0})
    assert not sweep.curves.of(silent.id)
    assert sweep.problems[0].what == "trial never reported"


def test_files_of_checkpoints_are_no_trials(experiment: RayExperiment) -> None:
    """A checkpoint may hold a params.json of its own."""
    folder = experiment.trial("a_t0", [row(1, loss=1.0)])
    (folder / "checkpoint_000001").mkdir()
    (folder / "checkpoint_000001" / "params.json").write_text("{}", encoding="utf-8")
    assert len(load_sweep(experiment.path).trials) == 1


# -------------------------------------------------------- states of all versions


def write_state(experiment: RayExperiment, content: Any) -> None:
    """Write a state file of any shape."""
    path = experiment.path / "experiment_state-2020-01-01_00-00-00.json"
    path.write_text(json.dumps(content), encoding="utf-8")


@pytest.mark.parametrize(
    "content",
    [
        {"checkpoints": [known(status="ERROR")]},
        {"checkpoints": [json.dumps(known(status="ERROR"))]},
        {"trial_data": [[json.dumps(known(status="ERROR")), "{}"]]},
        {"trial_data": [[json.dumps(known(status="ERROR")), "no JSON"]]},
    ],
    ids=["objects", "texts", "pairs", "half of a pair"],
)
def test_states_of_all_versions_say_the_status(
    experiment: RayExperiment, content: Any
) -> None:
    """Three shapes since 2018, and a pair of which one half is broken."""
    experiment.trial("a_t0", [row(1, loss=1.0)])
    write_state(experiment, content)
    assert load_sweep(experiment.path).trials[0].reason == "error"


@pytest.mark.parametrize("content", [[], {"checkpoints": 3}, {"trial_data": [[1], {}]}])
def test_a_state_of_an_unknown_shape_costs_the_statuses_only(
    experiment: RayExperiment, content: Any
) -> None:
    """The rows are read all the same."""
    experiment.trial("a_t0", [row(1, loss=1.0)])
    write_state(experiment, content)
    assert load_sweep(experiment.path).trials[0].reason == UNKNOWN


def test_the_newest_whole_state_counts(experiment: RayExperiment) -> None:
    """A torn newer one is named, and the one before it is taken."""
    experiment.trial("a_t0", [row(1, loss=1.0)])
    experiment.state(known(status="ERROR"), session="2026-01-01_00-00-00")
    torn = experiment.state(known(), session="2026-01-02_00-00-00")
    torn.write_text('{"trial_data": [', encoding="utf-8")
    sweep = load_sweep(experiment.path)
    assert sweep.trials[0].reason == "error"
    assert sweep.problems[0].file == str(torn)


def test_a_failed_trial_that_was_started_anew_is_one_trial(
    experiment: RayExperiment,
) -> None:
    """The new one has another id and the same tag; the first is named as left out."""
    for name in ("t0", "t1", "t2"):
        experiment.trial(f"a_{name}", [row(1, loss=1.0)])
    kept = known("t0", experiment_tag="0_lr=1")
    experiment.state(kept, known("t1", "ERROR", experiment_tag="1_lr=2"))
    again = known("t2", experiment_tag="1_lr=2")
    experiment.state(kept, again, session="2026-01-02_00-00-00")
    sweep = load_sweep(experiment.path)
    assert [trial.id for trial in sweep.trials] == ["t0", "t2"]
    assert [p.what for p in sweep.problems] == [
        "left out: it failed, and was started anew as another trial"
    ]


def test_another_sweep_in_the_same_place_is_read_too(experiment: RayExperiment) -> None:
    """No trial of the older state is in the newer one: none replaced another."""
    for name in ("t1", "t2"):
        experiment.trial(f"a_{name}", [row(1, loss=1.0)])
    experiment.state(known("t1", "ERROR", experiment_tag="1_lr=2"))
    newer = known("t2", experiment_tag="1_lr=2")
    experiment.state(newer, session="2026-01-02_00-00-00")
    assert len(load_sweep(experiment.path).trials) == 2


def test_a_windows_path_in_the_state_finds_the_directory(
    experiment: RayExperiment,
) -> None:
    """A sweep of a Windows machine, read on another one."""
    experiment.trial("some_name", [row(1, loss=1.0)])
    experiment.state(known("t9", relative_logdir=r"C:\ray_results\run\some_name"))
    sweep = load_sweep(experiment.path)
    assert [(t.id, t.steps_run) for t in sweep.trials] == [("t9", 1)]


def test_a_trial_without_files_is_known_by_its_last_result(
    experiment: RayExperiment,
) -> None:
    """The state keeps the last row; that it is all there is, is said."""
    experiment.state(known(last_result=row(7, loss=0.25)))
    sweep = load_sweep(experiment.path)
    assert sweep.curves.of("t0")["loss"].last == 0.25
    assert sweep.trials[0].steps_run == 7
    assert "only its last result is known" in sweep.problems[0].what


class Bomb:
    """Leaves a mark when it is unpickled."""

    def __init__(self, mark: str) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Any, ...]:
        return open, (self.mark, "w")


def test_nothing_pickled_is_ever_loaded(experiment: RayExperiment) -> None:
    """Neither the pickles beside the JSON files nor those inside them."""
    mark = experiment.path / "loaded"
    bomb = pickle.dumps(Bomb(str(mark)))
    folder = experiment.trial("a_t0", [row(1, loss=1.0)])
    for name in ("params.pkl", "error.pkl"):
        (folder / name).write_bytes(bomb)
    (experiment.path / "tuner.pkl").write_bytes(bomb)
    hidden = {"_type": "CLOUDPICKLE_FALLBACK", "value": bomb.hex()}
    experiment.state(
        known(status="ERROR", last_result={"loss": hidden}), _stopper=hidden
    )
    load_sweep(experiment.path)
    assert not mark.exists()
