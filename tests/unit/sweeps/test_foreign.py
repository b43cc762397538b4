"""Sweeps that never had the guard: reasons by replay, marked as such."""

from __future__ import annotations

import dataclasses
import io
import json
import math
from array import array
from typing import TYPE_CHECKING, Any

import pytest
from rich.console import Console

from tune_guard.cli import main
from tune_guard.policy import Policy
from tune_guard.record import Outcome, StopRecord
from tune_guard.rules import NonFinite
from tune_guard.sweeps import UNKNOWN, Curve, Curves, Sweep, Trial
from tune_guard.sweeps.compare import compare
from tune_guard.sweeps.first_looks import first_looks
from tune_guard.sweeps.foreign import judged
from tune_guard.sweeps.report.html import page
from tune_guard.sweeps.report.terminal import show
from tune_guard.sweeps.sweep import NO_FINDING
from tune_guard.verdict import Blame

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.sweeps.ray_files import RayExperiment

DYING = [1.0, 0.5, math.nan, math.nan, 0.0, 0.0, 0.0, 0.0]


def sweep_of(*ends: dict[str, Any]) -> Sweep:
    """Return a sweep whose trials all went NaN at step 3 of 8, and ended so."""
    curve = Curve(array("q", range(1, 9)), array("d", DYING))
    trials = [Trial(id=f"t{i}", steps_run=8, **end) for i, end in enumerate(ends)]
    made = Sweep(
        source="x",
        engine="ray",
        trials=tuple(trials),
        curves=Curves({trial.id: {"loss": curve} for trial in trials}),
    )
    return made.with_objective("loss", "min")


@pytest.mark.parametrize(
    "end",
    [
        {"outcome": Outcome.COMPLETED},
        {"reason": UNKNOWN},
        {"reason": UNKNOWN, "outcome": Outcome.PRUNER},
    ],
)
def test_a_trial_gets_the_reason_that_the_policy_would_have_given(
    end: dict[str, Any],
) -> None:
    """At the exact step, with the blame and the sentence, and marked."""
    found = judged(sweep_of(end))
    (trial,) = found.trials
    assert (trial.reason, trial.step, trial.blame) == ("non_finite", 3, Blame.CONFIG)
    assert trial.replayed
    assert found.records["t0"].message.startswith("loss = nan at step 3")
    assert "reasons of 1 trial by replay" in found.problems[-1].what


def test_an_unknown_end_whose_curve_is_sound_stands_beside_the_sick() -> None:
    """So that a sweep without any end on record can still say what kills."""
    sound = Curve(array("q", [1, 2]), array("d", [1.0, 0.5]))
    sick = Curve(array("q", [1, 2]), array("d", [1.0, math.nan]))
    trials = [
        Trial(id=str(i), params={"lr": float(i)}, reason=UNKNOWN) for i in range(30)
    ]
    curves = {t.id: {"loss": sick if int(t.id) > 14 else sound} for t in trials}
    sweep = Sweep(source="x", engine="ray", trials=trials, curves=Curves(curves))
    found = compare(judged(sweep.with_objective("loss", "min")))
    assert [group.reason for group in found.groups] == ["non_finite", NO_FINDING]
    assert found.explained is not None
    assert [claim.where for claim in found.explained.claims] == ["lr > 14"]


def test_what_came_after_the_nan_does_not_rank() -> None:
    """A loss of 0.0 that a trainer logs after NaN is no best value."""
    (trial,) = judged(sweep_of({"outcome": Outcome.COMPLETED})).trials
    assert (trial.best_value, trial.best_step) == (0.5, 2)


def test_an_error_stays_the_reason() -> None:
    """The engine said why; the curve is no better witness."""
    end = {"outcome": Outcome.ERROR, "reason": "error:OSError"}
    assert judged(sweep_of(end)).trials == sweep_of(end).trials


def test_a_sweep_with_records_is_left_alone() -> None:
    """Its guard was there, and found these trials healthy."""
    sweep = dataclasses.replace(
        sweep_of({"outcome": Outcome.COMPLETED}), records={"t0": StopRecord()}
    )
    assert judged(sweep) is sweep


