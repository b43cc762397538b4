"""The tables of a sweep, and sweeps put together."""

from __future__ import annotations

import math
from array import array

import pytest

from tune_guard import ConfigError, SourceError
from tune_guard.record import Outcome, StopRecord
from tune_guard.sweeps import Curve, Curves, Problem, Sweep, Trial, load_sweep
from tune_guard.sweeps.merge import merge


def make(name: str = "one", metric: str = "loss", source: str = "here") -> Sweep:
    """Return a sweep of one trial with two readings of two metrics."""
    steps = array("q", [1, 2])
    loss = Curve(steps, array("d", [0.5, math.nan]), array("d", [1.0, 2.0]))
    acc = Curve(steps, array("d", [0.1, 0.2]))
    trial = Trial(
        id="a", params={"lr": 0.1}, outcome=Outcome.COMPLETED, finals={"loss": 0.5}
    )
    return Sweep(
        source=source,
        engine="ray",
        name=name,
        trials=(trial,),
        curves=Curves({"a": {"loss": loss, "acc": acc}}),
        records={"a": StopRecord(reason="")},
        modes={metric: "min"},
        metric=metric,
        problems=(Problem(file="f", what="torn", line=3),),
    )


def test_the_trials_are_a_frame() -> None:
    """One row a trial; hyperparameters are columns."""
    frame = make().to_dataframe()
    assert list(frame["params/lr"]) == [0.1]
    assert frame.loc[0, "outcome"] == "completed"


def test_the_curves_are_a_frame() -> None:
    """One row a reading, in plain columns; a time that is not known is NaN."""
    frame = make().to_dataframe("curves")
    assert list(frame.columns) == ["trial", "step", "metric", "value", "time_s"]
    assert list(frame["metric"]) == ["loss", "loss", "acc", "acc"]
    assert list(frame["step"]) == [1, 2, 1, 2]
    assert list(frame["value"].isna()) == [False, True, False, False]
    assert list(frame["time_s"].isna()) == [False, False, True, True]


def test_the_frame_of_curves_is_that_of_the_rows() -> None:
    """Iterating gives the same table, row by row."""
    sweep = make()
    rows = [tuple(reading) for reading in sweep.curves]
    frame = sweep.to_dataframe("curves")
    assert len(sweep.curves) == len(frame) == len(rows)
    assert [row[:3] for row in rows] == list(
        frame[["trial", "step", "metric"]].itertuples(index=False, name=None)
    )


def test_the_records_are_a_frame() -> None:
    """One row a record, by trial."""
    assert list(make().to_dataframe("records")["trial_id"]) == ["a"]


def test_empty_tables_are_frames_too() -> None:
    """A sweep without trials has no rows and no error."""
    sweep = Sweep(source="x", engine="ray")
    assert len(sweep.to_dataframe("curves")) == 0
    assert len(sweep.to_dataframe()) == 0


def test_another_table_is_refused() -> None:
    """There are three."""
    with pytest.raises(ConfigError, match="'trials', 'curves' or 'records'"):
        make().to_dataframe("rows")  # type: ignore[arg-type]


def test_sweeps_that_agree_keep_their_objective() -> None:
    """Ids carry the sweep's name, in all three tables."""
    both = merge([make("one"), make("two")], "there")
    assert [trial.id for trial in both.trials] == ["one/a", "two/a"]
    assert set(both.curves.by_trial) == set(both.records) == {"one/a", "two/a"}
    assert (both.metric, both.mode, len(both.problems)) == ("loss", "min", 2)


def test_sweeps_at_odds_have_no_objective_together() -> None:
    """Their directions are still known by metric."""
    both = merge([make("one"), make("two", metric="acc")], "there")
    assert (both.metric, both.modes) == ("", {"loss": "min", "acc": "min"})


def test_one_sweep_is_itself() -> None:
    """Nothing is renamed."""
    assert merge([make()], "x").trials[0].id == "a"


def test_a_problem_says_its_place() -> None:
    """As compilers do, so that editors can jump there."""
    assert str(Problem(file="a.json", what="torn", line=3)) == "a.json:3: torn"
    assert str(Problem(file="a.json", what="gone")) == "a.json: gone"


def test_what_is_no_source_is_refused() -> None:
    """The error names what is one."""
    with pytest.raises(SourceError, match="int is no kind of sweep"):
        load_sweep(3)  # type: ignore[arg-type]
