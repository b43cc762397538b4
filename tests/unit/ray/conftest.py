from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from pyarrow import fs

from tests.unit.ray.fake_trials import FakeTrial, Metadata


@pytest.fixture
def trial(tmp_path: Path) -> FakeTrial:
    """Return a running trial with local storage."""
    (tmp_path / "staging").mkdir()
    storage = SimpleNamespace(
        storage_filesystem=fs.LocalFileSystem(), experiment_dir_name="sweep"
    )
    return FakeTrial(
        trial_id="t",
        status="RUNNING",
        storage=storage,
        path=str(tmp_path / "t"),
        local_path=str(tmp_path / "staging"),
        run_metadata=Metadata(),
        stopping_criterion={},
        evaluated_params={"lr": 0.1},
        error_file=str(tmp_path / "error.txt"),
        pickled_error_file=str(tmp_path / "error.pkl"),
    )
