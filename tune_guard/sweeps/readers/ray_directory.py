"""Read a Ray experiment directory of any version, local or behind an fsspec URL."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tune_guard.coercion import to_number
from tune_guard.record import (
    RECORD_FILE,
    Outcome,
    StopRecord,
)
from tune_guard.sweeps.curves import Curves
from tune_guard.sweeps.objective import recorded, usable_before
from tune_guard.sweeps.readers.kept_aside import kept_aside_of_experiment
from tune_guard.sweeps.readers.params import flat_params
from tune_guard.sweeps.readers.progress import Progress, silent
from tune_guard.sweeps.readers.ray_end import (
    end_of,
    is_stale,
    settled,
    steps_of,
    stored_in,
)
from tune_guard.sweeps.readers.ray_rows import (
    RayRows,
    brought_up,
    csv_rows,
    json_rows,
    read_rows,
)
from tune_guard.sweeps.readers.ray_state import (
    ExperimentState,
    TrialState,
    last_part,
    read_state,
    restarted,
)
from tune_guard.sweeps.sweep import Problem, Sweep, Trial

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tune_guard.sweeps.curves import Curve
    from tune_guard.sweeps.readers.files import Tree

_ROWS = ("result.json", "progress.csv")
_TRIAL_FILES = frozenset({*_ROWS, "params.json", "error.txt", RECORD_FILE})
_STATE = re.compile(r"experiment_state-.*\.json")
_CHECKPOINT = re.compile(r"checkpoint_[\w-]+")
_ERROR = re.compile(r"([A-Za-z_][\w.]*(?:Error|Exception|Exit|Interrupt|Fault))\b")


@dataclass(slots=True)
class _Experiment:
    """The files of one experiment: its states, and its trials by directory."""

    states: list[str] = field(default_factory=list)
    trials: dict[str, dict[str, str]] = field(default_factory=dict)


def read_ray(
    source: str, tree: Tree, files: Sequence[str], progress: Progress = silent
) -> list[Sweep]:
    """Read every experiment of a tree; none is no error.

    Args:
        source: What the user named: an experiment's directory, one above several,
            or one trial's.

        tree: Where the files lie.

        files: All files of the tree.

        progress: Called as trials are read.
    """
    experiments = _experiments(tree, files)
    total = sum(len(experiment.trials) for experiment in experiments.values())
    sweeps, done = [], 0
    for directory, experiment in experiments.items():
        reader = _Reader(tree, directory, experiment)
        sweeps.append(reader.read(source, progress, done, total))
        done += len(experiment.trials)
    return sweeps


def _experiments(tree: Tree, files: Sequence[str]) -> dict[str, _Experiment]:
    """Group the files of a tree into experiments and their trials."""
    found: dict[str, _Experiment] = {}
    for path in files:
        directory, name = posixpath.split(path)
        if _STATE.fullmatch(name):
            found.setdefault(directory, _Experiment()).states.append(path)
        elif name in _TRIAL_FILES and not _CHECKPOINT.fullmatch(last_part(directory)):
            parent = posixpath.dirname(directory)
            trials = found.setdefault(parent, _Experiment()).trials
            trials.setdefault(directory, {})[name] = path
    alone = found.get(posixpath.dirname(tree.root))
    if alone is not None:
        alone.states = tree.siblings(_STATE)
    return {
        directory: experiment
        for directory, experiment in sorted(found.items())
        if experiment.states
        or any(name in files for files in experiment.trials.values() for name in _ROWS)
    }


class _Aside:
    """The records that an experiment's storage refused, by trial id and directory."""

    def __init__(self, name: str) -> None:
        self._entries = kept_aside_of_experiment(name)
        self._matched: set[str] = set()

    def of(self, *names: str) -> Mapping[str, Any] | None:
        """Return the newest record of a trial; a full disk may have left no id."""
        for entry in reversed(self._entries):
            trial_id = str(entry.get("trial_id"))
            own = {trial_id, last_part(str(entry.get("path") or ""))}
            if own & set(names) - {""}:
                self._matched.add(trial_id)
                found: Mapping[str, Any] = entry
                return found
        return None

    def unmatched(self, experiment: str) -> Iterator[Mapping[str, Any]]:
        """Yield the newest record of each trial of this place that nobody asked for."""
        newest = {str(e.get("trial_id")): e for e in self._entries}
        for trial_id, entry in newest.items():
            place = posixpath.dirname(str(entry.get("path") or ""))
            if trial_id not in self._matched and place == experiment:
                yield entry


