"""The only module that touches Optuna's private attributes.

Each is named with what it is for, so that a new release of Optuna can be
checked against one page. Where there is a second way it is taken. Without a study's
storage or a trial's id there is none: the guard then leaves trials alone and says so.
"""

# ruff: noqa: SLF001 - that is what this module is for

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import optuna
from optuna.pruners import HyperbandPruner
from optuna.samplers import TPESampler
from optuna.study import StudyDirection
from optuna.trial import TrialState

if TYPE_CHECKING:
    from optuna.storages import BaseStorage
    from optuna.study import Study
    from optuna.trial import BaseTrial, FrozenTrial, Trial

    from tune_guard.rules.base import Mode

_PASSWORD = re.compile(r"(://[^:@/]*):[^@/]*@")
_CONSTRAINT = "constraints:tune_guard"
"""The system attribute that ``Trial.set_constraint("tune_guard", ...)`` writes."""


def storage_of(study: Study) -> BaseStorage:
    """Return the storage that the study writes to."""
    return study._storage


def trial_id_of(trial: FrozenTrial) -> int:
    """Return the trial's id in its storage; -1 for one that is in none."""
    return trial._trial_id


def live(trial: BaseTrial | None) -> Trial | None:
    """Return the running trial behind ``trial``, or None when it is none.

    A fixed or frozen trial is none. A distributed trial holds it on rank 0.
    """
    if trial is None or isinstance(trial, optuna.Trial):
        return trial
    delegate = getattr(trial, "_delegate", None)
    return delegate if isinstance(delegate, optuna.Trial) else None


def frozen(trial: Trial) -> FrozenTrial:
    """Return what ``Trial.should_prune`` hands to a pruner, without a query."""
    latest = getattr(trial, "_get_latest_trial", None)
    return trial.storage.get_trial(trial._trial_id) if latest is None else latest()


def current(trial: Trial) -> FrozenTrial:
    """Return the worker's own view of a running trial, without a copy."""
    cached: FrozenTrial | None = getattr(trial, "_cached_frozen_trial", None)
    return frozen(trial) if cached is None else cached


def in_optimize(study: Study) -> bool:
    """Whether this thread runs the study's trials one after another."""
    thread = getattr(study, "_thread_local", None)
    return bool(getattr(thread, "in_optimize_loop", False))


def mode_of(study: Study, metric: str) -> Mode | None:
    """Return the direction that the study gives ``metric``, or None.

    With several objectives it is known where ``Study.set_metric_names`` named it.
    """
    directions = study.directions
    if len(directions) > 1:
        names = study.metric_names or []
        if metric not in names:
            return None
        directions = [directions[names.index(metric)]]
    modes: dict[StudyDirection, Mode] = {
        StudyDirection.MINIMIZE: "min",
        StudyDirection.MAXIMIZE: "max",
    }
    return modes.get(directions[0])


def learns_constraints(study: Study) -> bool:
    """Whether the study's sampler is of the TPE family.

    Others either ignore the constraint or, like CMA-ES, warn about it.
    """
    return isinstance(study.sampler, TPESampler)


def write_attribute(study: Study, trial: FrozenTrial, key: str, value: Any) -> None:
    """Write one user attribute into the storage, whatever state the copy is of.

    ``FrozenTrial.set_user_attr`` changes the copy in memory only.
    """
    study._storage.set_trial_user_attr(trial._trial_id, key, value)


def write_constraint(study: Study, trial: FrozenTrial) -> None:
    """Mark the trial's parameters as infeasible, as ``set_constraint`` does."""
    study._storage.set_trial_system_attr(trial._trial_id, _CONSTRAINT, 1.0)


def study_attributes(study: Study) -> dict[str, Any]:
    """Return the study's system attributes, among them the dashboard's notes."""
    return dict(study._storage.get_study_system_attrs(study._study_id))


def write_study_attribute(study: Study, key: str, value: Any) -> None:
    """Write one system attribute of the study, as optuna-dashboard does."""
    study._storage.set_study_system_attr(study._study_id, key, value)


def waiting_like(study: Study, trial: FrozenTrial) -> bool:
    """Whether a trial with the same parameters waits in the study's queue."""
    waiting = study.get_trials(deepcopy=False, states=(TrialState.WAITING,))
    return any(
        trial.params in (other.params, other.system_attrs.get("fixed_params"))
        for other in waiting
    )


def local_file(study: Study) -> Path | None:
    """Return the file that the storage lies in, if it is a local one."""
    backend = _backend(study)
    path = getattr(backend, "_file_path", None)
    if path is None:
        url = _url(backend)
        path = url.database if url and url.get_backend_name() == "sqlite" else None
    return Path(path) if path and path != ":memory:" else None


def address(study: Study) -> str:
    """Return what tells the storage from others, without a password."""
    backend = _backend(study)
    url = _url(backend)
    if url is not None:
        return str(url.render_as_string(hide_password=True))
    redis = getattr(backend, "_url", None)
    if isinstance(redis, str):
        return _PASSWORD.sub(r"\1:***@", redis)
    return str(local_file(study) or type(study._storage).__name__)


def _backend(study: Study) -> Any:
    """Return what lies behind Optuna's cache or journal."""
    return getattr(study._storage, "_backend", study._storage)


def _url(backend: Any) -> Any:
    return getattr(getattr(backend, "engine", None), "url", None)


class HyperbandFace(HyperbandPruner):
    """What samplers ask of a study's Hyperband pruner, answered by the wrapped one.

    Optuna shows samplers only the trials of one bracket where
    ``isinstance(study.pruner, HyperbandPruner)`` holds.
    """

    _wrapped_pruner: Any

    def _get_bracket_id(self, study: Study, trial: FrozenTrial) -> int:
        return int(self._wrapped_pruner._get_bracket_id(study, trial))

    def _create_bracket_study(self, study: Study, bracket_id: int) -> Study:
        made: Study = self._wrapped_pruner._create_bracket_study(study, bracket_id)
        return made
