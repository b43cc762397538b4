"""Fixtures of the tests of sweeps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.unit.sweeps.ray_files import RayExperiment

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def experiment(tmp_path: Path) -> RayExperiment:
    """An empty experiment directory."""
    return RayExperiment(tmp_path / "experiment")
