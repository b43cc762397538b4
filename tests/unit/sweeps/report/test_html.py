"""The page: every part, strictly escaped, small, and without any connection."""

from __future__ import annotations

import dataclasses
import re
from array import array

import pytest

from tests.unit.sweeps.sweeps_made import deadly
from tune_guard.record import Outcome, StopRecord
from tune_guard.sweeps import Problem, Sweep, Trial
from tune_guard.sweeps.compare import compare
from tune_guard.sweeps.curves import Curve, Curves
from tune_guard.sweeps.report.html import page
from tune_guard.sweeps.report.html_curves import curves_figure

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


def test_the_false_kills_of_a_holdout_are_on_the_page() -> None:
    """With their interval, as in the terminal."""
    record = StopRecord(spared="relapse@5:holdout")
    trial = Trial(id="a", outcome=Outcome.COMPLETED, steps_run=20, best_value=0.5)
    trial = dataclasses.replace(trial, best_step=9)
    sweep = Sweep(source="x", engine="ray", trials=(trial,), records={"a": record})
    found = page([dataclasses.replace(sweep, metric="acc", modes={"acc": "max"})])
    assert "Condemned, and let run on: 1 (1 by the holdout)." in found
    assert "1 of 1, 100% (95% interval 21-100%)" in found


def test_a_share_of_nothing_has_no_bar() -> None:
    """Nor is a sweep without sick trials coloured as one with them."""
    trial = Trial(id="a", outcome=Outcome.COMPLETED, steps_run=0)
    found = page([Sweep(source="x", engine="ray", trials=(trial,))])
    assert 'style="width:0.0%' not in found
    assert 'class="sick"' not in found


def test_a_replayed_sweep_is_told_to_take_the_guard() -> None:
    """With what it would have saved."""
    trial = Trial(
        id="a",
        outcome=Outcome.GUARD,
        reason="no_progress",
        step=5,
        steps_run=20,
        replayed=True,
    )
    found = page([Sweep(source="x", engine="ray", trials=(trial,))])
    assert "Give the next sweep the guard: by replay it cuts 1 trial and saves" in found


def test_the_stop_of_a_replayed_trial_lies_on_its_curve() -> None:
    """It ran on after the step that would have been its last."""
    values = array("d", [4.0, 3.0, 2.0, 1.0])
    curve = Curve(array("q", [0, 1, 2, 3]), values)
    trial = Trial(id="a", outcome=Outcome.GUARD, reason="relapse", step=1, steps_run=4)
    sweep = Sweep(
        source="x",
        engine="ray",
        trials=(trial,),
        curves=Curves({"a": {"loss": curve}}),
        metric="loss",
        modes={"loss": "min"},
    )
    figure = curves_figure(sweep, ["relapse"], {"a": "a"})
    assert figure is not None
    (drawn,) = figure.series[0].lines
    assert drawn.path.startswith("M0 0l333 333")
    assert drawn.stop.startswith("M333 333")
