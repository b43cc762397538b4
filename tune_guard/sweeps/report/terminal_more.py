"""What a comparison says beyond its reasons: claims, faults, trials to look at."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from tune_guard.sweeps.compare import Comparison
    from tune_guard.sweeps.side_by_side import Change
    from tune_guard.sweeps.spared import Spared

_MOST_LOOKS = 5
_MOST_TOP = 5
_CELL_FRAME = 3  # a line and two blanks
_SPARED_BY = {"holdout": "the holdout", "action": "the action `warn`"}


def show_claims(found: Comparison, console: Console) -> None:
    """Print what hyperparameters explain, or that this cannot be said.

    Args:
        found: A comparison.

        console: Where to.
    """
    if found.explained is None:
        said = "What hyperparameters explain needs scipy: pip install"
        console.print(escape(f"{said} 'tune-guard[report]'"))
        return
    if found.explained.claims:
        console.print("What the hyperparameters explain:")
    for claim in found.explained.claims:
        console.print(escape(f"  {claim}."))


def show_faults(found: Comparison, console: Console) -> None:
    """Print infrastructure faults by node and GPU."""
    if not found.faults:
        return
    table = Table(title="Faults by node and GPU", title_justify="left")
    for heading in ("node", "GPU", "faults", "ran there", "reasons"):
        table.add_column(heading, overflow="fold")
    for place in found.faults:
        reasons = ", ".join(f"{reason} {n}" for reason, n in place.reasons.items())
        cells = (place.node, place.gpu, str(len(place.trials)), str(place.ran), reasons)
        table.add_row(*map(escape, cells))
    console.print(table)


def show_changes(
    comparisons: Sequence[Comparison], changes: Sequence[Change], console: Console
) -> None:
    """Print the share of each reason in every sweep, and where it changed for sure.

    What is too wide for the console comes as several tables, each with the first
    sweep beside those that fit.

    Args:
        comparisons: The sweeps, the one to hold the others against first.

        changes: What :func:`tune_guard.sweeps.side_by_side.changes` returned.

        console: Where to.
    """
    names = [found.name or found.source for found in comparisons]
    widest = max(map(len, [*names, "100% *"])) + _CELL_FRAME
    reasons = max(map(len, [change.reason for change in changes] or ["reason"]))
    room = console.width - reasons - _CELL_FRAME - 1
    others = max(1, room // widest - 1)
    title = "Side by side (* differs from the first, Fisher's exact test, 5%)"
    for begin in range(1, len(names), others):
        shown = (0, *range(begin, min(begin + others, len(names))))
        table = Table(title=title if begin == 1 else None, title_justify="left")
        table.add_column("reason", overflow="fold")
        for i in shown:
            table.add_column(escape(names[i]), overflow="fold")
        for change in changes:
            cells = [_share_text(change, i) for i in shown]
            table.add_row(escape(change.reason), *cells)
        console.print(table)


def _share_text(change: Change, sweep: int) -> str:
    return f"{change.shares[sweep].ratio:.0%}" + (" *" if change.changed(sweep) else "")


def show_trials(found: Comparison, console: Console) -> None:
    """Print the best trials, and those to look at first."""
    if len(found.top) > 1:
        said = []
        for trial in found.top[:_MOST_TOP]:
            value = trial.finals.get(found.metric, trial.best_value)
            said.append(f"{trial.id} {value:.4g}")
        console.print(escape(f"The best by {found.metric}: {', '.join(said)}."))
    if found.first_looks:
        console.print("Look at these first:")
    for look in found.first_looks[:_MOST_LOOKS]:
        console.print(escape(f"  {look.trial.id}: {look.why}."))
        if look.record and look.record.message:
            console.print(Padding.indent(Text(look.record.message), 4))
    more = len(found.first_looks) - _MOST_LOOKS
    if more > 0:
        console.print(f"  and {more} more (--json)")


def spared_lines(found: Spared) -> list[str]:
    """Say what condemned trials that ran on tell of the sweep's false kills."""
    by = ", ".join(f"{n} by {_SPARED_BY.get(why, why)}" for why, n in found.by.items())
    lines = [
        f"Condemned, and let run on: {found.trials + found.unknown} ({by}).",
        f"  Cutting them would have saved {found.steps:,} steps.",
        _false_kills(found),
    ]
    if found.rules:
        said = [f"{rule} {k} of {n}" for rule, (n, k) in found.rules.items()]
        lines.append(f"  By rule: {', '.join(said)}.")
    if found.unknown:
        lines.append(f"  {found.unknown} ended before it could be seen.")
    return lines


def _false_kills(found: Spared) -> str:
    low, high = found.false_kill_ci
    return (
        f"  False kills (one of the best {found.top:.0%}, its best still to come):"
        f" {found.false_kills} of {found.trials}, {found.false_kill_ratio:.0%} (95%"
        f" interval {100 * low:.0f}-{high:.0%})."
    )
