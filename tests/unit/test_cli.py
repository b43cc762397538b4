"""The command line: what goes where, and with which exit status."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.sweeps.ray_files import RayExperiment, row, stamped
from tune_guard.cli import main
from tune_guard.cli.console import loading


@pytest.fixture
def healthy(tmp_path: Path) -> str:
    """A sweep of one trial that completed."""
    experiment = RayExperiment(tmp_path / "healthy")
    experiment.trial("a_t0", [row(1, loss=0.5)], {"lr": 0.1})
    experiment.state({"trial_id": "t0", "status": "TERMINATED"})
    return str(experiment.path)


@pytest.fixture
def sick(tmp_path: Path) -> str:
    """A sweep of one trial that the guard cut."""
    experiment = RayExperiment(tmp_path / "sick")
    experiment.trial("a_t0", [row(1, loss=0.5), stamped(2, "plateau", loss=0.5)])
    return str(experiment.path)


LOSS = ["--metric", "loss", "--mode", "min"]


def test_a_clean_sweep_exits_0(
    healthy: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The report is on standard output, and nothing else is anywhere."""
    assert main(["report", healthy, *LOSS]) == 0
    out, err = capsys.readouterr()
    assert "Best trial: t0, loss 0.5 at step 1" in out
    assert err == ""


