"""Feed a case's rows to real monitors, events and all."""

from __future__ import annotations

import json
import pickle
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.cases.decode import decode
from tune_guard import Monitor
from tune_guard.notices import Notices
from tune_guard.sweeps.readers.ray_rows import csv_rows, json_rows
from tune_guard.verdict import HEALTHY, Level, Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tune_guard import Policy
    from tune_guard.sweeps.sweep import Problem

_ROW = frozenset({"step", "metrics", "raw_line", "event", "trial"})
_TOLD = frozenset({"calls", "comment", "note", "why"})
_CLOCKS = ("time_s", "time")
_SAID = _TOLD.union(_CLOCKS)
_STEPS = ("training_iteration", "step", "_step", "epoch")
_STORED = ("state saved", "state loaded", "new process", "state restored", "pickle")
_CHANGED = ("perturb", "exploit", "config change", "config_changed", "mutat", "pbt")
_AGAIN = ("retry", "retri", "restart", "rewind", "resum", "restore", "attempt", "pause")
_CHECKPOINT = ("checkpoint taken", "checkpoint saved", "checkpointed", "keyframe")


@dataclass
class Outcome:
    """What became of one trial.

    Args:
        verdict: ``stop``, ``continue`` or ``config_error``.

        best: Best value of the plateau rule, else of the monitor.

        notices: What was said about it, by topic.

        notes: What of the case could not be taken as it is.

        broken: What the case demands beside the verdict, and did not get.
    """

    verdict: str = "continue"
    reason: str | None = None
    at_step: int | None = None
    metric: str = ""
    message: str = ""
    best: float | None = None
    warned: bool = False
    notices: Mapping[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        if self.verdict != "stop":
            return self.verdict
        return f"stop {self.reason} @{self.at_step}"


def with_metrics(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a row with its numbers under ``metrics``: flat ones, and the clock's."""
    if "event" in row or "raw_line" in row:
        return row
    clock = next((row[k] for k in _CLOCKS if k in row), None)
    if "metrics" not in row:
        named = {k: v for k, v in row.items() if k not in {"step", "trial", *_TOLD}}
        row = {k: v for k, v in row.items() if k not in named} | {"metrics": named}
        if "step" not in row:
            row["step"] = next((named[k] for k in _STEPS if k in named), None)
    if clock is None:
        return row
    return {**row, "metrics": {"time_total_s": clock, **(row["metrics"] or {})}}


class Trial:
    """One trial of a case: a monitor that may be stored and taken up again."""

    def __init__(self, policy: Policy, name: str, notices: Notices) -> None:
        self._policy, self._name, self._notices = policy, name, notices
        self.monitor = Monitor(policy, trial_id=name, notices=notices)
        self.verdict: Verdict = HEALTHY
        self.warned = False

    def observe(self, step: Any, metrics: Mapping[str, Any]) -> bool:
        """Judge a row and return whether the trial is to go on."""
        self.verdict = self.monitor.observe(step, metrics)
        self.warned |= self.verdict.level is Level.WARN
        return not self.verdict.stop

    def restart(self) -> None:
        """Store the state as JSON and as a pickle, and take it up anew."""
        stored = json.dumps(self.monitor.state(), allow_nan=False)
        state = pickle.loads(pickle.dumps(json.loads(stored)))  # noqa: S301 - our own
        self.monitor = Monitor(self._policy, trial_id=self._name, notices=self._notices)
        self.monitor.restore(state)

    def outcome(self) -> Outcome:
        """Return what became of it."""
        cause = self.verdict.cause if self.verdict.stop else None
        return Outcome(
            verdict="continue" if cause is None else "stop",
            reason=None if cause is None else cause.rule,
            at_step=None if cause is None else cause.step,
            metric="" if cause is None else cause.metric,
            message="" if cause is None else cause.message,
            best=self._best(),
            warned=self.warned,
            notices=dict(self._notices.messages),
        )

    def _best(self) -> float | None:
        """Return the best value that was accepted, as the plateau rule counts."""
        detector: Any = self.monitor.detectors.get("plateau")
        if detector is None or detector.best is None:
            return self.monitor.best_value
        best: float = detector._sign * detector.best
        return best


def run_rows(policy: Policy, rows: Sequence[Mapping[str, Any]]) -> dict[str, Outcome]:
    """Feed rows until each trial is cut; return the outcomes by trial name."""
    notices, notes = Notices(), list[str]()
    trials: dict[str, Trial] = {}
    cut: set[str] = set()
    rows = _with_lines_read(rows, notes)
    for i, row in enumerate(rows):
        name = str(row.get("trial", ""))
        trial = trials.get(name) or Trial(policy, name, notices)
        trials[name] = trial
        notes += [f"unknown field {k}" for k in row if k not in _ROW | _SAID]
        if "event" in row:
            notes += _handle(
                trial, str(row["event"]).lower(), _next_step(rows[i + 1 :])
            )
        elif name not in cut:
            metrics = decode(row.get("metrics") or {})
            if not trial.observe(decode(row.get("step")), metrics):
                cut.add(name)
    outcomes = {name: trial.outcome() for name, trial in trials.items()}
    for outcome in outcomes.values():
        outcome.notes += notes
    return outcomes


def _with_lines_read(
    rows: Sequence[Mapping[str, Any]], notes: list[str]
) -> list[Mapping[str, Any]]:
    """Replace lines of a file by what the library's own readers make of them."""
    lines = [str(row["raw_line"]) for row in rows if "raw_line" in row]
    if not lines:
        return list(rows)
    problems: list[Problem] = []
    is_json = lines[0].lstrip().startswith(("{", "["))
    read = json_rows if is_json else csv_rows
    content: Any = [s.encode() for s in lines] if is_json else "\n".join(lines)
    found = dict(read(content, "the case's file", problems))
    notes += [f"line {p.line}: {p.what}" for p in problems if p.line]
    out, number = [], 0
    for row in rows:
        number += "raw_line" in row
        if "raw_line" not in row:
            out.append(row)
        elif number in found:
            metrics = found[number]
            step = next((metrics[k] for k in _STEPS if k in metrics), row.get("step"))
            out.append({"step": step, "metrics": metrics})
    return out


def _next_step(rows: Sequence[Mapping[str, Any]]) -> int:
    return next((int(row["step"]) for row in rows if "step" in row), 0)


def _handle(trial: Trial, event: str, next_step: int) -> list[str]:
    """Do what an event stands for; return a note where that is not known."""
    monitor = trial.monitor
    if any(word in event for word in _STORED):
        trial.restart()
    elif any(word in event for word in _CHANGED):
        monitor.begin_attempt(next_step, config_changed=True)
    elif any(word in event for word in _CHECKPOINT):
        monitor.keyframe()
    elif any(word in event for word in _AGAIN):
        trial.restart()
        trial.monitor.begin_attempt(next_step)
    elif "duplicate" not in event:
        return [f"unknown event {event!r}"]
    return []
