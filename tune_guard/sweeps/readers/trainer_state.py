"""Read what Hugging Face's Trainer leaves: ``trainer_state.json`` in checkpoints."""

from __future__ import annotations

import json
import posixpath
import re
from typing import TYPE_CHECKING, Any

from tune_guard.coercion import to_number, to_step
from tune_guard.record import Outcome
from tune_guard.sweeps.curves import Curve, Curves
from tune_guard.sweeps.readers.params import flat_params
from tune_guard.sweeps.readers.rows import RowTable, by_step
from tune_guard.sweeps.sweep import UNKNOWN, Problem, Sweep, Trial

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tune_guard.sweeps.readers.files import Tree
    from tune_guard.sweeps.readers.progress import Progress

STATE_FILE = "trainer_state.json"
_CHECKPOINT = re.compile(r"checkpoint-(\d+)")


def read_trainer_states(
    source: str, tree: Tree, files: Sequence[str], progress: Progress
) -> list[Sweep]:
    """Read the newest ``trainer_state.json`` of every run: one trial each.

    Every checkpoint of a run holds one, with all that was logged up to it.

    Args:
        source: What the user named.

        tree: Where the files lie.

        files: All files of the tree.

        progress: Called as trials are read.
    """
    runs = _runs(files)
    trials: list[Trial] = []
    curves: dict[str, Mapping[str, Curve]] = {}
    problems: list[Problem] = []
    for run, path in runs.items():
        trial_id = tree.relative(run) or posixpath.basename(run)
        state = _state(tree, path, problems)
        if state is not None:
            curves[trial_id], last = _curves(state, tree.shown(path), problems)
            trials.append(_trial(trial_id, state, last, tree.shown(run)))
        progress(len(curves), len(runs), "trials read")
    if not trials:
        return []
    return [
        Sweep(
            source=source,
            engine="transformers",
            name=posixpath.basename(tree.root),
            trials=tuple(trials),
            curves=Curves(curves),
            problems=problems,
        )
    ]


def _runs(files: Sequence[str]) -> dict[str, str]:
    """Return the newest state file of each run by the run's directory."""
    newest: dict[str, tuple[float, str]] = {}
    for path in files:
        folder, name = posixpath.split(path)
        if name != STATE_FILE:
            continue
        checkpoint = _CHECKPOINT.fullmatch(posixpath.basename(folder))
        run = posixpath.dirname(folder) if checkpoint else folder
        # The state that lies in the run's own directory was written at its end.
        age = float(checkpoint[1]) if checkpoint else float("inf")
        newest[run] = max(newest.get(run, (-1.0, "")), (age, path))
    return {run: path for run, (_, path) in newest.items()}


def _state(tree: Tree, path: str, problems: list[Problem]) -> Mapping[str, Any] | None:
    try:
        state = json.loads(tree.read(path))
    except (ValueError, RecursionError) as error:
        problems.append(Problem(file=tree.shown(path), what=f"left out: {error}"))
        return None
    return state if isinstance(state, dict) else {}


def _curves(
    state: Mapping[str, Any], file: str, problems: list[Problem]
) -> tuple[dict[str, Curve], int]:
    """Return the curves and the last step that was logged."""
    table = RowTable(frozenset({"step"}))
    for line, step, values in by_step(_rows(state.get("log_history"))):
        table.add(step, None, values, line)
    # The place of a row in the log is no line of the file, so none is named.
    problems += [
        Problem(file=file, what=p.what, lines=p.lines, repaired=p.repaired)
        for p in table.problems(file)
    ]
    return table.curves(), table.steps[-1] if table.steps else 0


def _rows(history: Any) -> Iterator[tuple[int, int, dict[str, Any]]]:
    for position, row in enumerate(history if isinstance(history, list) else []):
        step = to_step(row.get("step")) if isinstance(row, dict) else None
        if step is not None:
            yield position, step, row


def _trial(trial_id: str, state: Mapping[str, Any], last: int, source: str) -> Trial:
    params = state.get("trial_params")
    done, planned = (
        to_number(state.get("global_step")),
        to_number(state.get("max_steps")),
    )
    completed = done is not None and planned is not None and 0 < planned <= done
    return Trial(
        id=trial_id,
        name=str(state.get("trial_name") or trial_id),
        params=flat_params(params) if isinstance(params, dict) else {},
        outcome=Outcome.COMPLETED if completed else None,
        reason="" if completed else UNKNOWN,
        steps_run=max(last, to_step(done) or 0),
        source=source,
    )
