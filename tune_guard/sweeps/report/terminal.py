"""A comparison as tables in the terminal."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from rich.markup import escape
from rich.table import Table
from rich.text import Text

from tune_guard.record import Outcome
from tune_guard.sweeps.report.terminal_more import (
    show_claims,
    show_faults,
    show_trials,
    spared_lines,
)
from tune_guard.sweeps.spreads import FEWEST, NumberSpread
from tune_guard.sweeps.wording import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from tune_guard.sweeps.compare import Comparison, Group
    from tune_guard.sweeps.savings import Saved
    from tune_guard.sweeps.spreads import Spread
    from tune_guard.sweeps.sweep import Trial

_MOST_PARAMETERS = 5
_MOST_CHOICES = 4
_MOST_PROBLEMS = 10
_WIDE_REASON = 20
_STYLES = {
    Outcome.COMPLETED: "green",
    Outcome.CRITERION: "green",
    Outcome.GUARD: "red",
    Outcome.ERROR: "magenta",
    Outcome.PRUNER: "yellow",
    Outcome.SCHEDULER: "yellow",
}


def show(comparison: Comparison, console: Console) -> None:
    """Print a comparison.

    Args:
        comparison: What :func:`tune_guard.sweeps.compare.compare` returned.

        console: Where to; its width and colours are respected.
    """
    console.print(Text(_headline(comparison), style="bold"))
    console.print(_reasons(comparison))
    healthy = (Outcome.COMPLETED, Outcome.CRITERION)
    sick = [group for group in comparison.groups if group.outcome not in healthy]
    _show_parameters(sick, console)
    show_claims(comparison, console)
    show_faults(comparison, console)
    for line in _closing(comparison):
        console.print(escape(line))
    show_trials(comparison, console)
    _show_problems(comparison, console)


def _headline(comparison: Comparison) -> str:
    name = comparison.name or comparison.source
    if comparison.replayed:
        name += f" (reasons of {counted(comparison.replayed)} by replay)"
    spent = amount(comparison.compute, comparison.unit)
    trials = counted(comparison.trials)
    said = f"{name} ({comparison.engine}): {trials}, {spent} of compute"
    if comparison.without_compute:
        said += f" (not known of {counted(comparison.without_compute)})"
    return said


def _reasons(comparison: Comparison) -> Table:
    title = "Why the trials ended"
    if comparison.replayed:
        title += ", or (by replay) would have been cut"
    table = Table(title=title, title_justify="left")
    for heading in ("reason", "blame"):
        table.add_column(heading, overflow="fold")
    for heading in ("trials", "share", "compute", "share", "median\nsteps"):
        table.add_column(heading, justify="right", no_wrap=True)
    for group in comparison.groups:
        style = _STYLES.get(group.outcome, "") if group.outcome else ""
        table.add_row(
            Text(_folded(group.title), style=style),
            str(group.blame or ""),
            str(len(group.trials)),
            f"{group.share:.0%}",
            amount(group.compute, comparison.unit),
            f"{group.compute_share:.0%}",
            f"{group.median_step:g}",
        )
    return table


def _folded(reason: str) -> str:
    """Break a long reason after its kind, rather than within a class's name."""
    return reason.replace(":", ":\n", 1) if len(reason) > _WIDE_REASON else reason


def _show_parameters(groups: Sequence[Group], console: Console) -> None:
    few = [group for group in groups if group.parameters is None]
    for group in groups:
        if group.parameters:
            console.print(_parameters(group))
            more = len(group.parameters) - _MOST_PARAMETERS
            if more > 0:
                console.print(
                    f"and {more} more that lie closer to the healthy (--json)"
                )
    if few:
        said = ", ".join(f"{group.reason} ({len(group.trials)})" for group in few)
        line = f"Too few trials to say what is behind them, under {FEWEST}: {said}."
        console.print(escape(line))


def _parameters(group: Group) -> Table:
    title = f"Hyperparameters behind {group.reason} (lowest … median … highest)"
    table = Table(title=escape(title), title_justify="left")
    for heading in ("", counted(len(group.trials)), "healthy trials"):
        table.add_column(heading, overflow="fold")
    for parameter in (group.parameters or ())[:_MOST_PARAMETERS]:
        beside = "too few to say"
        if parameter.healthy is not None:
            beside = spread_text(parameter.healthy)
        table.add_row(
            escape(parameter.name),
            escape(spread_text(parameter.behind)),
            escape(beside),
        )
    return table


