"""Evidence of trials in a real sweep: kept before the cut, wherever that is decided."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from pyarrow import fs

from tests.integration.ray.support import POLICY, by_fate, reason, stored
from tune_guard.cli import main
from tune_guard.evidence.again import judge_again
from tune_guard.evidence.reader import StoredBundle, find_bundle, find_bundles
from tune_guard.evidence.settings import FOLDER

FATES = ["driver", "worker", "lost", "healthy"]


@pytest.fixture(scope="module")
def train() -> Any:
    """Return a function: cut by the driver, by its guard, or lost to the machine."""
    from ray import tune

    def train(config: dict[str, Any]) -> None:
        import torch

        from tests.integration.ray.support import POLICY
        from tune_guard import TrialGuard

        fate = config["fate"]
        model = torch.nn.Linear(3, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        guard = TrialGuard(POLICY) if fate in ("worker", "lost") else None
        for step in range(1, 5):
            if fate == "driver":
                tune.report({"loss": math.nan if step == 3 else 1 / step})
            elif guard is None:
                tune.report({"loss": 1 / step})
            else:
                bad = fate == "worker" and step == 3
                loss = (model(torch.ones(2, 3)) * (math.nan if bad else 1.0)).mean()
                loss.backward()
                guard.step(loss, model, optimizer=optimizer, batch=[step])
                guard.report({"loss": 1 / step})
                marker = Path(config.get("marks", "")) / "lost"
                if fate == "lost" and step == 2 and not marker.exists():
                    marker.touch()
                    guard.check_epoch(math.nan)
                    msg = "lost"
                    raise RuntimeError(msg)

    return train


@pytest.fixture(scope="module")
def results(
    sweep: Any, train: Any, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Any]:
    """Run the sweep once, and return the results by fate."""
    from ray import tune

    marks = str(tmp_path_factory.mktemp("marks"))
    space = {"fate": tune.grid_search(FATES), "marks": marks}
    failures = tune.FailureConfig(max_failures=1)
    return by_fate(sweep(train, [], space=space, failure_config=failures))


def bundle_of(result: Any) -> StoredBundle:
    """Return the newest bundle of a trial."""
    return find_bundle(result.path)


@pytest.mark.parametrize("fate", ["driver", "worker"])
def test_a_cut_trial_has_verified_evidence(results: dict[str, Any], fate: str) -> None:
    """In its directory, named by its record, leading to the same verdict again."""
    assert reason(results[fate]) == ("guard", "non_finite")
    named = stored(results[fate])["tune_guard/detail"]["evidence"]
    bundle = bundle_of(results[fate])
    assert bundle.name == str(Path(results[fate].path) / named)
    assert bundle.problems() == []
    again = judge_again(bundle)
    assert again.same
    assert again.record is not None
    assert again.record.step == stored(results[fate])["tune_guard/step"]


@pytest.mark.parametrize("fate", ["driver", "worker"])
def test_the_row_names_the_evidence(results: dict[str, Any], fate: str) -> None:
    """The last row's detail has it, too: it was written before the row was logged."""
    detail = json.loads(results[fate].metrics["tune_guard/detail"])
    assert detail["evidence"] == stored(results[fate])["tune_guard/detail"]["evidence"]
    lines = (Path(results[fate].path) / "result.json").read_text().splitlines()
    assert json.loads(json.loads(lines[-1])["tune_guard/detail"]) == detail


def test_the_driver_keeps_what_it_was_reported(results: dict[str, Any]) -> None:
    """Three observations; nothing that only the worker knows."""
    bundle = bundle_of(results["driver"])
    assert [o.step for o in bundle.observations()] == [1, 2, 3]
    files = [f["file"] for f in bundle.manifest["files"]]
    assert files == [
        "record.json",
        "observations.jsonl",
        "rules.json",
        "environment.json",
    ]


def test_the_worker_keeps_what_only_it_knows(results: dict[str, Any]) -> None:
    """Modules, generators, optimizer, ids of the last two batches; one bundle."""
    (bundle,) = find_bundles(results["worker"].path)
    files = {f["file"] for f in bundle.manifest["files"]}
    assert {"modules.json", "rng.json", "training.pt", "batches.json"} <= files
    assert [b["ids"] for b in bundle.json("batches.json")] == [[2], [3]]
    assert bundle.rules()["decided_by"] == "steps"


def test_an_attempt_that_was_lost_keeps_its_own(results: dict[str, Any]) -> None:
    """The retry completes; the first attempt's evidence stays."""
    assert reason(results["lost"])[0] == "completed"
    (bundle,) = find_bundles(results["lost"].path)
    record = bundle.record()
    assert record is not None
    assert record.reason == "non_finite"


def test_a_healthy_trial_has_none(results: dict[str, Any]) -> None:
    """Nothing is written for it."""
    assert not (Path(results["healthy"].path) / FOLDER).exists()


def test_the_commands_take_the_trials_directory(
    results: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    """``tune-guard evidence`` and ``explain``, as the documentation shows them."""
    assert main(["evidence", results["worker"].path]) == 0
    assert main(["explain", results["worker"].path]) == 0
    assert "the same verdict at the same step" in capsys.readouterr().out


def test_a_bucket_gets_it_too(sweep: Any, train: Any, tmp_path: Path) -> None:
    """Through fsspec and pyarrow, from the driver and from the worker."""
    import fsspec

    wrapped = fs.PyFileSystem(fs.FSSpecHandler(fsspec.filesystem("file")))
    grid = sweep(
        train,
        ["driver", "worker"],
        storage_path=str(tmp_path),
        storage_filesystem=wrapped,
    )
    for result in grid:
        assert judge_again(bundle_of(result)).same


def test_a_storage_that_refuses_costs_the_evidence_only(
    sweep: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A file lies where its folder should be: the local directory takes it."""
    from ray import tune

    def obstructed(config: dict[str, Any]) -> None:
        name = Path(tune.get_context().get_trial_dir()).name
        (Path(config["root"]) / "sweep" / name / FOLDER).touch()
        for step in range(1, 4):
            tune.report({"loss": math.nan if step == 3 else 1 / step})

    space = {"fate": "nan", "root": str(tmp_path)}
    (result,) = sweep(obstructed, [], space=space, storage_path=str(tmp_path))
    assert reason(result) == ("guard", "non_finite")
    assert stored(result)["tune_guard/step"] == 3


def test_no_evidence_is_kept_when_none_is_wanted(
    sweep: Any, train: Any, tmp_path: Path
) -> None:
    """The record names none."""
    from tune_guard.ray import GuardCallback

    callbacks = [GuardCallback(POLICY, evidence=None)]
    (result,) = sweep(train, ["driver"], callbacks=callbacks)
    assert "evidence" not in stored(result)["tune_guard/detail"]
    assert not (Path(result.path) / FOLDER).exists()
