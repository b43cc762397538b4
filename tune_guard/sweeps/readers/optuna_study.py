"""Turn an Optuna study into a sweep, whatever storage it lies in."""

from __future__ import annotations

import re
from array import array
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tune_guard.record import STALE, Outcome, StopRecord
from tune_guard.sweeps.curves import Curve, Curves
from tune_guard.sweeps.objective import recorded, usable_before
from tune_guard.sweeps.readers.params import flat_params
from tune_guard.sweeps.readers.progress import Progress, silent
from tune_guard.sweeps.sweep import (
    INTERRUPTED,
    UNKNOWN,
    Problem,
    Sweep,
    Trial,
)

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Sequence

    import optuna
    from optuna.trial import FrozenTrial

    from tune_guard.sweeps.curves import Mode

_ERROR = re.compile(r"\b([A-Z]\w*(?:Error|Exception|Exit|Interrupt|Fault))\b")


def read_study(
    study: optuna.Study,
    source: str = "",
    problems: Sequence[Problem] = (),
    progress: Progress = silent,
    kept_aside: Mapping[int, Mapping[str, Any]] | None = None,
) -> Sweep:
    """Read a study: live, or one of a storage.

    Optuna gives a trial's one curve no name. Here it has that of the first
    objective: the study's metric name, else the one in the guard's records, else
    ``value``. A study with several objectives has no curves, and none of them goes
    first: its objective is the one that the guard judged by its records.

    Args:
        study: The study. Nothing in it is changed.

        source: Where it was read from; the study's name when it is live.

        problems: What reading the storage had to repair.

        progress: Called as trials are read.

        kept_aside: Attributes, by trial number, that the storage had refused.
    """
    frozen = study.get_trials(deepcopy=False)
    records = _records(frozen, kept_aside or {}, study.user_attrs)
    objective, modes = recorded(records)
    names = study.metric_names or _names(len(study.directions), objective)
    steps = [min(t.intermediate_values, default=1) for t in frozen]
    steps += [r.best_step for r in records.values() if r.best_step is not None]
    first = min(steps, default=1)
    reader = _Reader(source or study.study_name, study.study_name, names, first)
    reader.stored = records
    trials = []
    for trial in frozen:
        trials.append(reader.trial(trial))
        progress(len(trials), len(frozen), "trials read")
    if len(names) > 1 and objective:
        reader.problems.append(_without_curves(reader.source, objective, names))
    return Sweep(
        source=reader.source,
        engine="optuna",
        name=study.study_name,
        trials=tuple(trials),
        curves=Curves(reader.curves),
        records=reader.records,
        modes=modes | _modes(names, [d.name for d in study.directions]),
        metric=names[0] if len(names) == 1 else objective,
        problems=(*problems, *reader.problems),
    )


def _names(count: int, objective: str) -> list[str]:
    """Name the objectives of a study that was given no metric names."""
    return (
        [objective or "value"] if count == 1 else [f"value_{i}" for i in range(count)]
    )


def _without_curves(source: str, objective: str, names: Sequence[str]) -> Problem:
    """Say what a study with several objectives does not tell."""
    what = f"a study with several objectives keeps no curve of `{objective}`: steps"
    what += " are known of trials with a record alone"
    if objective not in names:
        what += f"; to rank the trials, name `--metric {names[0]}` or another value"
    return Problem(file=source, what=what)


def _records(
    frozen: Sequence[FrozenTrial],
    kept_aside: Mapping[int, Mapping[str, Any]],
    of_study: Mapping[str, Any],
) -> dict[str, StopRecord]:
    """Return every trial's own record; a retry inherits that of its forerunner.

    A trial whose worker was gone has none itself: it lies with the study.
    """
    found: dict[str, StopRecord] = {}
    for trial in frozen:
        own = str(trial.number)
        stale = of_study.get(f"{STALE}{own}")
        places = (trial.user_attrs, kept_aside.get(trial.number), stale)
        for stored in (place for place in places if isinstance(place, Mapping)):
            record = StopRecord.from_metadata(stored)
            if record is not None and record.trial in ("", own):
                found.setdefault(own, record)
    return found


def _modes(names: Sequence[str], directions: Sequence[str]) -> dict[str, Mode]:
    words: dict[str, Mode] = {"MINIMIZE": "min", "MAXIMIZE": "max"}
    pairs = zip(names, directions, strict=True)
    return {name: words[direction] for name, direction in pairs if direction in words}


