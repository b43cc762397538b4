"""The state of a Ray experiment: experiment_state-*.json of all versions.

Ray pickles what JSON cannot hold into these files. Nothing pickled is ever
loaded: those values are left where they are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tune_guard.coercion import to_number, to_step
from tune_guard.sweeps.readers.ray_rows import STEP
from tune_guard.sweeps.sweep import Problem


@dataclass(slots=True, kw_only=True)
class TrialState:
    """What the experiment's state says about one trial.

    Args:
        directory: Last part of the trial's directory; empty when it has none.
    """

    id: str
    status: str = ""
    directory: str = ""
    tag: str = ""
    params: Mapping[str, Any] = field(default_factory=dict)
    last_result: Mapping[str, Any] = field(default_factory=dict)
    criterion: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class ExperimentState:
    """The trials of an experiment, and the objective it was tuned for."""

    trials: list[TrialState] = field(default_factory=list)
    metric: str = ""

    @property
    def budget_steps(self) -> int | None:
        """Iterations that every trial was to run, when the stop criterion says."""
        budgets = {to_number(trial.criterion.get(STEP)) for trial in self.trials}
        budget = budgets.pop() if len(budgets) == 1 else None
        return int(budget) if budget is not None and 0 < budget < 2**62 else None


def read_state(
    files: Mapping[str, bytes], problems: list[Problem]
) -> ExperimentState | None:
    """Read the newest state that is whole.

    Each session of an experiment writes its own file, named by its start, with
    all trials in it.

    Args:
        files: Content of each experiment_state file by its name.

        problems: Where files that could not be read are noted.

    Returns:
        None when there is no state that can be read.
    """
    for name in sorted(files, reverse=True):
        try:
            content = json.loads(files[name])
        except (ValueError, RecursionError) as error:
            problems.append(Problem(file=name, what=f"state left out: {error}"))
            continue
        if isinstance(content, Mapping):
            return _experiment(content, name, problems)
        problems.append(Problem(file=name, what="state left out: no JSON object"))
    return None


def restarted(files: Mapping[str, bytes], newest: ExperimentState) -> set[str]:
    """Return the directories of failed trials that were started anew as others.

    ``Tuner.restore(restart_errored=True)`` gives such a trial another id, the same
    tag, and forgets the failed one. An older state that shares no trial with the
    newest is of another sweep in the same place: nothing is taken from it.

    Args:
        files: Content of each experiment_state file by its name.

        newest: What :func:`read_state` made of them.
    """
    ids = {trial.id for trial in newest.trials}
    tags = {trial.tag for trial in newest.trials if trial.tag}
    found: set[str] = set()
    for name in files:
        state = read_state({name: files[name]}, []) or ExperimentState()
        if ids & {trial.id for trial in state.trials}:
            found |= {
                trial.directory
                for trial in state.trials
                if trial.status == "ERROR" and trial.id not in ids and trial.tag in tags
            }
    return found - {"", *(trial.directory for trial in newest.trials)}


def _experiment(
    content: Mapping[str, Any], file: str, problems: list[Problem]
) -> ExperimentState:
    runner = content.get("runner_data")
    metric = runner.get("_metric") if isinstance(runner, Mapping) else None
    state = ExperimentState(metric=metric if isinstance(metric, str) else "")
    # Ray 2.5 and later: pairs of JSON texts. Before: texts, and before that: objects.
    entries = content.get("trial_data", content.get("checkpoints"))
    for position, entry in enumerate(entries if isinstance(entries, list) else []):
        trial = _trial(entry)
        if trial is None:
            what = f"trial {position} of the state cannot be read: left out"
            problems.append(Problem(file=file, what=what))
        else:
            state.trials.append(trial)
    state.trials.sort(key=_number)
    return state


def _number(trial: TrialState) -> int:
    """Return the number that Ray gave a trial: its tag begins with it."""
    number = trial.tag.partition("_")[0]
    return (to_step(number) or 0) if number.isdecimal() else 0


def _trial(entry: Any) -> TrialState | None:
    fields: dict[str, Any] = {}
    for part in entry if isinstance(entry, list) else [entry]:
        try:
            part = json.loads(part) if isinstance(part, str) else part  # noqa: PLW2901
        except (ValueError, RecursionError):
            continue
        fields |= part if isinstance(part, Mapping) else {}
    if not isinstance(fields.get("trial_id"), str):
        return None
    path = fields.get("relative_logdir") or fields.get("logdir") or ""
    return TrialState(
        id=fields["trial_id"],
        status=str(fields.get("status") or ""),
        directory=last_part(path) if isinstance(path, str) else "",
        tag=str(fields.get("experiment_tag") or ""),
        params=_mapping(fields.get("config")),
        last_result=_mapping(fields.get("last_result")),
        criterion=_mapping(fields.get("stopping_criterion")),
    )


def last_part(path: str) -> str:
    r"""Return the last part of a path, also of one written on Windows.

    Example:
        >>> last_part(r"C:\ray_results\run\trial_1"), last_part("/a/b/")
        ('trial_1', 'b')
    """
    return re.split(r"[\\/]+", path.rstrip("\\/"))[-1]


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
