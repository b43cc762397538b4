"""The figures of a replay: as a table in the terminal, and as JSON."""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import TYPE_CHECKING, Any

from rich import box
from rich.markup import escape
from rich.table import Table

from tune_guard.sweeps.scoring import Score, by_rule, score
from tune_guard.sweeps.wording import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from tune_guard.sweeps.replay import TrialReplay
    from tune_guard.sweeps.replayed import Replayed

_COLUMNS = (
    "cut",
    "saved",
    "false\nkills",
    "95%",
    "prema-\nture",
    "best\nlost",
    "sick\nsaved",
)


def show(found: Replayed, top: float, console: Console) -> None:
    """Print the figures of each rule and of the whole policy.

    Args:
        found: The replayed sweeps.

        top: Share of a sweep whose cuts are false kills.

        console: Where to.
    """
    sweeps = list(found.sweeps.values())
    whole = score(sweeps, top=top)
    size = f"{counted(whole.trials)} of {counted(whole.sweeps, 'sweep')}"
    title = f"{size}, {whole.sick} of them sick"
    # Without frames it fits a terminal of 80 columns.
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
    table.pad_edge = False
    table.add_column("rule", no_wrap=True)
    for name in _COLUMNS:
        table.add_column(name, justify="right", no_wrap=True)
    for rule, figures in by_rule(sweeps, top=top).items():
        table.add_row(rule, *_cells(figures))
    table.add_section()
    table.add_row("all rules", *_cells(whole), style="bold")
    console.print(table)
    before = cut_before(sweeps)
    if before:
        console.print(escape(before))
    console.print(
        f"A false kill is one of the {whole.top} best trials ({top:.0%} of each sweep)"
        " that was cut before its own best; premature is the same for any trial. Sick:"
        " ended non-finite, or worse than it started. Saved: readings not run, mean"
        " over sweeps."
    )


def cut_before(sweeps: Sequence[Sequence[TrialReplay]]) -> str:
    """Say how many trials had been cut when they ran, and by what; else nothing."""
    every = [trial for trials in sweeps for trial in trials]
    by = Counter(trial.cut_before for trial in every if trial.cut_before)
    if not by:
        return ""
    named = ", ".join(f"{reason} {count}" for reason, count in by.most_common())
    return (
        f"Cut already in the recording: {by.total()} of {counted(len(every))}"
        f" ({named}). Such a trial counts as ended there: nothing further could be cut."
    )


def _cells(figures: Score) -> list[str]:
    low, high = figures.false_kill_ci
    return [
        str(figures.cut),
        f"{figures.saved_ratio:.1%}",
        f"{figures.false_kills} ({figures.false_kill_ratio:.1%})",
        f"{100 * low:.1f}-{high:.1%}",
        str(figures.premature),
        str(figures.best_lost),
        f"{figures.sick_saved_ratio:.1%}",
    ]


def as_json(found: Replayed, top: float) -> dict[str, Any]:
    """Return the figures, and every trial's fate, as plain values."""
    sweeps = list(found.sweeps.values())
    rules = by_rule(sweeps, top=top)
    return {
        "all": _plain(score(sweeps, top=top)),
        "rules": {rule: _plain(figures) for rule, figures in rules.items()},
        "sweeps": {
            name: [_fate(trial) for trial in trials]
            for name, trials in found.sweeps.items()
        },
        "problems": found.problems,
    }


def _plain(figures: Score) -> dict[str, Any]:
    ratio = figures.false_kill_ratio
    return {**dataclasses.asdict(figures), "false_kill_ratio": ratio}


def _fate(trial: Any) -> dict[str, Any]:
    return {
        "trial": trial.trial,
        "cut": trial.cut,
        "reason": trial.reason,
        "step": trial.step,
        "reports": trial.reports,
        "executed": trial.executed,
        "premature": trial.premature,
        "sick": trial.sick,
        "cut_before": trial.cut_before,
        "warnings": dict(trial.warnings),
    }
