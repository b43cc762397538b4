"""Sweeps on storages of other kinds, and on one that refuses the record."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from pyarrow import fs

from tests.integration.ray.support import reason
from tune_guard import load_sweep
from tune_guard.record import RECORD_FILE

DRAFT = f".{RECORD_FILE}.tmp"


@pytest.fixture(scope="module")
def train() -> Any:
    """Return a function that meets a NaN at step 2."""
    from ray import tune

    def train(config: dict[str, Any]) -> None:
        for step in range(1, 5):
            tune.report({"loss": math.nan if step == 2 else 1 / step})

    return train


def test_the_record_is_written_through_fsspec(
    sweep: Any, train: Any, tmp_path: Path
) -> None:
    """As Ray is used with buckets: a pyarrow wrapper around a file system."""
    import fsspec

    wrapped = fs.PyFileSystem(fs.FSSpecHandler(fsspec.filesystem("file")))
    (result,) = sweep(
        train, ["nan"], storage_path=str(tmp_path), storage_filesystem=wrapped
    )
    assert reason(result) == ("guard", "non_finite")


def test_a_storage_that_refuses_the_record_loses_nothing(
    sweep: Any,
    train: Any,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is asked again, then left to Ray's own copying; the cut is the same."""
    from ray import tune

    monkeypatch.chdir(tmp_path)

    def obstructed(config: dict[str, Any]) -> None:
        # A directory lies where the draft of the record would be written.
        name = Path(tune.get_context().get_trial_dir()).name
        (Path(config["root"]) / "sweep" / name / DRAFT).mkdir()
        train(config)

    space = {"fate": "nan", "root": str(tmp_path)}
    (result,) = sweep(obstructed, [], space=space, storage_path=str(tmp_path))
    assert result.metrics["training_iteration"] == 2
    assert len([m for m in caplog.messages if "The storage refused" in m]) == 1
    assert reason(result) == ("guard", "non_finite")
    (trial,) = load_sweep(str(tmp_path / "sweep")).trials
    assert trial.reason == "non_finite"
