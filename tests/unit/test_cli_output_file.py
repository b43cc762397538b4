"""Files that commands write: whole or not at all, and refused before long work."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from tune_guard.cli import main
from tune_guard.cli.output_file import check_place, write_whole
from tune_guard.exceptions import SourceError


def test_a_file_takes_the_place_of_the_one_before(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing unfinished stays beside it."""
    path = tmp_path / "page.html"
    path.write_text("old and longer")
    write_whole(path, "né")
    assert path.read_text(encoding="utf-8") == "né"
    assert [file.name for file in tmp_path.iterdir()] == ["page.html"]
    assert "page.html written" in capsys.readouterr().err


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    """``/dev/stdout`` is one: it must not become a file of the user's."""
    real, link = tmp_path / "real", tmp_path / "link"
    real.write_text("")
    link.symlink_to(real)
    write_whole(link, "text")
    assert link.is_symlink()
    assert real.read_text() == "text"


def test_a_pipe_is_written_through(tmp_path: Path) -> None:
    """As the shell's ``>(...)`` gives one."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    write_whole(pipe, "text")
    reader.join()
    assert read == ["text"]
    assert pipe.is_fifo()


@pytest.mark.parametrize("place", ["", "missing/page.html"])
def test_a_place_that_cannot_be_is_refused(place: str, tmp_path: Path) -> None:
    """A directory, and a file in none."""
    with pytest.raises(SourceError, match="cannot be written"):
        check_place(tmp_path / place)


@pytest.mark.parametrize(
    ("command", "option"),
    [
        ("report", "--html"),
        ("replay", "--html"),
        ("narrow", "--output"),
        ("calibrate", "--output"),
    ],
)
def test_a_command_refuses_it_before_it_reads_anything(
    command: str, option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Minutes of replay must not be lost to a mistyped path."""
    path = str(tmp_path / "missing" / "file")
    assert main([command, str(tmp_path / "no sweep"), option, path]) == 2
    said = capsys.readouterr().err
    assert "there is no directory" in said
    assert "no sweep" not in said
