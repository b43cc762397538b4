"""A calibration: its levels in the terminal, its policy as YAML, and both as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from tune_guard.record import now_utc, version
from tune_guard.sweeps.wording import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tune_guard.sweeps.calibrate import Calibration

_METHOD = (
    "Method: Learn then Test (Angelopoulos, Bates, Candes, Jordan, Lei 2021,",
    "arXiv:2110.01052), fixed sequence from lenient to bold, with the",
    "Hoeffding-Bentkus p-values over sweeps of Bates, Angelopoulos, Lei, Malik,",
    "Jordan 2021 (arXiv:2101.02703).",
)


def show(found: Calibration) -> None:
    """Print every level, and the promise, to standard error.

    Args:
        found: A calibration.
    """
    console = Console(stderr=True, highlight=False)
    title = f"{counted(found.trials)} of {counted(found.sweeps, 'sweep')}"
    table = Table(title=title, title_justify="left")
    table.add_column("level", overflow="fold")
    for heading in ("saved", "false kills", "p", "promise"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in found.tried:
        style = "bold" if row is found.chosen else ""
        cells = (f"{row.saved:.1%}", f"{row.false_kill:.2%}", f"{row.p:.3f}")
        kept = "kept" if row.kept else "not shown"
        table.add_row(row.level.name, *cells, kept, style=style)
    console.print(table)
    console.print(f"Chosen: {found.chosen.level.name}. {' '.join(promise(found))}")


def promise(found: Calibration) -> list[str]:
    """Return the promise and what it rests on, in lines."""
    goal, chosen = found.goal, found.chosen
    sweeps = counted(found.sweeps, "sweep")
    sure, most, best = f"{goal.confidence:.0%}", f"{goal.false_kill:.2%}", goal.top
    lines = [
        f"Promise, with {sure} confidence: on average over future sweeps like these,",
        f"at most {most} of the best {best:.0%} of a sweep are cut before their best.",
        f"It rests on {sweeps} and their {counted(found.trials, 'uncut trial')}:",
        f"{chosen.false_kill:.2%} killed there, {chosen.saved:.1%} of readings saved.",
    ]
    if found.small:
        small = counted(found.small, "sweep")
        lines.append(f"{small} had too few such trials to count.")
    if found.censored:
        lines.append(f"Left out, as something cut them: {counted(found.censored)}.")
    return lines


def as_yaml(found: Calibration, sources: Sequence[str]) -> str:
    """Return the policy as YAML that says what its promise rests on.

    Args:
        found: A calibration.

        sources: Where the past sweeps lie.
    """
    level = found.chosen.level.name
    lines = [
        f"Calibrated {now_utc()} by tune-guard {version()}, level: {level}.",
        *promise(found),
        "It holds for sweeps like these (the same kind of task, space and objective)",
        "and for the rules of this version: calibrate anew when they change.",
        *_METHOD,
        f"Sources: {', '.join(sources)}",
    ]
    if found.policy.budget_steps is None:
        lines += [
            "The sweeps had different budgets: each was judged by its longest trial.",
            "Set `budget_steps` to the steps of your full trials, or less is cut.",
        ]
    # A source's name may hold a line break.
    comment = "".join(f"# {line}\n" for line in "\n".join(lines).splitlines())
    return f"{comment}\n{found.policy.to_yaml()}"


def as_json(found: Calibration) -> dict[str, Any]:
    """Return the figures of every level as plain values."""
    goal = found.goal
    return {
        "false_kill": goal.false_kill,
        "confidence": goal.confidence,
        "top": goal.top,
        "sweeps": found.sweeps,
        "trials": found.trials,
        "small": found.small,
        "censored": found.censored,
        "chosen": found.chosen.level.name,
        "levels": [
            {
                "level": row.level.name,
                "false_kill": row.false_kill,
                "saved": row.saved,
                "p": row.p,
                "kept": row.kept,
            }
            for row in found.tried
        ],
        "policy": found.policy.to_yaml(),
        "problems": list(found.problems),
    }
