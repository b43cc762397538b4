"""The README's examples run as they stand, from an empty folder."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.integration.examples_in_text import ROOT, blocks, run_python

BLOCKS = [b.text for b in blocks(ROOT / "README.md") if b.language == "python"]


def test_there_is_an_example_for_each_engine() -> None:
    """A newcomer finds Ray first, then Optuna."""
    assert ["ray" in block for block in BLOCKS] == [True, False, False]
    assert ["optuna" in block for block in BLOCKS] == [False, True, False]


@pytest.mark.ray
def test_the_ray_example_tells_sick_from_healthy(tmp_path: Path) -> None:
    """The divergent trial gets its reason, the good one none."""
    printed = run_python(BLOCKS[0], tmp_path)

    fates = dict(re.findall(r"\{'lr': ([\d.]+)\} (\S+)", printed))
    assert fates["3.0"] == "divergence"
    assert fates["0.01"] == "healthy"


def test_the_optuna_example_gives_every_pruned_trial_a_reason(tmp_path: Path) -> None:
    """No PRUNED row is left without one."""
    printed = run_python(BLOCKS[1], tmp_path)

    pruned = [line for line in printed.splitlines() if "PRUNED" in line]
    assert pruned
    assert not [line for line in pruned if line.split()[-1] in ("NaN", "None")]


def test_the_loop_without_an_engine_says_what_happened(tmp_path: Path) -> None:
    """A learning rate that is far too high ends in a sentence to act on."""
    assert "Lower the learning rate" in run_python(BLOCKS[2], tmp_path)
