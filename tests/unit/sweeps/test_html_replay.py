"""The page of a replay: figures, curves, and the cuts in them."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from tests.unit.sweeps.test_replay import POLICY, sweep
from tune_guard.cli import main
from tune_guard.sweeps.replay import replay
from tune_guard.sweeps.replayed import Replayed
from tune_guard.sweeps.report.html_replay import NOT_CUT, draw, page
from tune_guard.sweeps.sweep import Sweep

pytest.importorskip("jinja2")
NAN = math.nan


def recorded() -> Sweep:
    """Return a trial that dies, one that stands still, and one that learns."""
    return sweep(
        dies=[1.0, NAN, 0.5, 0.4],
        late=[1.0, 1.0, 1.0, 0.1],
        good=[1.0, 0.9, 0.8, 0.7],
    ).with_objective("loss", "min")


def test_the_cut_lies_at_its_step_and_the_rest_is_drawn_apart() -> None:
    """Steps 1 to 4 lie at 0 to 1000: the cut at step 3 is at 667."""
    found = draw(recorded(), replay(recorded(), POLICY))

    assert found is not None
    (line,) = found.lines["plateau"]
    assert line.cut.startswith("M667 ")
    assert line.run.count(" ") >= 1
    assert line.saved.startswith("M667 ")
    assert found.lines[NOT_CUT][0].saved == ""
    assert found.cuts == 2


def test_a_false_kill_is_called_one() -> None:
    """The late trial would have been the best."""
    found = draw(recorded(), replay(recorded(), POLICY))

    assert found is not None
    assert "false kill" in found.lines["plateau"][0].text
    assert "false kill" not in found.lines["non_finite"][0].text


def test_a_sweep_without_a_finite_reading_is_not_drawn() -> None:
    """There is no scale for it."""
    empty = sweep(a=[NAN, NAN, NAN]).with_objective("loss", "min")
    assert draw(empty, replay(empty, POLICY)) is None


def test_the_page_escapes_names() -> None:
    """A sweep may be called anything."""
    replays = replay(recorded(), POLICY)
    found = Replayed(
        sweeps={"<u>": replays}, figures={"<u>": draw(recorded(), replays)}
    )
    html = page(found, 0.1, title="<i>")

    assert "<u>" not in html
    assert "<i>" not in html
    assert "&lt;u&gt;" in html


def test_the_command_writes_the_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """``replay --html`` with two jobs over a CSV of two sweeps."""
    rows = ["sweep_id,trial_id,step,metric_name,value,mode"]
    for name in ("first", "second"):
        for step, value in enumerate([1.0, NAN, NAN, NAN, 0.1], start=1):
            rows.append(f"{name},{name}0,{step},loss,{value},min")
    table, html = tmp_path / "table.csv", tmp_path / "out.html"
    table.write_text("\n".join(rows))

    status = main(
        [
            "replay",
            str(table),
            *("--metric", "loss", "--html", str(html), "--jobs", "2"),
        ]
    )

    text = html.read_text()
    assert status == 0
    assert text.count('data-figure="cuts"') == 2
    assert "non_finite" in text
    assert f"{html} written" in capsys.readouterr().err
