"""One sweep, afterwards: its trials, their curves, their records, and the gaps."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from tune_guard.exceptions import ConfigError, did_you_mean
from tune_guard.record import Outcome, StopRecord
from tune_guard.sweeps.curves import MODES, Curve, Curves, Mode

if TYPE_CHECKING:
    import pandas as pd

    from tune_guard.verdict import Blame

UNKNOWN = "unknown (no reason recorded)"
"""Reason of a trial that was cut by something which did not say why."""

NO_FINDING = "unknown (nothing found by replay)"
"""Reason of such a trial whose curve the policy found nothing wrong with."""

INTERRUPTED = "interrupted or still running"
"""Reason of a trial whose engine never wrote down an end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One honest gap: what could not be read, or was repaired, and where.

    Args:
        file: Path or URL of what was read.

        line: Line in it, from 1; None when it concerns the whole.

        what: One sentence.

        lines: How many lines (or rows) it concerns.

        repaired: Whether the values are there all the same.
    """

    file: str
    what: str
    line: int | None = None
    lines: int = 1
    repaired: bool = False

    def __str__(self) -> str:
        """Return ``file:line: what``."""
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{place}: {self.what}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One row of the table of trials.

    Args:
        id: Identity within the sweep: the engine's own.

        name: Directory name in Ray, number in Optuna.

        sweep: Name of the experiment or study that it belongs to.

        params: Hyperparameters by name, nested ones as ``a/b``.

        state: How the engine calls its state: ``TERMINATED``, ``PRUNED``, ...

        outcome: Who ended it; None when that was not recorded.

        reason: Why it ended; empty when it simply completed.

        blame: Whose fault it is, or None.

        step: Step for which the reason holds, or None.

        steps_run: Steps that it ran, to the last one kept.

        time_s: Seconds of compute spent, attempts that were lost included; None
            when that is not known.

        best_value: Best finite reading of the objective, from before the first
            non-finite reading that stopped it.

        best_step: Step of ``best_value``.

        last_value: Last reading of the objective, as it was.

        finals: Final values that the engine itself ranks by, by metric. Empty
            in engines that rank by the curve.

        usable_before: First step whose readings say nothing about how good the
            trial is, since a number had gone non-finite; None when all do.

        source: File or directory it was read from.

        began_at: When it began, in seconds since 1970 in UTC, or None; and
            ``ended_at`` when its last report came.

        host: Host that ran it last, empty when that is not known.

        replayed: Whether the reason is what a policy says of its curves
            afterwards, and not what ended it.

        ran_through: Whether a trial with such a reason had run to its end.
    """

    id: str
    name: str = ""
    sweep: str = ""
    params: Mapping[str, Any] = field(default_factory=dict)
    state: str = ""
    outcome: Outcome | None = None
    reason: str = ""
    blame: Blame | None = None
    step: int | None = None
    steps_run: int = 0
    time_s: float | None = None
    best_value: float | None = None
    best_step: int | None = None
    last_value: float | None = None
    finals: Mapping[str, float] = field(default_factory=dict)
    usable_before: int | None = None
    source: str = ""
    began_at: float | None = None
    ended_at: float | None = None
    host: str = ""
    replayed: bool = False
    ran_through: bool = False

    @property
    def healthy(self) -> bool:
        """Whether it ran to the end it was meant to have."""
        return self.outcome in (Outcome.COMPLETED, Outcome.CRITERION)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """Everything known about one sweep, in three tidy tables.

    Args:
        source: Path or URL it was read from.

        engine: ``ray``, ``optuna`` or ``table``.

        name: Name of the experiment or study.

        trials: One row a trial, in the engine's order.

        curves: What the trials reported.

        records: The stored records that hold, by trial id.

        modes: ``min`` or ``max`` for each metric whose direction is known.

        metric: The objective, once it is known.

        budget_steps: Steps that a trial was to run, when the engine says so.

        problems: What could not be read, was repaired or guessed.
    """

    source: str
    engine: str
    name: str = ""
    trials: Sequence[Trial] = ()
    curves: Curves = field(default_factory=lambda: Curves({}))
    records: Mapping[str, StopRecord] = field(default_factory=dict)
    modes: Mapping[str, Mode] = field(default_factory=dict)
    metric: str = ""
    budget_steps: int | None = None
    problems: Sequence[Problem] = ()

    @property
    def mode(self) -> Mode | None:
        """Direction of the objective, when it is known."""
        return self.modes.get(self.metric)

    @property
    def place(self) -> str:
        """Source, and the sweep's name where that does not tell it."""
        inside = self.name and self.name not in self.source
        return f"{self.name} in {self.source}" if inside else self.source

    def metrics(self) -> list[str]:
        """Return every metric that was reported or ranked by."""
        names = dict.fromkeys(self.curves.metrics())
        for trial in self.trials:
            names |= dict.fromkeys(trial.finals)
        return list(names)

    def with_objective(self, metric: str, mode: str) -> Sweep:
        """Return the sweep with best and last values of ``metric`` filled in.

        Args:
            metric: Name of the objective, as reported.

            mode: ``min`` or ``max``.

        Raises:
            ConfigError: If no trial reported ``metric`` and no record names it, or
                ``mode`` is neither.
        """
        if mode not in MODES:
            msg = f"`mode` must be 'min' or 'max', but got {mode!r}."
            raise ConfigError(msg)
        direction = MODES[mode]
        known = self.metrics()
        told = any(record.objective == metric for record in self.records.values())
        if known and metric not in known and not told:
            msg = f"No trial of {self.place} reported `{metric}`. "
            raise ConfigError(msg + did_you_mean(metric, known))
        trials = tuple(
            _ranked(trial, self.curves.of(trial.id), metric, direction)
            for trial in self.trials
        )
        modes = {**self.modes, metric: direction}
        return dataclasses.replace(self, trials=trials, metric=metric, modes=modes)

    def _repr_html_(self) -> str | None:
        """Return the comparison of its reasons for a notebook; None without jinja2."""
        from tune_guard.sweeps.compare import compare

        return compare(self)._repr_html_()

    def to_dataframe(
        self, table: Literal["trials", "curves", "records"] = "trials"
    ) -> pd.DataFrame:
        """Return one of the three tables as a pandas frame.

        Hyperparameters become columns ``params/<name>``.

        Args:
            table: ``trials``, ``curves`` or ``records``.

        Raises:
            ConfigError: If ``table`` is none of them.
        """
        from tune_guard.sweeps import frames

        return frames.to_dataframe(self, table)


def _ranked(
    trial: Trial, curves: Mapping[str, Curve], metric: str, mode: Mode
) -> Trial:
    """Fill in a trial's best and last value of the objective."""
    curve = curves.get(metric)
    best = curve.best(mode, before=trial.usable_before) if curve else None
    final = trial.finals.get(metric)
    if best is None and final is not None and math.isfinite(final):
        best = (final, trial.steps_run)
    last = curve.last if final is None and curve else final
    return dataclasses.replace(
        trial,
        best_value=best[0] if best else None,
        best_step=best[1] if best else None,
        last_value=last,
    )
