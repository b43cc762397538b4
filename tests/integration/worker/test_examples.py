"""The worker's examples run as they stand, and show what they promise."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("example", "expected"),
    [
        (
            "plain_loop",
            [
                "lr=0.05: healthy",
                "lr=1e9: non_finite at step",
                "divides by zero: non_finite at step 0",
                "The output of `2` went first.",
            ],
        ),
        ("lightning_callback", ["lr=0.05: healthy", "lr=1e+20: non_finite at step"]),
        (
            "transformers_callback",
            [
                "sound: healthy",
                "broken: non_finite at step 0",
                "The weights of `transformer.h.1.attn.c_proj` are bad.",
            ],
        ),
    ],
)
def test_an_example_runs(example: str, expected: list[str]) -> None:
    """In a process of its own, from the repository's root."""
    done = subprocess.run(
        [sys.executable, "-m", f"examples.{example}"],
        capture_output=True,
        check=True,
        cwd=ROOT,
        text=True,
    )
    for line in expected:
        assert line in done.stdout