def test_a_policy_of_ones_own_can_judge() -> None:
    """NaN four times in a row never came."""
    policy = Policy("loss", "min", rules=(NonFinite(consecutive=4),))
    assert not judged(sweep_of({"outcome": Outcome.COMPLETED}), policy).trials[0].reason


def test_nothing_was_saved_by_cuts_that_never_were() -> None:
    """Five of eight steps came after the reason: avoidable, not saved."""
    found = compare(judged(sweep_of({"outcome": Outcome.COMPLETED})))
    assert (found.saved, found.avoidable, found.replayed) == (None, 5, 1)


@pytest.mark.parametrize(
    ("end", "why", "ran"),
    [
        ({"outcome": Outcome.COMPLETED}, "; it ran to its end", " (1 of them ran"),
        ({"reason": UNKNOWN, "outcome": Outcome.PRUNER}, "", ";"),
    ],
)
def test_a_trial_is_not_said_to_have_ended_with_what_a_replay_found(
    end: dict[str, Any], why: str, ran: str
) -> None:
    """Nothing cut it: the list of first looks and the summary say `would have`."""
    found = compare(judged(sweep_of(end, {"outcome": Outcome.COMPLETED})))
    cut = "replay would have cut"
    whys = [look.why for look in found.first_looks]
    assert whys == [f"number 1 of the sweep, and {cut} it"]
    (group,) = found.groups
    assert (group.title, group.replayed) == ("non_finite (by replay)", 2)
    (trial, _) = judged(sweep_of(end, end)).trials
    assert trial.ran_through is bool(why)
    (dearest,) = first_looks(Sweep(source="x", engine="ray", trials=(trial,)))
    assert dearest.why == f"the longest run that {cut} for non_finite at step 3{why}"
    out = io.StringIO()
    show(compare(judged(sweep_of(end))), Console(file=out, width=400))
    assert f"Replay would have cut 1 trial{ran}" in out.getvalue()
    assert "ended with" not in out.getvalue()


def test_the_page_says_that_reasons_are_by_replay() -> None:
    """In its headline and at the trial."""
    html = page([judged(sweep_of({"outcome": Outcome.COMPLETED}))])
    assert "This sweep ran without a guard: 1 trial has the reason" in html
    assert "non_finite at step 3, by replay: ran to its end" in html
    assert "would have been cut, by replay" in html
    assert "cut by the guard, or failed" not in html


def _foreign(experiment: RayExperiment) -> str:
    rows = [{"training_iteration": i, "loss": v} for i, v in enumerate(DYING, start=1)]
    experiment.trial("train_a", rows)
    return str(experiment.path)


@pytest.mark.parametrize(
    ("flag", "reason"), [([], "non_finite"), (["--no-replay"], UNKNOWN)]
)
def test_the_report_judges_a_foreign_sweep_unless_told_not_to(
    experiment: RayExperiment,
    capsys: pytest.CaptureFixture[str],
    flag: list[str],
    reason: str,
) -> None:
    """`--no-replay` shows what the engine wrote down, and no more."""
    source = _foreign(experiment)
    main(["report", source, "--metric", "loss", "--mode", "min", "--json", *flag])
    (found,) = json.loads(capsys.readouterr().out)["sweeps"]
    assert [group["reason"] for group in found["groups"]] == [reason]


def test_the_report_is_written_as_one_file(
    experiment: RayExperiment, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where the user said; nothing unfinished stays beside it."""
    path = tmp_path / "out" / "report.html"
    path.parent.mkdir()
    arguments = ["report", _foreign(experiment), "--metric", "loss", "--mode", "min"]
    assert main([*arguments, "--html", str(path)]) == 1
    assert [file.name for file in path.parent.iterdir()] == ["report.html"]
    assert "report.html written" in capsys.readouterr().err
    assert main([*arguments, "--html", str(tmp_path / "no" / "r.html")]) == 2
    assert "cannot be written" in capsys.readouterr().err
