"""Before and after a change: what differs for sure, in every form of the report."""

from __future__ import annotations

import io
import math

import pytest
from rich.console import Console

from tests.unit.sweeps.sweeps_made import trial_of
from tune_guard.sweeps import Sweep
from tune_guard.sweeps.compare import Comparison, compare
from tune_guard.sweeps.report.terminal_more import show_changes
from tune_guard.sweeps.side_by_side import Change, changes


def sweep(name: str, sick: int, count: int) -> Comparison:
    """Compare a sweep of which some trials went NaN."""
    trials = [trial_of(i, 0.1, "non_finite" if i < sick else "") for i in range(count)]
    return compare(Sweep(source="x", engine="ray", name=name, trials=tuple(trials)))


def change(*sweeps: Comparison) -> Change:
    """Return the change of ``non_finite``."""
    return next(c for c in changes(sweeps) if c.reason == "non_finite")


def test_a_large_change_is_sure() -> None:
    """Twenty of forty, then none of forty: by Fisher's exact test, for two reasons."""
    found = change(sweep("before", 20, 40), sweep("after", 0, 40))
    assert [share.ratio for share in found.shares] == [0.5, 0.0]
    assert found.p_values[0] is None
    fisher = 2 * math.comb(40, 20) / math.comb(80, 20)
    assert found.p_values[1] == pytest.approx(2 * fisher)
    assert found.changed(1)
    assert not found.changed(0)


@pytest.mark.parametrize(("sick", "count"), [(18, 40), (0, 7)])
def test_a_small_change_or_a_small_sweep_is_not(sick: int, count: int) -> None:
    """Two trials fewer are chance; seven trials are too few to be tested."""
    assert not change(sweep("before", 20, 40), sweep("after", sick, count)).changed(1)


def test_the_terminal_marks_what_changed() -> None:
    """One column a sweep; markup in a name is a name."""
    sweeps = [sweep("[b]efore", 20, 40), sweep("after", 0, 40)]
    out = io.StringIO()
    show_changes(sweeps, changes(sweeps), Console(file=out, width=100))
    assert "[b]efore" in out.getvalue()
    assert "0% *" in out.getvalue()


def test_many_sweeps_come_in_tables_that_fit_each_with_the_first() -> None:
    """A name broken into pieces of five letters is none."""
    sweeps = [sweep(f"sweep-of-day-{day}", 20, 40) for day in range(1, 8)]
    out = io.StringIO()
    show_changes(sweeps, changes(sweeps), Console(file=out, width=80))
    heads = [line for line in out.getvalue().splitlines() if "sweep-of-day-" in line]
    assert [head.count("sweep-of-day-") for head in heads] == [3, 3, 3]
    assert all("sweep-of-day-1 " in head for head in heads)
    assert all(f"sweep-of-day-{day} " in out.getvalue() for day in range(1, 8))
