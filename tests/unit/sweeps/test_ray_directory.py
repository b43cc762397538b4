"""Where a Ray sweep lies: a directory, one above several, one trial's, a URL."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.unit.sweeps.ray_files import (
    RayExperiment,
    known,
    row,
)
from tune_guard import SourceError
from tune_guard.record import Outcome
from tune_guard.sweeps import load_sweep, load_sweeps

if TYPE_CHECKING:
    from pathlib import Path


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
