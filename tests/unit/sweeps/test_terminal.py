"""The comparison as a person and as a program reads it."""

from __future__ import annotations

import dataclasses
import io
import json
import math
from array import array

import pytest
from rich.console import Console

from tune_guard.record import Outcome, StopRecord
from tune_guard.sweeps import Curve, Curves, Problem, Sweep, Trial
from tune_guard.sweeps.compare import Comparison, compare
from tune_guard.sweeps.report.as_json import as_json
from tune_guard.sweeps.report.terminal import show
from tune_guard.verdict import Blame


def comparison() -> Comparison:
    """Return one with every part: reasons, hyperparameters, savings, problems."""
    curve = Curve(array("q", [1, 2]), array("d", [0.5, math.nan]))
    healthy = [
        Trial(
            id=f"h{i}",
            params={"lr": 0.001 * i, "opt": "[red]adam"},
            outcome=Outcome.COMPLETED,
            steps_run=10,
            time_s=60.0,
        )
        for i in range(6)
    ]
    sick = [
        Trial(
            id=f"s{i}",
            params={"lr": 1.0 + i, "opt": "[red]adam"},
            outcome=Outcome.GUARD,
            reason="non_finite",
            blame=Blame.CONFIG,
            steps_run=2,
            time_s=12.0,
        )
        for i in range(5)
    ]
    failed = Trial(
        id="e", outcome=Outcome.ERROR, reason="error:OSError", steps_run=1, time_s=1.0
    )
    sweep = Sweep(
        source="/runs/x",
        engine="ray",
        name="x",
        trials=(*healthy, *sick, failed),
        curves=Curves({t.id: {"loss": curve} for t in healthy}),
        records={"h0": StopRecord(warnings=("plateau@3",))},
        problems=[
            Problem(file=f"f{i}", line=i, what="torn last line left out")
            for i in (1, 2)
        ],
    )
    return compare(sweep.with_objective("loss", "min"))


def shown(found: Comparison, width: int = 100) -> str:
    """Return what is printed."""
    out = io.StringIO()
    show(found, Console(file=out, width=width, highlight=False))
    return out.getvalue()


@pytest.mark.parametrize(
    "part",
    [
        "x (ray): 12 trials, 7 min 01 s of compute",
        "non_finite",
        "config",
        "Hyperparameters behind non_finite",
        "1 … 3 … 5",
        "0 … 0.0025 … 0.005",
        "Too few trials to say what is behind them, under 5: error:OSError (1).",
        "Best trial: h0, loss 0.5 at step 1 (lr=0, opt=[red]adam)",
        "Blame config: 5 trials, 14% of compute.",
        "Compute saved (estimate): 40 steps, 4 min 00 s, 36% of what the sweep would",
        "if the cut trials had run to step 10 (the longest of 6 that ran",
        "Warnings that did not cut (trials): plateau 1.",
        "f1:1: torn last line left out (and 1 more files or lines)",
    ],
)
def test_every_part_is_printed(part: str) -> None:
    """What a user's text holds is printed, and not taken for markup."""
    assert part in shown(comparison()).replace("\n", "  ").replace("   ", " ") or (
        part in shown(comparison(), width=400)
    )


def test_without_savings_and_problems_less_is_said() -> None:
    """An estimate of nothing is named as such."""
    found = dataclasses.replace(comparison(), saved=None, problems=(), best=None)
    said = shown(found)
    assert "Compute saved: none, or too little to say." in said
    assert "What was not read" not in said
    assert "Best trial" not in said


def test_a_narrow_terminal_keeps_every_reason() -> None:
    """Cells fold; nothing is cut off."""
    assert "non_finite" in shown(comparison(), width=70)


def test_the_name_of_a_scheduler_or_pruner_is_not_broken() -> None:
    """Also in a terminal of the usual width."""
    reasons = ("pruner:MedianPruner", "scheduler:AsyncHyperBandScheduler")
    trials = tuple(
        Trial(id=r, outcome=Outcome.SCHEDULER, reason=r, steps_run=3, time_s=28.0)
        for r in reasons
    )
    sweep = Sweep(source="/runs/x", engine="ray", name="x", trials=trials)
    table = shown(compare(sweep.with_objective("loss", "min")), width=80)
    assert "│ pruner:MedianPruner " in table
    assert "│ AsyncHyperBandScheduler " in table


def test_a_long_message_stays_below_its_trial() -> None:
    """Every line of it is indented."""
    words = "word " * 40
    record = StopRecord(reason="plateau", message=words, outcome=Outcome.GUARD)
    cut = Trial(id="t", outcome=Outcome.GUARD, reason="plateau", steps_run=3)
    sweep = Sweep(
        source="/runs/x", engine="ray", name="x", trials=(cut,), records={"t": record}
    )
    lines = shown(compare(sweep.with_objective("loss", "min")), 80).splitlines()
    assert {line[:8] for line in lines if "word" in line} == {"    word"}


def test_the_json_is_strict_and_whole() -> None:
    """Non-finite numbers are texts; a program finds what the tables hold."""
    found = comparison()
    best = found.best
    assert best is not None
    found = dataclasses.replace(
        found, best=dataclasses.replace(best, last_value=math.nan)
    )
    values = json.loads(json.dumps(as_json(found), allow_nan=False))
    assert (values["schema"], values["findings"], values["trials"]) == (1, 6, 12)
    assert values["best"]["last_value"] == "NaN"
    sick = next(g for g in values["groups"] if g["reason"] == "non_finite")
    assert sick["blame"] == "config"
    assert sick["parameters"][0]["behind"]["median"] == 3.0
    assert (
        next(g for g in values["groups"] if g["outcome"] == "error")["parameters"]
        is None
    )
    assert values["blames"]["none"]["trials"] == 7
    assert values["saved"]["steps"] == 40
    assert values["problems"][0]["line"] == 1
