"""Ray experiment directories: trials, states of all versions, and their ends."""

from __future__ import annotations

import json
import pickle
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.sweeps.ray_files import RayExperiment, row, stamped
from tune_guard import SourceError
from tune_guard.record import Outcome, StopRecord
from tune_guard.sweeps import INTERRUPTED, UNKNOWN, load_sweep, load_sweeps
from tune_guard.verdict import Blame

if TYPE_CHECKING:
    from pathlib import Path


def known(
    trial_id: str = "t0", status: str = "TERMINATED", **more: Any
) -> dict[str, Any]:
    """Return what the state says about a trial."""
    return {
        "trial_id": trial_id,
        "status": status,
        "relative_logdir": f"a_{trial_id}",
        **more,
    }


def ended(experiment: RayExperiment, *rows: dict[str, Any], **fields: Any) -> Any:
    """Load one trial of these rows and this state."""
    experiment.trial("a_t0", rows)
    experiment.state(known(**fields))
    return load_sweep(experiment.path).trials[0]


def record_text(**fields: Any) -> str:
    """Return the text of a trial's tune_guard.json."""
    return json.dumps(StopRecord(**fields).metadata())


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


# ------------------------------------------------------------ where a sweep lies


def test_a_directory_above_several_gives_each_of_them(tmp_path: Path) -> None:
    """Their trials are told apart by the experiment's name."""
    for name in ("one", "two"):
        RayExperiment(tmp_path / name).trial("a_t0", [row(1, loss=1.0)])
    assert [sweep.name for sweep in load_sweeps(tmp_path)] == ["one", "two"]
    merged = load_sweep(tmp_path)
    assert [trial.id for trial in merged.trials] == ["one/t0", "two/t0"]
    assert merged.curves.of("two/t0")["loss"].last == 1.0


def test_the_directory_of_one_trial_is_enough(experiment: RayExperiment) -> None:
    """The state beside it says how that trial ended; the others are left alone."""
    folder = experiment.trial("a_t0", [row(1, loss=1.0)])
    experiment.trial("a_t1", [row(1, loss=1.0)])
    experiment.state(known("t0", "ERROR"), known("t1"))
    sweep = load_sweep(folder)
    assert [(t.id, t.reason) for t in sweep.trials] == [("t0", "error")]


def test_a_sweep_behind_a_url_is_read(experiment: RayExperiment) -> None:
    """Any file system of fsspec will do."""
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    experiment.trial("a_t0", [row(1, loss=1.0), row(2, loss="null")])
    experiment.state(known())
    memory.put(str(experiment.path), "/bucket/run", recursive=True)
    try:
        sweep = load_sweep("memory://bucket/run")
    finally:
        memory.rm("/bucket", recursive=True)
    assert sweep.trials[0].outcome is Outcome.COMPLETED
    assert sweep.problems[0].file == "memory:///bucket/run/a_t0/result.json"


@pytest.mark.parametrize("source", ["no/such/directory", "nothing://x/y"])
def test_what_cannot_be_opened_is_said(source: str) -> None:
    """A missing path and an unknown protocol are errors of the source."""
    with pytest.raises(SourceError, match=source):
        load_sweep(source)


def test_a_directory_without_trials_is_said(tmp_path: Path) -> None:
    """The error names what was looked for."""
    (tmp_path / "notes.txt").write_text("", encoding="utf-8")
    with pytest.raises(SourceError, match=r"holds no sweep: no result\.json"):
        load_sweep(tmp_path)


def test_loading_says_how_far_it_is(experiment: RayExperiment) -> None:
    """Progress is called once a trial, with the total."""
    for name in ("a_t0", "a_t1"):
        experiment.trial(name, [row(1, loss=1.0)])
    calls: list[tuple[int, int, str]] = []
    load_sweep(experiment.path, progress=lambda *said: calls.append(said))
    assert calls == [(1, 2, "trials read"), (2, 2, "trials read")]


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


# ------------------------------------------------------------------ how it ended


def test_a_terminated_trial_completed(experiment: RayExperiment) -> None:
    """There is no reason to give."""
    trial = ended(experiment, row(1, loss=1.0))
    assert (trial.outcome, trial.reason, trial.state) == (
        Outcome.COMPLETED,
        "",
        "TERMINATED",
    )


