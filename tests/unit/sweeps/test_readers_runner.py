"""``python -m tests.readers``: one line a source, and none skipped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.readers import main
from tests.unit.sweeps.ray_files import RayExperiment, row

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_every_directory_and_file_gets_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What was read with its counts, and what was not with the reason."""
    experiment = RayExperiment(tmp_path / "run")
    experiment.trial("a_t0", [row(1, loss=0.5), row(2, loss="null"), '{"torn'])
    (tmp_path / "notes.txt").write_text("text", encoding="utf-8")
    assert main(str(tmp_path)) == 0
    lines = capsys.readouterr().out.splitlines()
    said = "read: 1 sweep, 1 trial, 1 curve, 2 readings, 1 repaired, 1 gap"
    assert [line.split("  ")[0] for line in lines] == [
        f"{tmp_path}/",
        "notes.txt",
        "run/",
        "run/a_t0/",
        "0 crashes",
    ]
    assert all(said in lines[i] for i in (0, 2, 3))
    assert "not read" in lines[1]
