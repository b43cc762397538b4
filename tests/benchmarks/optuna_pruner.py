"""What a question to a pruner costs: ``python -m tests.benchmarks.optuna_pruner``.

Thread CPU time of ``trial.should_prune()`` in microseconds (the median of many
questions, each after a new report) for the guard and for Optuna's own pruners,
by the number of finished trials and of the steps that the trial has run; then
the SQL statements that a question sends to SQLite. It exits with 1 where the
guard costs more than 10 microseconds over NopPruner, or sends a statement
before a cut, or writes more than 3 user attributes at one.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import optuna
import sqlalchemy
from optuna import pruners
from optuna.storages import BaseStorage, InMemoryStorage
from rich.console import Console
from rich.table import Table

from tune_guard.optuna import GuardPruner

if TYPE_CHECKING:
    from collections.abc import Callable

TRIALS = (100, 5_000)
STEPS = (10, 10_000)
QUESTIONS = 1_000
SLOW_QUESTIONS = 20
LIMIT_US = 10.0
MOST_ATTRIBUTES = 3

PRUNERS: dict[str, Callable[[], pruners.BasePruner]] = {
    "Nop": pruners.NopPruner,
    "Guard": GuardPruner,
    "Median": pruners.MedianPruner,
    "Hyperband": lambda: pruners.HyperbandPruner(max_resource=20_000),
    "Patient": lambda: pruners.PatientPruner(None, patience=5),
    "Threshold": lambda: pruners.ThresholdPruner(upper=1e9),
}
FAST = ("Nop", "Guard")


class Forgetful(InMemoryStorage):
    """Keeps no reports of running trials.

    The in-memory storage copies a trial's values at each report, which empties
    the processor's caches the more the longer the trial is; that would be
    measured instead of the pruner. The trial's own values are all there.
    """

    def set_trial_intermediate_value(self, *_: object) -> None:
        """Forget it."""


def value_at(step: int) -> float:
    """Return a loss that keeps falling, so that nobody has a reason to cut."""
    return 1.0 + 1.0 / (step + 1)


def study_with(
    name: str, finished: int, steps: int, storage: BaseStorage | str
) -> tuple[optuna.Study, optuna.Trial]:
    """Return a study of finished trials, and one that has run ``steps`` steps."""
    study = optuna.create_study(pruner=PRUNERS[name](), storage=storage)
    values = {step: value_at(step) + 1 for step in range(steps, steps + 20)}
    done = optuna.trial.create_trial(value=2.0, intermediate_values=values)
    study.add_trials([done] * finished)
    trial = study.ask()
    for step in range(steps):
        trial.report(value_at(step), step)
    trial.should_prune()
    return study, trial


def cpu_us(name: str, finished: int, steps: int) -> float:
    """Return the median CPU time of a question, in microseconds."""
    _, trial = study_with(name, finished, steps, Forgetful())
    took = []
    for step in range(steps, steps + (QUESTIONS if name in FAST else SLOW_QUESTIONS)):
        trial.report(value_at(step), step)
        start = time.thread_time_ns()
        trial.should_prune()
        took.append(time.thread_time_ns() - start)
    return statistics.median(took) / 1e3


class Sent:
    """Counts the SQL statements of an engine by what they do."""

    def __init__(self, study: optuna.Study) -> None:
        self.statements: list[str] = []
        engine = study._storage._backend.engine  # type: ignore[attr-defined]
        sqlalchemy.event.listen(engine, "before_cursor_execute", self._note)

    def _note(self, _: object, __: object, statement: str, *___: object) -> None:
        self.statements.append(statement)

    def during(self, question: Callable[[], bool]) -> list[str]:
        """Return what ``question`` sends."""
        self.statements.clear()
        question()
        return list(self.statements)


def sql_counts(name: str, folder: Path) -> tuple[int, int, int]:
    """Return statements of a question, and at a cut statements and user attributes."""
    url = f"sqlite:///{folder / name}.db"
    study, trial = study_with(name, finished=10, steps=3, storage=url)
    sent = Sent(study)
    trial.report(value_at(3), 3)
    healthy = len(sent.during(trial.should_prune))
    trial.report(float("nan"), 4)
    cut = sent.during(trial.should_prune)
    attributes = [s for s in cut if s.startswith("INSERT INTO trial_user_attributes")]
    return healthy, len(cut), len(attributes)


def time_table(console: Console) -> float:
    """Print the CPU times; return the guard's largest excess over NopPruner."""
    cases = [(finished, steps) for finished in TRIALS for steps in STEPS]
    table = Table("pruner", title="CPU time of should_prune(), in-memory storage, µs")
    for finished, steps in cases:
        table.add_column(f"{finished:,} trials\n{steps:,} steps", justify="right")
    rows: dict[str, list[float]] = {}
    for name in PRUNERS:
        with console.status(f"{name} ..."):
            rows[name] = [cpu_us(name, *case) for case in cases]
        table.add_row(name, *(f"{us:,.1f}" for us in rows[name]))
    excess = [g - n for g, n in zip(rows["Guard"], rows["Nop"], strict=True)]
    table.add_section()
    table.add_row("Guard - Nop", *(f"{us:,.1f}" for us in excess))
    console.print(table)
    return max(excess)


def sql_table(console: Console) -> tuple[int, int]:
    """Print the SQL counts; return the guard's before a cut, and its attributes."""
    table = Table(
        "pruner",
        "question",
        "question after a NaN",
        "user attributes written",
        title="SQL statements of should_prune(), SQLite",
    )
    counts = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in PRUNERS:
            counts[name] = sql_counts(name, Path(folder))
            table.add_row(name, *map(str, counts[name]))
    console.print(table)
    return counts["Guard"][0], counts["Guard"][2]


def main() -> int:
    """Print both tables; return 1 where the guard is over a limit."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
    console = Console()
    excess = time_table(console)
    statements, attributes = sql_table(console)
    ok = excess <= LIMIT_US and not statements and attributes <= MOST_ATTRIBUTES
    console.print(
        f"Guard: at most {excess:.1f} µs over NopPruner (limit {LIMIT_US:g}),"
        f" {statements} statements until a cut (limit 0), {attributes} user"
        f" attributes at a cut (limit {MOST_ATTRIBUTES}): {'ok' if ok else 'FAILED'}"
    )
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