def spread_text(spread: Spread) -> str:
    """Say where values lie: lowest, median and highest, or counts.

    Example:
        >>> from tune_guard.sweeps.spreads import ChoiceSpread
        >>> spread_text(ChoiceSpread(count=3, counts={"adam": 2, "sgd": 1}))
        'adam 2, sgd 1'
    """
    if isinstance(spread, NumberSpread):
        return f"{spread.lowest:.3g} … {spread.median:.3g} … {spread.highest:.3g}"
    said = [f"{choice} {count}" for choice, count in spread.counts.items()]
    rest = len(said) - _MOST_CHOICES
    return ", ".join(said[:_MOST_CHOICES]) + (f", {rest} more" if rest > 0 else "")


def _closing(comparison: Comparison) -> list[str]:
    lines = []
    if comparison.best is not None:
        lines.append(_best(comparison.best, comparison.metric))
    for blame, (trials, share) in comparison.blames.items():
        if blame is not None:
            lines.append(f"Blame {blame}: {counted(trials)}, {share:.0%} of compute.")
    if comparison.replayed:
        lines.append(_by_replay(comparison))
    if comparison.saved or not comparison.replayed:
        lines.append(_savings(comparison.saved))
    if comparison.warnings:
        said = ", ".join(f"{rule} {n}" for rule, n in comparison.warnings.items())
        lines.append(f"Warnings that did not cut (trials): {said}.")
    if comparison.spared is not None:
        lines += spared_lines(comparison.spared)
    return lines


def _by_replay(comparison: Comparison) -> str:
    said = "This sweep ran without a guard. Replay would have cut"
    said += f" {counted(comparison.replayed)}"
    if comparison.ran_through:
        said += f" ({comparison.ran_through} of them ran to their end)"
    spent = amount(comparison.avoidable, comparison.unit)
    return f"{said}; {spent} of compute came after that."


def _best(trial: Trial, metric: str) -> str:
    final = trial.finals.get(metric)
    said = f"Best trial: {trial.id}, {metric} "
    if final is not None:
        said += f"{final:.6g}"
    else:
        said += f"{trial.best_value:.6g} at step {trial.best_step}"
    params = ", ".join(f"{k}={_short(v)}" for k, v in list(trial.params.items())[:8])
    return f"{said} ({params})" if params else said


def _short(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)[:40]


def _savings(saved: Saved | None) -> str:
    if saved is None:
        return "Compute saved: none, or too little to say."
    spent = f"{saved.steps:,} steps"
    if len(saved.steps_by) > 1:
        parts = [f"{who} {steps:,}" for who, steps in saved.steps_by.items()]
        spent += f" ({', '.join(parts)})"
    if saved.time_s is not None:
        spent += f", {amount(saved.time_s, 's')}"
    return (
        f"Compute saved (estimate): {spent}, {saved.share:.0%} of what the sweep would"
        f" have cost, if the cut trials had run to step {saved.budget_steps}"
        f" ({saved.basis})."
    )


def _show_problems(comparison: Comparison, console: Console) -> None:
    """Print each kind of gap once, with its first place and how often it came."""
    if not comparison.problems:
        return
    kinds = Counter((p.what, p.repaired) for p in comparison.problems)
    first = {(p.what, p.repaired): p for p in reversed(comparison.problems)}
    console.print("What was not read, or repaired:")
    for kind, count in kinds.most_common(_MOST_PROBLEMS):
        often = f" (and {count - 1} more files or lines)" if count > 1 else ""
        console.print(escape(f"  {first[kind]}{often}"), soft_wrap=True)
    if len(kinds) > _MOST_PROBLEMS:
        console.print(f"  and {len(kinds) - _MOST_PROBLEMS} more kinds (--json)")


def amount(compute: float, unit: str) -> str:
    """Return an amount of compute in words.

    Example:
        >>> amount(7384, "s"), amount(75, "s"), amount(2.5, "s"), amount(1200, "steps")
        ('2 h 03 min', '1 min 15 s', '2.5 s', '1,200 steps')
    """
    if unit == "steps":
        return f"{compute:,.0f} steps"
    minutes, seconds = divmod(round(compute), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours:,} h {minutes:02d} min"
    return f"{minutes} min {seconds:02d} s" if minutes else f"{compute:.2g} s"