class _Reader:
    """Reads one experiment."""

    def __init__(self, tree: Tree, directory: str, experiment: _Experiment) -> None:
        self.tree = tree
        self.directory = directory
        self.experiment = experiment
        self.problems: list[Problem] = []
        self.records: dict[str, StopRecord] = {}
        self.curves: dict[str, Mapping[str, Curve]] = {}
        self.cut_ids: set[str] = set()
        self.aside = _Aside(last_part(directory))

    def read(self, source: str, progress: Progress, done: int, total: int) -> Sweep:
        files = {path: self._read(path) for path in self.experiment.states}
        state = read_state(files, self.problems) or ExperimentState()
        trials = []
        for position, (known, directory) in enumerate(self._pairs(state, files)):
            trials.append(self._trial(known, directory))
            progress(done + position + 1, total, "trials read")
        trials += self._lost_trials()
        metric, modes = recorded(self.records)
        return Sweep(
            source=source,
            engine="ray",
            name=self.tree.relative(self.directory) or last_part(self.directory),
            trials=settled(trials, self.cut_ids),
            curves=Curves(self.curves),
            records=self.records,
            modes=modes,
            metric=metric or state.metric,
            budget_steps=state.budget_steps,
            problems=self.problems,
        )

    def _pairs(
        self, state: ExperimentState, states: Mapping[str, bytes]
    ) -> list[tuple[TrialState | None, str]]:
        """Match the trials of the state to directories; either may be missing."""
        by_name = {last_part(path): path for path in self.experiment.trials}
        alone = posixpath.dirname(self.tree.root) == self.directory
        pairs: list[tuple[TrialState | None, str]] = []
        for known in state.trials:
            directory = by_name.pop(known.directory, "") if known.directory else ""
            directory = directory or _take(by_name, known.id)
            if directory or not alone:
                pairs.append((known, directory))
        if by_name and len(states) > 1:
            for name in restarted(states, state) & by_name.keys():
                what = "left out: it failed, and was started anew as another trial"
                file = self.tree.shown(by_name.pop(name))
                self.problems.append(Problem(file=file, what=what))
        return pairs + [(None, directory) for directory in by_name.values()]

    def _trial(self, known: TrialState | None, directory: str) -> Trial:
        files = self.experiment.trials.get(directory, {})
        rows = self._rows(files, known)
        params = self._json(files.get("params.json"))
        if not isinstance(params, Mapping):
            params = rows.last.get("config") or (known.params if known else {})
        trial_id = known.id if known else str(rows.last.get("trial_id") or "")
        trial_id = trial_id or last_part(directory)
        if trial_id in self.curves:
            trial_id = last_part(directory)
        aside = self.aside.of(trial_id, last_part(directory))
        record, steps_run = self._record(files, rows, known, aside)
        self._note_missing_rows(files, rows, steps_run)
        self.curves[trial_id] = rows.curves
        error = self._error(files, known)
        end = end_of(known, rows, record, error)
        if record is None and end.get("outcome") is Outcome.COMPLETED:
            self.cut_ids |= (
                {trial_id} if rows.last.get("done") in (True, "True") else set()
            )
        if record is not None:
            self.records[trial_id] = record
        return Trial(
            id=trial_id,
            name=last_part(directory) or (known.tag if known else ""),
            sweep=last_part(self.directory),
            params=flat_params(params if isinstance(params, Mapping) else {}),
            state=known.status if known else "",
            steps_run=steps_run,
            time_s=rows.time_s,
            usable_before=usable_before(record, rows.curves),
            source=self.tree.shown(directory or self.directory),
            began_at=rows.began_at,
            ended_at=to_number(rows.last.get("timestamp")),
            host=str(rows.last.get("hostname") or rows.last.get("node_ip") or ""),
            **end,
        )

    def _lost_trials(self) -> Iterator[Trial]:
        """Yield the trials of which the storage has nothing, and a record was kept."""
        for entry in self.aside.unmatched(self.tree.shown(self.directory)):
            record = stored_in(entry)
            trial_id = str(entry.get("trial_id") or "")
            if record is None or trial_id in self.curves:
                continue
            self.records[trial_id], self.curves[trial_id] = record, {}
            yield Trial(
                id=trial_id,
                name=last_part(str(entry.get("path") or "")),
                sweep=last_part(self.directory),
                source=self.tree.shown(self.directory),
                **end_of(None, RayRows(), record, None),
            )

    def _rows(self, files: Mapping[str, str], known: TrialState | None) -> RayRows:
        problems: list[Problem] = []
        rows = RayRows()
        if "result.json" in files:
            path = files["result.json"]
            file = self.tree.shown(path)
            try:
                with self.tree.lines(path) as lines:
                    rows = read_rows(json_rows(lines, file, problems), file)
            except OSError as error:
                problems.append(Problem(file=file, what=f"cannot be read: {error}"))
        if not rows.last and "progress.csv" in files:
            path = files["progress.csv"]
            file = self.tree.shown(path)
            text = self._read(path).decode(errors="replace")
            rows = read_rows(csv_rows(text, file, problems), file)
        if not rows.last and known and known.last_result:
            what = f"no rows of trial {known.id}: only its last result is known"
            problems.append(Problem(file=self.tree.shown(self.directory), what=what))
            rows = read_rows([(0, dict(known.last_result))], "")
        rows.problems = problems + rows.problems
        self.problems += rows.problems
        return brought_up(rows, known.last_result) if known else rows

    def _note_missing_rows(
        self, files: Mapping[str, str], rows: RayRows, steps_run: int
    ) -> None:
        """Say of a trial that it never reported, or that its rows are behind."""
        what = "trial never reported"
        if steps_run > rows.steps_run:
            what = "rows not written yet: how far it ran is known by its record"
        elif rows.last or not files or rows.problems:
            return
        source = self.tree.shown(posixpath.dirname(next(iter(files.values()))))
        self.problems.append(Problem(file=source, what=what))

    def _read(self, path: str) -> bytes:
        try:
            return self.tree.read(path)
        except OSError as error:
            what = f"cannot be read: {error}"
            self.problems.append(Problem(file=self.tree.shown(path), what=what))
            return b""

    def _json(self, path: str | None) -> Any:
        if path is None:
            return None
        try:
            return json.loads(self._read(path))
        except (ValueError, RecursionError) as error:
            what = f"left out: {error}"
            self.problems.append(Problem(file=self.tree.shown(path), what=what))
            return None

    def _record(
        self,
        files: Mapping[str, str],
        rows: RayRows,
        known: TrialState | None,
        aside: Mapping[str, Any] | None,
    ) -> tuple[StopRecord | None, int]:
        """Return the record that holds, and how far the trial ran.

        The trial's file; what the storage refused and was kept aside; the trial's
        state; its last row.
        """
        stored = self._json(files.get(RECORD_FILE))
        places = [stored, aside, known.last_result if known else None, rows.last]
        failed = self._failed(files, known)
        for place in places:
            record = stored_in(place) if isinstance(place, Mapping) else None
            if record is None:
                continue
            if not is_stale(record, place, rows, failed=failed):
                return record, steps_of(record, place, rows)
            if place is stored:
                what = "record left out: it is of an attempt that was run again"
                file = self.tree.shown(files[RECORD_FILE])
                self.problems.append(Problem(file=file, what=what))
        return None, rows.steps_run

    @staticmethod
    def _failed(files: Mapping[str, str], known: TrialState | None) -> bool:
        return known.status == "ERROR" if known else "error.txt" in files

    def _error(self, files: Mapping[str, str], known: TrialState | None) -> str | None:
        """Return ``error:<kind>`` of a trial that failed for good, else None."""
        if not self._failed(files, known):
            return None
        text = self._read(files["error.txt"]) if "error.txt" in files else b""
        for line in reversed(text.decode(errors="replace").splitlines()):
            kind = _ERROR.match(line.strip())
            if kind:
                return f"error:{kind[1].rpartition('.')[2]}"
        return "error"


def _take(by_name: dict[str, str], trial_id: str) -> str:
    """Take the directory whose name holds the trial's id."""
    for name in by_name:
        if trial_id in name:
            return by_name.pop(name)
    return ""
