"""The page: every part, strictly escaped, small, and without any connection."""

from __future__ import annotations

import dataclasses
import re

import pytest

from tests.unit.sweeps.sweeps_made import deadly
from tune_guard.record import Outcome, StopRecord
from tune_guard.sweeps import Problem, Sweep, Trial
from tune_guard.sweeps.compare import compare
from tune_guard.sweeps.report.html import page

MARKUP = '"><script>alert(1)</script><img src=x onerror=alert(2)>'


@pytest.fixture(scope="module")
def html() -> str:
    """The page of a sweep with every part."""
    return page([deadly(120)])


@pytest.mark.parametrize(
    "part",
    [
        "What to change next",
        "Leave out lr &gt; 0.0",
        "Check node node3 (GPU GPU-7f3a)",
        'data-figure="compute"',
        'data-figure="parameter"',
        'data-figure="curves"',
        'data-figure="timeline"',
        "GPU temperature",
        "Best trials",
        "Look at these first",
        "Faults by node and GPU",
        "Warnings that did not cut",
        "/runs/before/t1/result.json",
        "thermal_throttle at step 3. Do something.",
    ],
)
def test_every_part_is_there(html: str, part: str) -> None:
    """What died, when, of what, at what cost, and what to do about it."""
    assert part in html


def test_nothing_is_fetched_and_nothing_runs(html: str) -> None:
    """No script, no address, and a policy that forbids both."""
    assert "<script" not in html
    assert not re.search(r"(?:src|href)=(?!\"#|\"data:,)", html)
    assert "url(" not in html
    assert "default-src 'none'" in html


def _hostile() -> Sweep:
    """Return a sweep in which every text is markup."""
    trials = [
        Trial(
            id=f"{MARKUP}{i}",
            name=MARKUP,
            sweep=MARKUP,
            params={MARKUP: MARKUP if i % 2 else MARKUP + "2", "lr": float(i)},
            state=MARKUP,
            outcome=Outcome.ERROR if i % 2 else Outcome.COMPLETED,
            reason=f"error:{MARKUP}" if i % 2 else "",
            source=MARKUP,
            host=MARKUP,
            began_at=float(i),
        )
        for i in range(20)
    ]
    records = {
        t.id: StopRecord(message=MARKUP, host=MARKUP, gpu_uuid=MARKUP, evidence=MARKUP)
        for t in trials
    }
    curves = deadly(1).curves.by_trial["t0"]["val_loss"]
    made = Sweep(source=MARKUP, engine=MARKUP, name=MARKUP, trials=tuple(trials))
    return dataclasses.replace(
        made,
        records=records,
        curves=type(made.curves)({t.id: {MARKUP: curves} for t in trials}),
        problems=(Problem(file=MARKUP, what=MARKUP),),
    ).with_objective(MARKUP, "min")


def test_no_text_of_a_sweep_becomes_markup() -> None:
    """Names, hyperparameters, messages, hosts, files: all are texts."""
    html = page([_hostile(), _hostile()])
    assert "<script" not in html
    assert "<img" not in html
    assert "alert(1)" in html
    # No attribute ends early: every quote of a user's text is escaped.
    assert '"&gt;&lt;script' not in html


def test_a_notebook_shows_the_same_reasons_escaped() -> None:
    """Jupyter asks a sweep and a comparison for their HTML."""
    sweep = _hostile()
    for shown in (sweep._repr_html_(), compare(sweep)._repr_html_()):
        assert shown is not None
        assert "<script" not in shown
        assert "error:" in shown


def test_two_sweeps_stand_side_by_side() -> None:
    """The share of a reason, the first against the second, where it changed."""
    before = deadly(80)
    kept = tuple(t for t in deadly(80, seed=2).trials if t.reason != "non_finite")
    after = dataclasses.replace(deadly(80, seed=2), name="after", trials=kept)
    html = page([before, after])
    assert "Side by side" in html
    assert re.search(r"<strong>0%</strong> <span class=\"note\">p ", html)


def test_a_thousand_trials_stay_under_eight_megabytes() -> None:
    """Lines are thinned to 200 points."""
    assert len(page([deadly(1000)]).encode()) < 8e6


def test_an_empty_sweep_has_a_page() -> None:
    """No trial, no figure, no error."""
    html = page([Sweep(source="x", engine="ray")])
    assert "No trial reported the objective step by step." in html
    assert "Everything was read as it stands." in html