@pytest.mark.parametrize("status", ["RUNNING", "PENDING", "PAUSED"])
def test_a_trial_without_an_end_was_interrupted(
    experiment: RayExperiment, status: str
) -> None:
    """Or it still runs: from files the two look alike."""
    trial = ended(experiment, row(1, loss=1.0), status=status)
    assert (trial.outcome, trial.reason) == (Outcome.INTERRUPTED, INTERRUPTED)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "Traceback ...\n  raise\nFloatingPointError: boom\n",
            "error:FloatingPointError",
        ),
        (
            "x\nray.exceptions.ActorDiedError: The actor\nClass: x\n",
            "error:ActorDiedError",
        ),
        ("something else\n", "error"),
        ("", "error"),
    ],
)
def test_an_error_is_named_by_its_kind(
    experiment: RayExperiment, text: str, reason: str
) -> None:
    """The last exception of error.txt is what ended the trial."""
    experiment.trial("a_t0", [row(1, loss=1.0)], error=text)
    experiment.state(known(status="ERROR"))
    trial = load_sweep(experiment.path).trials[0]
    assert (trial.outcome, trial.reason) == (Outcome.ERROR, reason)


def test_an_error_that_a_retry_got_over_is_none(experiment: RayExperiment) -> None:
    """error.txt stays when the next attempt completes."""
    experiment.trial("a_t0", [row(1, loss=1.0)], error="ValueError: x")
    experiment.state(known())
    assert load_sweep(experiment.path).trials[0].reason == ""


def test_a_trial_that_met_the_stop_criterion_is_healthy(
    experiment: RayExperiment,
) -> None:
    """``stop={"training_iteration": 2}`` is also the sweep's budget."""
    experiment.trial("a_t0", [row(1, loss=1.0), row(2, loss=1.0) | {"done": True}])
    experiment.state(known(stopping_criterion={"training_iteration": 2}))
    sweep = load_sweep(experiment.path)
    assert sweep.trials[0].outcome is Outcome.CRITERION
    assert sweep.budget_steps == 2


def test_a_trial_cut_early_by_something_unrecorded_is_unknown(
    experiment: RayExperiment,
) -> None:
    """Its last row says done and another trial ran longer; Ray says TERMINATED."""
    experiment.trial("a_t0", [row(1, loss=1.0) | {"done": True}])
    experiment.trial("a_t1", [row(1, loss=1.0), row(2, loss=1.0) | {"done": True}])
    experiment.state(known("t0"), known("t1"))
    reasons = {t.id: t.reason for t in load_sweep(experiment.path).trials}
    assert reasons == {"t0": UNKNOWN, "t1": ""}


def test_the_record_file_says_why(experiment: RayExperiment) -> None:
    """It is there before the state knows that the trial ended."""
    text = record_text(
        reason="slow_step",
        outcome=Outcome.GUARD,
        step=4,
        blame=Blame.INFRASTRUCTURE,
        objective="loss",
        mode="min",
    )
    experiment.trial("a_t0", [stamped(4, "slow_step", loss=1.0)], tune_guard=text)
    experiment.state(known(status="RUNNING"))
    sweep = load_sweep(experiment.path)
    trial = sweep.trials[0]
    assert (trial.outcome, trial.reason, trial.step, trial.blame) == (
        Outcome.GUARD,
        "slow_step",
        4,
        Blame.INFRASTRUCTURE,
    )
    assert (sweep.metric, sweep.mode) == ("loss", "min")
    assert sweep.records["t0"].reason == "slow_step"


def test_without_the_file_the_last_row_says_why(experiment: RayExperiment) -> None:
    """The guard stamps every row; the cut is in the last one."""
    trial = ended(experiment, stamped(1, loss=1.0), stamped(2, "plateau", loss=1.0))
    assert (trial.outcome, trial.reason, trial.step) == (Outcome.GUARD, "plateau", 2)


def test_without_rows_the_state_says_why(experiment: RayExperiment) -> None:
    """An error is recorded in the trial's last result."""
    stored = StopRecord(reason="error:OSError", outcome=Outcome.ERROR).metadata()
    trial = ended(experiment, status="ERROR", last_result=row(1, loss=1.0) | stored)
    assert trial.reason == "error:OSError"


def test_stamps_of_a_running_trial_are_no_end(experiment: RayExperiment) -> None:
    """A healthy stamp on the last row of a killed sweep is no completion."""
    trial = ended(experiment, stamped(1, loss=1.0), status="RUNNING")
    assert trial.outcome is Outcome.INTERRUPTED


def test_a_cut_that_was_run_again_is_out_of_date(experiment: RayExperiment) -> None:
    """After a restore without the callback the old record file is still there."""
    text = record_text(reason="plateau", outcome=Outcome.GUARD, step=2)
    experiment.trial(
        "a_t0", [stamped(1, loss=1.0), stamped(3, loss=1.0)], tune_guard=text
    )
    experiment.state(known())
    sweep = load_sweep(experiment.path)
    assert sweep.trials[0].reason == ""
    assert "run again" in sweep.problems[0].what


