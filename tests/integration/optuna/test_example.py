"""The example does what it says."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.mark.slow
def test_the_example_cuts_sick_trials_and_stores_why(tmp_path: Path) -> None:
    """A real training breaks by itself; reasons of both kinds are counted."""
    done = subprocess.run(
        [sys.executable, "-m", "examples.optuna_study"],
        capture_output=True,
        check=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        text=True,
    )
    assert "non_finite" in done.stdout
    assert "pruner:MedianPruner" in done.stdout
    assert (tmp_path / "results" / "optuna_study.db").exists()
