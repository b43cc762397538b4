"""One Ray experiment as a sweep: its trials by state, directory, or record alone."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tune_guard.coercion import to_number
from tune_guard.record import Outcome, StopRecord
from tune_guard.sweeps.curves import Curves
from tune_guard.sweeps.objective import recorded, usable_before
from tune_guard.sweeps.readers.kept_aside import RayKeptAside
from tune_guard.sweeps.readers.params import flat_params
from tune_guard.sweeps.readers.ray_end import end_of, settled, stored_in
from tune_guard.sweeps.readers.ray_rows import RayRows
from tune_guard.sweeps.readers.ray_state import (
    ExperimentState,
    TrialState,
    last_part,
    read_state,
    restarted,
)
from tune_guard.sweeps.readers.ray_trial_files import TrialFiles, bytes_of
from tune_guard.sweeps.sweep import Problem, Sweep, Trial

if TYPE_CHECKING:
    from tune_guard.sweeps.curves import Curve
    from tune_guard.sweeps.readers.files import Tree
    from tune_guard.sweeps.readers.progress import Progress


@dataclass(slots=True)
class Experiment:
    """The files of one experiment: its states, and its trials by directory."""

    states: list[str] = field(default_factory=list)
    trials: dict[str, dict[str, str]] = field(default_factory=dict)


class ExperimentReader:
    """Reads one experiment.

    Args:
        tree: Where it lies.

        directory: Its directory.

        experiment: Its files.
    """

    def __init__(self, tree: Tree, directory: str, experiment: Experiment) -> None:
        self.tree = tree
        self.directory = directory
        self.experiment = experiment
        self.problems: list[Problem] = []
        self.records: dict[str, StopRecord] = {}
        self.curves: dict[str, Mapping[str, Curve]] = {}
        self.cut_ids: set[str] = set()
        self.aside = RayKeptAside(last_part(directory))

    def read(self, source: str, progress: Progress, done: int, total: int) -> Sweep:
        """Return the experiment as a sweep.

        Args:
            source: What the user named.

            progress: Called with the trials read, of how many, and a word.

            done: Trials of other experiments that were read before.

            total: Trials of all experiments.
        """
        files = {
            path: bytes_of(self.tree, path, self.problems)
            for path in self.experiment.states
        }
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
        files = TrialFiles(
            self.tree,
            self.experiment.trials.get(directory, {}),
            known,
            experiment=self.directory,
            problems=self.problems,
        )
        rows = files.rows()
        params = files.json_file("params.json")
        if not isinstance(params, Mapping):
            params = rows.last.get("config") or (known.params if known else {})
        trial_id = self._id_of(known, rows, directory)
        aside = self.aside.of(trial_id, last_part(directory))
        record, steps_run = files.record(rows, aside)
        files.note_missing_rows(rows, steps_run)
        self.curves[trial_id] = rows.curves
        end = end_of(known, rows, record, files.error())
        completed = record is None and end.get("outcome") is Outcome.COMPLETED
        if completed and rows.last.get("done") in (True, "True"):
            self.cut_ids.add(trial_id)
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

    def _id_of(self, known: TrialState | None, rows: RayRows, directory: str) -> str:
        """Return the trial's id, or its directory's name where that is taken."""
        trial_id = known.id if known else str(rows.last.get("trial_id") or "")
        taken = not trial_id or trial_id in self.curves
        return last_part(directory) if taken else trial_id

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


def _take(by_name: dict[str, str], trial_id: str) -> str:
    """Take the directory whose name holds the trial's id."""
    for name in by_name:
        if trial_id in name:
            return by_name.pop(name)
    return ""
