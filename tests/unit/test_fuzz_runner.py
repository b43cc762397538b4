"""The runner of the fuzz targets says what is missing, and what it found."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.fuzz import __main__ as runner


def run(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    """Run the command."""
    monkeypatch.setattr(sys, "argv", ["fuzz", *map(str, arguments)])
    return runner.main()


def test_a_missing_atheris_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With what installs it; 2 is no crash."""
    monkeypatch.setattr(runner, "find_spec", lambda _: None)
    assert run(monkeypatch, "--target", "record") == 2
    assert "pip install atheris" in capsys.readouterr().err


@pytest.mark.skipif(find_spec("atheris") is None, reason="atheris has no wheel here")
def test_a_sound_target_has_a_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Executions, coverage before and after, no crash."""
    options = ("--target", "record", "--seconds", 1, "--crashes", tmp_path)
    assert run(monkeypatch, *options) == 0
    name, runs, before, after, crashes = capsys.readouterr().out.split()[-5:]
    assert (name, crashes) == ("record", "0")
    assert int(runs) > 0
    assert 0 < int(before) <= int(after)
    assert list(tmp_path.iterdir()) == []


def test_an_input_runs_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """One that was saved: what it raises comes out."""
    (tmp_path / "input").write_bytes(b"{}")
    options = ("--target", "record", "--again", tmp_path / "input")
    assert run(monkeypatch, *options) == 0
