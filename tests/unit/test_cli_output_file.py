"""Files that commands write: whole or not at all, and refused before long work."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from tests.unit.sweeps.ray_files import RayExperiment, row
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


def test_a_small_file_has_its_size_in_bytes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A policy is no ``0 kB``."""
    write_whole(tmp_path / "policy.yaml", "x" * 300)
    write_whole(tmp_path / "page.html", "x" * 3000)
    said = capsys.readouterr().err
    assert "policy.yaml written (300 bytes)." in said
    assert "page.html written (3 kB)." in said


@pytest.mark.parametrize("mode", [0o600, 0o664])
def test_a_file_keeps_its_mode(mode: int, tmp_path: Path) -> None:
    """What was private stays private."""
    path = tmp_path / "page.html"
    path.touch()
    path.chmod(mode)
    write_whole(path, "text")
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_a_new_file_has_the_mode_of_any_other(tmp_path: Path) -> None:
    """The umask says who may read it."""
    (tmp_path / "other").touch()
    write_whole(tmp_path / "page.html", "text")
    modes = {path.stat().st_mode for path in tmp_path.iterdir()}
    assert len(modes) == 1


def test_no_file_beside_it_is_touched(tmp_path: Path) -> None:
    """Whatever its name: a download may be ``page.html.part``."""
    beside = tmp_path / "page.html.part"
    beside.write_text("another's")
    write_whole(tmp_path / "page.html", "text")
    assert beside.read_text() == "another's"


def test_a_full_disk_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The old page, and nothing unfinished beside it."""

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    path = tmp_path / "page.html"
    path.write_text("old")
    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(SourceError, match="cannot be written: No space left"):
        write_whole(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_sweep_whose_name_is_no_text_has_a_page(tmp_path: Path) -> None:
    """The name of a directory may hold any bytes."""
    experiment = RayExperiment(tmp_path / "exp\udcff")
    experiment.trial("a_t0", [row(1, loss=0.5)], {"lr": 0.1})
    experiment.state({"trial_id": "t0", "status": "TERMINATED"})
    page = tmp_path / "page.html"
    report = ["report", str(experiment.path), "--metric", "loss", "--mode", "min"]
    assert main([*report, "--html", str(page)]) == 0
    assert "exp?" in page.read_text(encoding="utf-8")


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


@pytest.mark.parametrize("place", ["", "missing/page.html", "n" * 300])
def test_a_place_that_cannot_be_is_refused(place: str, tmp_path: Path) -> None:
    """A directory, a file in none, and a name that no file can have."""
    with pytest.raises(SourceError, match="cannot be written"):
        check_place(tmp_path / place)


def test_a_place_in_a_closed_directory_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root may enter any, so the refusal is played."""

    def closed(_: Path) -> bool:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "is_dir", closed)
    with pytest.raises(SourceError, match=r"cannot be written: Permission denied\."):
        check_place(tmp_path / "page.html")


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


def test_narrow_refuses_also_the_place_that_it_would_choose(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """But with ``--check`` it writes nothing, and does not ask."""
    (tmp_path / "space.narrowed.yaml").mkdir()
    command = ["narrow", str(tmp_path / "no sweep")]
    command += ["--space", str(tmp_path / "space.yaml")]
    assert main(command) == 2
    assert "it is a directory" in capsys.readouterr().err
    assert main([*command, "--check"]) == 2
    assert "no sweep" in capsys.readouterr().err