class _Reader:
    """Reads the trials of one study."""

    def __init__(
        self, source: str, name: str, metrics: Sequence[str], first: int
    ) -> None:
        self.source = source
        self.name = name
        self.metrics = metrics
        # A study that counts its steps from 0 has run one step more than its last.
        self.more = 1 if first == 0 else 0
        self.stored: Mapping[str, StopRecord] = {}
        self.curves: dict[str, Mapping[str, Curve]] = {}
        self.records: dict[str, StopRecord] = {}
        self.problems: list[Problem] = []

    def trial(self, frozen: FrozenTrial) -> Trial:
        trial_id = str(frozen.number)
        curves = _curves(frozen.intermediate_values, self.metrics[0])
        self.curves[trial_id] = curves
        record = self._record(frozen)
        if record is not None:
            self.records[trial_id] = record
        finals = zip(self.metrics, frozen.values or (), strict=False)
        complete = frozen.state.name == "COMPLETE"
        return Trial(
            id=trial_id,
            name=trial_id,
            sweep=self.name,
            params=flat_params(frozen.params),
            state=frozen.state.name,
            steps_run=self._steps_run(frozen, record),
            time_s=_seconds(frozen),
            finals=dict(finals) if complete else {},
            usable_before=usable_before(record, curves),
            source=self.source,
            began_at=_moment(frozen.datetime_start),
            ended_at=_moment(frozen.datetime_complete),
            host=record.host if record else "",
            **_end(frozen, record),
        )

    def _steps_run(self, frozen: FrozenTrial, record: StopRecord | None) -> int:
        """Return how far a trial came: by its readings, else by its record."""
        last = max(frozen.intermediate_values, default=-self.more)
        if not frozen.intermediate_values and record is not None:
            last = max(last, record.step)
        return last + self.more

    def _record(self, frozen: FrozenTrial) -> StopRecord | None:
        """Return the record of a trial, unless the trial went on all the same."""
        record = self.stored.get(str(frozen.number))
        if record is None or record.outcome is not Outcome.GUARD:
            return record
        if frozen.state.name != "COMPLETE":
            return record
        what = f"trial {frozen.number} completed although its record says it was cut"
        self.problems.append(Problem(file=self.source, what=what))
        return None


def _seconds(frozen: FrozenTrial) -> float | None:
    """Return how long a trial took; MySQL counts whole seconds, also none."""
    duration = frozen.duration
    return None if duration is None else duration.total_seconds()


def _moment(time: dt.datetime | None) -> float | None:
    """Return seconds since 1970; Optuna stores the local time of the worker."""
    return None if time is None else time.timestamp()


def _curves(values: Mapping[int, float], metric: str) -> dict[str, Curve]:
    if not values:
        return {}
    steps = sorted(values)
    readings = array("d", (values[step] for step in steps))
    return {metric: Curve(array("q", steps), readings)}


def _has_ended(state: str, record: StopRecord) -> bool:
    """Whether a record says how its trial ended.

    A trial that the guard has cut is still running where the storage went down
    before the worker could tell it.
    """
    if state == "RUNNING":
        return record.outcome is Outcome.GUARD
    return state in ("PRUNED", "FAIL")


def _end(frozen: FrozenTrial, record: StopRecord | None) -> dict[str, Any]:
    """Return who ended a trial, why, at which step, and whose fault it is."""
    state = frozen.state.name
    if record is not None and record.reason and _has_ended(state, record):
        return {
            "outcome": record.outcome,
            "reason": record.reason,
            "step": record.step if record.step >= 0 else None,
            "blame": record.blame,
        }
    if state == "COMPLETE":
        return {"outcome": Outcome.COMPLETED}
    if state == "PRUNED":
        return {"outcome": Outcome.PRUNER, "reason": UNKNOWN}
    if state == "FAIL":
        said = str(frozen.system_attrs.get("fail_reason", ""))
        kind = _ERROR.search(said)
        return {
            "outcome": Outcome.ERROR,
            "reason": f"error:{kind[1]}" if kind else "error",
        }
    reason = INTERRUPTED if state == "RUNNING" else "never started"
    return {"outcome": Outcome.INTERRUPTED, "reason": reason}
