"""A retry keeps away from the node whose machine broke the trial."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
"""The sweep runs in a process of its own, on a cluster of two nodes of its own."""


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return on which nodes the attempts of each trial ran."""
    folder = tmp_path_factory.mktemp("nodes")
    module = "tests.integration.ray.nodes_process"
    command = [sys.executable, "-m", module, str(folder)]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = json.loads((folder / "nodes.json").read_text())
    return found


def test_a_fault_of_the_machine_is_retried_elsewhere(nodes: dict[str, Any]) -> None:
    """Two attempts, on two nodes."""
    first, second = nodes["fault"]
    assert first != second


def test_a_fault_of_the_trial_is_retried_anywhere(nodes: dict[str, Any]) -> None:
    """An exception says nothing about the node: its placement is left alone."""
    assert len(nodes["raises"]) == 2
    assert nodes["selectors"]["raises"] == []
    assert nodes["selectors"]["fault"] != []