JUST_CUT = {"reason": "plateau", "outcome": Outcome.GUARD, "step": 4}
AT_8_S = "2023-11-14T22:13:28+00:00"  # when step 4 ended


@pytest.mark.parametrize("behind", ["rows", "state", "both", "no rows"])
def test_a_record_is_newer_than_rows_and_state(
    behind: str, experiment: RayExperiment
) -> None:
    """While a sweep runs both come later, of a step at which nothing was cut yet."""
    rows = [stamped(step, loss=1.0) for step in (1, 2)]
    whole = [*rows, stamped(3, loss=1.0), stamped(4, "plateau", loss=1.0)]
    written = {"state": whole, "no rows": None}.get(behind, rows)
    stored = StopRecord(**JUST_CUT, time=AT_8_S).metadata()
    text = json.dumps({**stored, "training_iteration": 4})
    experiment.trial("a_t0", written, tune_guard=text)
    last = {} if behind == "rows" else {"last_result": stamped(1, loss=1.0)}
    experiment.state(known(status="RUNNING", **last))
    sweep = load_sweep(experiment.path)
    trial = sweep.trials[0]
    assert (trial.reason, trial.steps_run) == ("plateau", 4)
    assert not any("run again" in problem.what for problem in sweep.problems)
    told = any("rows not written yet" in problem.what for problem in sweep.problems)
    assert told is (behind != "state")


def test_a_cut_that_was_run_again_from_earlier_is_out_of_date(
    experiment: RayExperiment,
) -> None:
    """The time of its last row tells: the step alone is below that of the cut."""
    stored = StopRecord(**JUST_CUT, time=AT_8_S).metadata()
    text = json.dumps({**stored, "training_iteration": 4})
    again = stamped(2, loss=1.0) | {"timestamp": 1_700_000_100}
    experiment.trial("a_t0", [stamped(1, loss=1.0), again], tune_guard=text)
    experiment.state(known())
    sweep = load_sweep(experiment.path)
    assert (sweep.trials[0].reason, sweep.trials[0].steps_run) == ("", 2)
    assert "run again" in sweep.problems[0].what


def test_a_state_that_is_newer_than_the_rows_counts(experiment: RayExperiment) -> None:
    """How far a trial ran, and the time that it took: two seconds a step."""
    trial = ended(experiment, row(1, loss=1.0), last_result=row(3, loss=0.5))
    assert (trial.steps_run, trial.time_s) == (3, 6.0)


def test_a_damaged_record_file_costs_itself_only(experiment: RayExperiment) -> None:
    """The row says the same."""
    experiment.trial("a_t0", [stamped(2, "plateau", loss=1.0)], tune_guard='{"tune')
    sweep = load_sweep(experiment.path)
    assert sweep.trials[0].reason == "plateau"
    assert sweep.problems[0].file.endswith("tune_guard.json")


def test_a_file_that_cannot_be_read_costs_itself_only(
    experiment: RayExperiment,
) -> None:
    """A link to nothing, say: the other trial is read."""
    folder = experiment.trial("a_t0")
    for name in ("result.json", "params.json"):
        (folder / name).symlink_to(folder / "gone")
    experiment.trial("b_t1", [row(1, loss=1.0)])
    sweep = load_sweep(experiment.path)
    assert [trial.steps_run for trial in sweep.trials] == [0, 1]
    assert "cannot be read" in sweep.problems[0].what


def test_a_record_that_the_storage_refused_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Below the working directory, by name and id, also when nothing else is left."""
    experiment = RayExperiment(tmp_path / "exp")
    experiment.trial("a_t0", [row(1, loss=0.5)])
    experiment.trial("a_t1", [{**row(1, loss=0.5), "trial_id": "t1"}])
    record = StopRecord(reason="stalled", outcome=Outcome.ERROR, step=1, trial="t0")
    lost = {**record.metadata(), "trial_id": "t2", "path": f"{tmp_path}/exp/a_t2"}
    foreign = {**lost, "trial_id": "t3", "path": "/another/exp/a_t3"}
    lines = [{**record.metadata(), "trial_id": "t0"}, lost, foreign, {"trial_id": 9}]
    kept = tmp_path / "work" / ".tune_guard" / "exp.tune_guard.jsonl"
    kept.parent.mkdir(parents=True)
    kept.write_text("".join(json.dumps(line) + "\n" for line in lines) + "torn")
    monkeypatch.chdir(tmp_path / "work")
    trials = load_sweep(str(experiment.path)).trials
    found = {trial.id: trial.reason for trial in trials}
    assert (found["t0"], found["t2"]) == ("stalled", "stalled")
    assert found["t1"] != "stalled"
    assert "t3" not in found