def test_findings_exit_1(sick: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A trial was cut."""
    assert main(["report", sick, *LOSS]) == 1
    assert "plateau" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments",
    [["report"], ["report", "/no/such"], ["repotr"], ["report", "x", "--mode", "up"]],
    ids=["no source", "missing source", "unknown command", "wrong mode"],
)
def test_wrong_use_exits_2(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """What is wrong is said on standard error."""
    assert main(arguments) == 2
    assert capsys.readouterr().err


@pytest.mark.parametrize(
    ("option", "value"), [("budget-steps", "-4"), ("jobs", "0"), ("top", "5")]
)
def test_a_number_that_cannot_be_meant_exits_2(
    option: str, value: str, healthy: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The option is named, and nothing is replayed with another number."""
    assert main(["replay", healthy, *LOSS, f"--{option}", value]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    name = option.replace("-", "_")
    assert f"`{name}` must be" in captured.err


def test_a_replay_fits_a_terminal(
    healthy: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """80 columns, and no figure broken in two."""
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["replay", healthy, *LOSS]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    (figures,) = [line for line in lines if line.startswith(" all rules")]
    assert figures.split() == [
        *("all", "rules", "0", "0.0%", "0", "(0.0%)", "0.0-79.3%", "0", "0", "0.0%")
    ]


def test_a_replay_says_what_had_been_cut_already(
    sick: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the terminal, in the JSON and on the page: nothing is left to cut there."""
    page = tmp_path / "page.html"
    assert main(["replay", sick, *LOSS, "--html", str(page)]) == 0
    said = "Cut already in the recording: 1 of 1 trial (plateau 1)."
    assert said in " ".join(capsys.readouterr().out.split())
    assert said in page.read_text(encoding="utf-8")
    assert main(["replay", sick, *LOSS, "--json"]) == 0
    ((trial,),) = json.loads(capsys.readouterr().out)["sweeps"].values()
    assert (trial["cut"], trial["cut_before"]) == (False, "plateau")


def test_an_objective_that_is_not_recorded_is_asked_for(
    healthy: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The metrics found are named."""
    assert main(["report", healthy]) == 2
    assert "Metrics found: `loss`" in capsys.readouterr().err


def test_json_is_one_value_on_standard_output(
    sick: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever is said besides does not spoil it."""
    assert main(["report", sick, *LOSS, "--json"]) == 1
    (sweep,) = json.loads(capsys.readouterr().out)["sweeps"]
    assert sweep["groups"][0]["reason"] == "plateau"


def test_readable_sources_are_reported_beside_unreadable_ones(
    healthy: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """One missing directory does not hide the others, but is the status."""
    assert main(["report", healthy, "/no/such", *LOSS, "--json"]) == 2
    out, err = capsys.readouterr()
    assert len(json.loads(out)["sweeps"]) == 1
    assert "/no/such does not exist" in err


def test_a_sweep_without_a_known_objective_does_not_hide_the_others(
    healthy: str, sick: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """One directory above both: the other is named among the gaps, and on stderr."""
    (Path(healthy) / "a_t0" / "result.json").write_text(json.dumps(row(1, acc=0.5)))
    assert main(["report", str(Path(sick).parent), *LOSS, "--json"]) == 2
    out, err = capsys.readouterr()
    (sweep,) = json.loads(out)["sweeps"]
    assert sweep["name"] == "sick"
    assert "No trial of healthy in" in sweep["problems"][-1]["what"]
    assert "No trial of healthy in" in err


def test_a_sweep_that_never_reported_needs_no_objective(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """All trials died before their first result: that is a report too."""
    experiment = RayExperiment(tmp_path / "dead")
    experiment.trial("a_t0", [], {"lr": 1.0}, error="MemoryError: no")
    assert main(["report", str(experiment.path)]) == 1
    assert "error:MemoryError" in capsys.readouterr().out


def test_a_load_says_nothing_where_nobody_looks(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Standard error is no terminal here."""
    with loading("x") as progress:
        progress(1, 2, "trials read")
    assert capsys.readouterr().err == ""


def test_a_load_shows_a_bar_to_a_person(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """On standard error, so that the result can be piped."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("FORCE_COLOR", "1")
    with loading("sweep") as progress:
        progress(1, 2, "trials read")
    out, err = capsys.readouterr()
    assert "trials read" in err
    assert out == ""


@pytest.mark.parametrize("words", [["--help"], ["report", "--help"], ["--version"]])
def test_help_and_version_exit_0(words: list[str]) -> None:
    """As a process, through ``python -m tune_guard``."""
    command = [sys.executable, "-m", "tune_guard", *words]
    done = subprocess.run(command, capture_output=True, check=False, text=True)
    assert done.returncode == 0
    assert done.stdout


def test_the_page_is_written_also_when_nobody_reads_the_rest(
    sick: str, tmp_path: Path
) -> None:
    """``tune-guard report ... --html report.html | head``."""
    page = tmp_path / "report.html"
    command = [sys.executable, "-m", "tune_guard", "report", sick, *LOSS]
    with subprocess.Popen(
        [*command, "--html", str(page)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.close()
        process.communicate()
    assert page.read_text().rstrip().endswith("</html>")


@pytest.mark.parametrize("command", ["report", "replay"])
@pytest.mark.parametrize("place", ["", "missing/page.html", "n" * 300])
def test_a_page_that_cannot_be_written_leaves_nothing_behind(
    command: str,
    place: str,
    healthy: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A directory, a file in none, and a name that no file can have."""
    folder = tmp_path / "pages"
    folder.mkdir()
    before = sorted(tmp_path.rglob("*"))
    assert main([command, healthy, *LOSS, "--html", str(folder / place)]) == 2
    assert "cannot be written" in capsys.readouterr().err
    assert sorted(tmp_path.rglob("*")) == before


def test_a_reader_who_has_seen_enough_is_no_error(sick: str) -> None:
    """``tune-guard report ... | head -1``: no traceback, as with other programs."""
    command = [sys.executable, "-m", "tune_guard", "report", sick, *LOSS, "--json"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        process.stdout.close()
        _, err = process.communicate()
    assert (process.returncode, err) == (141, "")


def test_a_sweep_does_not_steer_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Escape sequences in names, reasons and hyperparameters are shown, not obeyed."""
    evil = "\x1b]0;owned\x07\x1b[2J\x9b1m[/bold]"
    experiment = RayExperiment(tmp_path / "evil")
    rows = [row(1, loss=0.5), stamped(2, evil, loss=0.5)]
    experiment.trial("a_t0", rows, {"lr": evil})
    assert main(["report", str(experiment.path), *LOSS]) == 1
    said = capsys.readouterr()
    assert "owned" in said.out
    assert not set("\x1b\x07\x9b") & set(said.out + said.err)
