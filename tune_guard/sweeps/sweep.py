"""One sweep, afterwards: its trials, their curves, their records, and the gaps."""

from __future__ import annotations

import dataclasses
import math
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from tune_guard.exceptions import ConfigError, did_you_mean
from tune_guard.record import Outcome, StopRecord

if TYPE_CHECKING:
    import pandas as pd

    from tune_guard.verdict import Blame

Mode = Literal["min", "max"]

UNKNOWN = "unknown (no reason recorded)"
"""Reason of a trial that was cut by something which did not say why."""

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


@dataclass(frozen=True, slots=True)
class Curve:
    """One metric of one trial, in order of its steps.

    Args:
        steps: Steps of the readings, ascending. Type code ``q``.

        values: The readings; NaN and infinities as they were. Type code ``d``.

        times_s: Seconds of the trial's run time at each reading, NaN where it
            is not known; None when it is known for none.

    Example:
        >>> curve = Curve(array("q", [1, 2, 3]), array("d", [0.5, 0.2, 0.3]))
        >>> curve.best("min"), curve.best("min", before=2), curve.last
        ((0.2, 2), (0.5, 1), 0.3)
    """

    steps: array[int]
    values: array[float]
    times_s: array[float] | None = None

    def __len__(self) -> int:
        """Return the number of readings."""
        return len(self.steps)

    @property
    def last(self) -> float | None:
        """The last reading, or None when there is none."""
        return self.values[-1] if self.values else None

    def best(self, mode: Mode, before: int | None = None) -> tuple[float, int] | None:
        """Return the best finite reading and its step, the first of equals.

        Args:
            mode: Whether lower (``min``) or higher (``max``) is better.

            before: Readings at this step and later are left out.
        """
        sign = 1.0 if mode == "min" else -1.0
        finite = (
            (sign * value, step, value)
            for step, value in zip(self.steps, self.values, strict=True)
            if math.isfinite(value) and (before is None or step < before)
        )
        found = min(finite, default=None)
        return None if found is None else (found[2], found[1])


class Reading(NamedTuple):
    """One row of the table of curves."""

    trial: str
    step: int
    metric: str
    value: float
    time_s: float | None


class Curves:
    """The table of curves: ``(trial, step, metric, value, time_s)``.

    Iterating gives one :class:`Reading` a row. The readings themselves lie in
    arrays, one for each metric of a trial.

    Example:
        >>> curve = Curve(array("q", [1, 2]), array("d", [0.5, 0.2]))
        >>> curves = Curves({"a": {"loss": curve}})
        >>> len(curves), curves.metrics(), curves.of("a")["loss"].last
        (2, ['loss'], 0.2)
        >>> next(iter(curves))
        Reading(trial='a', step=1, metric='loss', value=0.5, time_s=None)
    """

    def __init__(self, by_trial: Mapping[str, Mapping[str, Curve]]) -> None:
        self.by_trial = by_trial

    def of(self, trial: str) -> Mapping[str, Curve]:
        """Return the curves of one trial by metric; empty if it reported none."""
        return self.by_trial.get(trial, {})

    def metrics(self) -> list[str]:
        """Return the metrics of all trials, those that most trials have first."""
        counts: dict[str, int] = {}
        for curves in self.by_trial.values():
            for metric in curves:
                counts[metric] = counts.get(metric, 0) + 1
        return sorted(counts, key=lambda metric: (-counts[metric], metric))

    def __len__(self) -> int:
        """Return the number of readings."""
        return sum(len(c) for curves in self.by_trial.values() for c in curves.values())

    def __iter__(self) -> Iterator[Reading]:
        """Iterate over the rows of the table."""
        for trial, curves in self.by_trial.items():
            for metric, curve in curves.items():
                times: Iterable[float | None] = curve.times_s or [None] * len(curve)
                for step, value, time_s in zip(
                    curve.steps, curve.values, times, strict=True
                ):
                    yield Reading(trial, step, metric, value, time_s)


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

    def metrics(self) -> list[str]:
        """Return every metric that was reported or ranked by."""
        names = dict.fromkeys(self.curves.metrics())
        for trial in self.trials:
            names |= dict.fromkeys(trial.finals)
        return list(names)

    def with_objective(self, metric: str, mode: Mode) -> Sweep:
        """Return the sweep with best and last values of ``metric`` filled in.

        Args:
            metric: Name of the objective, as reported.

            mode: ``min`` or ``max``.

        Raises:
            ConfigError: If no trial reported ``metric``, or ``mode`` is neither.
        """
        if mode not in ("min", "max"):
            msg = f"`mode` must be 'min' or 'max', but got {mode!r}."
            raise ConfigError(msg)
        known = self.metrics()
        if known and metric not in known:
            msg = f"No trial of {self.source} reported `{metric}`. "
            raise ConfigError(msg + did_you_mean(metric, known))
        trials = tuple(
            _ranked(t, self.curves.of(t.id), metric, mode) for t in self.trials
        )
        modes = {**self.modes, metric: mode}
        return dataclasses.replace(self, trials=trials, metric=metric, modes=modes)

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


def merge(sweeps: Sequence[Sweep], source: str) -> Sweep:
    """Put several sweeps into one; trial ids become ``<sweep>/<id>``.

    The objective is kept only where all of them agree on it.
    """
    if len(sweeps) == 1:
        return sweeps[0]
    metrics = {(sweep.metric, sweep.mode) for sweep in sweeps}
    metric, mode = metrics.pop() if len(metrics) == 1 else ("", None)
    budgets = {sweep.budget_steps for sweep in sweeps}
    modes = {name: found for sweep in sweeps for name, found in sweep.modes.items()}
    return Sweep(
        source=source,
        engine=sweeps[0].engine if len({s.engine for s in sweeps}) == 1 else "several",
        name=", ".join(sweep.name for sweep in sweeps),
        trials=tuple(
            dataclasses.replace(trial, id=f"{sweep.name}/{trial.id}")
            for sweep in sweeps
            for trial in sweep.trials
        ),
        curves=Curves(_prefixed({s.name: s.curves.by_trial for s in sweeps})),
        records=_prefixed({s.name: s.records for s in sweeps}),
        modes={metric: mode} if metric and mode else modes,
        metric=metric,
        budget_steps=budgets.pop() if len(budgets) == 1 else None,
        problems=tuple(problem for sweep in sweeps for problem in sweep.problems),
    )


def _prefixed(tables: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    return {f"{name}/{key}": v for name, t in tables.items() for key, v in t.items()}
