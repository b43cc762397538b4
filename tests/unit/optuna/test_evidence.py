"""Evidence of Optuna's trials: in the artifact store, in a folder, or not at all."""

from __future__ import annotations

import math
import pickle
import zipfile
from pathlib import Path
from typing import Any, BinaryIO

import optuna
import pytest
from optuna.artifacts import FileSystemArtifactStore, get_all_artifact_meta

from tune_guard import Evidence, Policy, TrialGuard
from tune_guard.evidence.again import judge_again
from tune_guard.evidence.artifacts import PREFIX
from tune_guard.evidence.reader import find_bundle
from tune_guard.optuna import GuardPruner
from tune_guard.record import DETAIL, REASON

pytestmark = pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")


@pytest.fixture
def store(tmp_path: Path) -> FileSystemArtifactStore:
    """An artifact store in a folder."""
    (tmp_path / "artifacts").mkdir()
    return FileSystemArtifactStore(str(tmp_path / "artifacts"))


def run(pruner: GuardPruner, objective: Any = None) -> optuna.trial.FrozenTrial:
    """Run one trial that meets a NaN at step 2, and return it."""

    def reports(trial: optuna.Trial) -> float:
        for step in range(5):
            trial.report(math.nan if step == 2 else 1 / (step + 1), step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return 0.0

    study = optuna.create_study(pruner=pruner)
    study.optimize(objective or reports, n_trials=1)
    return study.trials[0]


def test_a_bundle_goes_to_the_artifact_store(
    store: FileSystemArtifactStore, tmp_path: Path
) -> None:
    """As a zip file of the trial, which the dashboard offers, named by the record."""
    study = optuna.create_study(
        pruner=GuardPruner(evidence=Evidence(artifact_store=store))
    )
    trial = study.ask()
    trial.report(1.0, 0)
    trial.report(math.nan, 1)
    assert trial.should_prune()
    (meta,) = get_all_artifact_meta(trial)
    assert trial.user_attrs[DETAIL]["evidence"] == PREFIX + meta.artifact_id
    assert meta.filename.endswith("-non_finite.zip")
    assert meta.mimetype == "application/zip"
    with store.open_reader(meta.artifact_id) as reader:
        (tmp_path / "downloaded.zip").write_bytes(reader.read())
    bundle = find_bundle(str(tmp_path / "downloaded.zip"))
    assert bundle.problems() == []
    again = judge_again(bundle)
    assert (again.same, again.verdict.step) == (True, 1)


def test_a_folder_takes_it(tmp_path: Path) -> None:
    """Where no store is given."""
    trial = run(GuardPruner(evidence=Evidence(folder=tmp_path / "evidence")))
    bundle = find_bundle(trial.user_attrs[DETAIL]["evidence"])
    assert Path(bundle.name).parent == tmp_path / "evidence"
    assert Path(bundle.name).name.startswith("trial_0-")
    assert judge_again(bundle).same


@pytest.mark.parametrize("evidence", [None, Evidence()], ids=["none", "no place"])
def test_without_a_place_nothing_is_kept(
    evidence: Evidence | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The record names none, and the working directory stays clean."""
    monkeypatch.chdir(tmp_path)
    trial = run(GuardPruner(evidence=evidence))
    assert trial.user_attrs[REASON] == "non_finite"
    assert "evidence" not in trial.user_attrs[DETAIL]
    assert list(tmp_path.iterdir()) == []


class Refusing:
    """An artifact store that takes nothing."""

    def write(self, artifact_id: str, content_body: BinaryIO) -> None:
        """Refuse."""
        msg = "403 Forbidden"
        raise PermissionError(msg)

    def open_reader(self, artifact_id: str) -> BinaryIO:
        """Have nothing."""
        raise NotImplementedError

    def remove(self, artifact_id: str) -> None:
        """Have nothing."""


def test_a_store_that_refuses_costs_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The bundle stays below the working directory, the cut is the same."""
    monkeypatch.chdir(tmp_path)
    trial = run(GuardPruner(evidence=Evidence(artifact_store=Refusing())))
    assert (trial.state.name, trial.user_attrs[REASON]) == ("PRUNED", "non_finite")
    bundle = find_bundle(trial.user_attrs[DETAIL]["evidence"])
    assert Path(bundle.name).parent == tmp_path / ".tune_guard" / "evidence"
    assert judge_again(bundle).same
    said = [m for m in caplog.messages if "The artifact store refused" in m]
    assert len(said) == 1
    assert "403 Forbidden" in said[0]


def test_a_guard_in_the_loop_keeps_more(
    store: FileSystemArtifactStore, tmp_path: Path
) -> None:
    """It takes the pruner's place, and the trial has one bundle."""
    pruner = GuardPruner(
        policy=Policy.default("loss", "min"), evidence=Evidence(artifact_store=store)
    )

    def objective(trial: optuna.Trial) -> float:
        guard = TrialGuard(Policy.default("loss", "min"), trial=trial)
        for step in range(5):
            guard.step(math.nan if step == 3 else 1.0, batch=[step])
            guard.report({"loss": 1 / (step + 1)})
        return 0.0

    trial = run(pruner, objective)
    assert trial.state.name == "PRUNED"
    (file,) = (tmp_path / "artifacts").iterdir()
    with zipfile.ZipFile(file) as archive:
        assert "batches.json" in archive.namelist()
    assert trial.user_attrs[DETAIL]["evidence"] == PREFIX + file.name


def test_a_guard_that_is_pickled_keeps_its_evidence(tmp_path: Path) -> None:
    """A study pickles its pruner for other processes."""
    pruner = GuardPruner(evidence=Evidence(folder=tmp_path))
    trial = run(pickle.loads(pickle.dumps(pruner)))  # noqa: S301 - our own
    assert trial.user_attrs[DETAIL]["evidence"]
