"""What the files of one Ray trial say: its rows, its record, its error."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tune_guard.record import RECORD_FILE, StopRecord
from tune_guard.sweeps.readers.ray_end import is_stale, steps_of, stored_in
from tune_guard.sweeps.readers.ray_rows import (
    RayRows,
    brought_up,
    csv_rows,
    json_rows,
    read_rows,
)
from tune_guard.sweeps.sweep import Problem

if TYPE_CHECKING:
    from tune_guard.sweeps.readers.files import Tree
    from tune_guard.sweeps.readers.ray_state import TrialState

ROWS = ("result.json", "progress.csv")
TRIAL_FILES = frozenset({*ROWS, "params.json", "error.txt", RECORD_FILE})
_ERROR = re.compile(r"([A-Za-z_][\w.]*(?:Error|Exception|Exit|Interrupt|Fault))\b")


class TrialFiles:
    """Reads the files of one trial.

    Args:
        tree: Where they lie.

        files: Their paths by name.

        known: What the experiment's state says of the trial, if it names it.

        experiment: The experiment's directory, for messages.

        problems: Where trouble is noted.
    """

    def __init__(
        self,
        tree: Tree,
        files: Mapping[str, str],
        known: TrialState | None,
        *,
        experiment: str,
        problems: list[Problem],
    ) -> None:
        self._tree = tree
        self._files = files
        self._known = known
        self._experiment = experiment
        self._problems = problems

    def rows(self) -> RayRows:
        """Return the trial's reports, from the first of its files that holds any."""
        files, known = self._files, self._known
        problems: list[Problem] = []
        rows = RayRows()
        if "result.json" in files:
            path = files["result.json"]
            file = self._tree.shown(path)
            try:
                with self._tree.lines(path) as lines:
                    rows = read_rows(json_rows(lines, file, problems), file)
            except OSError as error:
                problems.append(Problem(file=file, what=f"cannot be read: {error}"))
        if not rows.last and "progress.csv" in files:
            path = files["progress.csv"]
            file = self._tree.shown(path)
            text = bytes_of(self._tree, path, self._problems).decode(errors="replace")
            rows = read_rows(csv_rows(text, file, problems), file)
        if not rows.last and known and known.last_result:
            what = f"no rows of trial {known.id}: only its last result is known"
            problems.append(Problem(file=self._tree.shown(self._experiment), what=what))
            rows = read_rows([(0, dict(known.last_result))], "")
        rows.problems = problems + rows.problems
        self._problems += rows.problems
        return brought_up(rows, known.last_result) if known else rows

    def note_missing_rows(self, rows: RayRows, steps_run: int) -> None:
        """Say of a trial that it never reported, or that its rows are behind."""
        what = "trial never reported"
        if steps_run > rows.steps_run:
            what = "rows not written yet: how far it ran is known by its record"
        elif rows.last or not self._files or rows.problems:
            return
        file = next(iter(self._files.values()), None)
        source = posixpath.dirname(file) if file else self._experiment
        self._problems.append(Problem(file=self._tree.shown(source), what=what))

    def json_file(self, name: str) -> Any:
        """Return what a JSON file of the trial holds, or None."""
        path = self._files.get(name)
        if path is None:
            return None
        try:
            return json.loads(bytes_of(self._tree, path, self._problems))
        except (ValueError, RecursionError) as error:
            what = f"left out: {error}"
            self._problems.append(Problem(file=self._tree.shown(path), what=what))
            return None

    def record(
        self, rows: RayRows, aside: Mapping[str, Any] | None
    ) -> tuple[StopRecord | None, int]:
        """Return the record that holds, and how far the trial ran.

        The trial's file; what the storage refused and was kept aside; the trial's
        state; its last row.
        """
        known = self._known
        stored = self.json_file(RECORD_FILE)
        places = [stored, aside, known.last_result if known else None, rows.last]
        for place in places:
            record = stored_in(place) if isinstance(place, Mapping) else None
            if record is None:
                continue
            if not is_stale(record, place, rows, failed=self._failed):
                return record, steps_of(record, place, rows)
            if place is stored:
                what = "record left out: it is of an attempt that was run again"
                file = self._tree.shown(self._files[RECORD_FILE])
                self._problems.append(Problem(file=file, what=what))
        return None, rows.steps_run

    @property
    def _failed(self) -> bool:
        known = self._known
        return known.status == "ERROR" if known else "error.txt" in self._files

    def error(self) -> str | None:
        """Return ``error:<kind>`` of a trial that failed for good, else None."""
        if not self._failed:
            return None
        path = self._files.get("error.txt")
        text = bytes_of(self._tree, path, self._problems) if path else b""
        for line in reversed(text.decode(errors="replace").splitlines()):
            kind = _ERROR.match(line.strip())
            if kind:
                return f"error:{kind[1].rpartition('.')[2]}"
        return "error"


def bytes_of(tree: Tree, path: str, problems: list[Problem]) -> bytes:
    """Return a file's bytes; none, and a problem, where it cannot be read."""
    try:
        return tree.read(path)
    except OSError as error:
        what = f"cannot be read: {error}"
        problems.append(Problem(file=tree.shown(path), what=what))
        return b""
