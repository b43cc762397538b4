"""The clock of a sweep leaves out the pauses between its runs."""

from __future__ import annotations

import pytest

from tune_guard.sweeps import Sweep, Trial
from tune_guard.sweeps.report.html import page
from tune_guard.sweeps.report.html_clock import Clock
from tune_guard.sweeps.report.html_timeline import timeline


def test_a_night_between_two_halves_is_left_out() -> None:
    """An hour of work, a pause of ten, and another hour."""
    clock = Clock.of([(0.0, 3600.0), (39_600.0, 43_200.0)])
    assert (clock.length, clock.paused_s) == (7200.0, 36_000.0)
    assert [clock.at(t) for t in (0.0, 3600.0, 39_600.0, 43_200.0)] == [
        0.0,
        3600.0,
        3600.0,
        7200.0,
    ]


@pytest.mark.parametrize(
    "runs",
    [
        [(5.0, 5.0)],
        [(0.0, 10.0), (2.0, 4.0), (10.0, 20.0)],
        [(0.0, 10.0), (12.0, 20.0)],
    ],
    ids=["one moment", "overlapping", "short pause"],
)
def test_nothing_else_is_left_out(runs: list[tuple[float, float]]) -> None:
    """Runs that overlap, touch, or stand near each other keep their time."""
    clock = Clock.of(runs)
    assert clock.pauses == ()
    assert clock.length == max(end for _, end in runs) - min(b for b, _ in runs)


def trial(name: str, began: float) -> Trial:
    """Return a trial that ran for ten minutes."""
    return Trial(id=name, began_at=began, time_s=600.0, steps_run=1)


def test_the_figure_says_what_it_leaves_out() -> None:
    """With a dashed line where it was."""
    trials = (trial("a", 1000.0), trial("b", 87_400.0))
    sweep = Sweep(source="x", engine="ray", trials=trials)
    found = timeline(sweep)
    assert found is not None
    assert (found.unit, found.pauses, len(found.bars)) == ("min", (500,), 2)
    assert [(bar.x, bar.width) for bar in found.bars] == [(0, 500), (500, 500)]
    html = page([sweep])
    assert "23 h 50 min in which no trial ran are left out at the dashed line" in html
