"""What a study's finished trials have reached, read once each."""

from __future__ import annotations

import threading
import weakref
from dataclasses import replace
from math import isfinite
from typing import TYPE_CHECKING

from optuna.trial import TrialState

from tune_guard.optuna import _engine
from tune_guard.peers import Course, Peers

if TYPE_CHECKING:
    from optuna.storages import BaseStorage
    from optuna.study import Study
    from optuna.trial import FrozenTrial

    from tune_guard.notices import Notices
    from tune_guard.policy import Policy


class FinishedTrials:
    """The finished trials of the studies that one guard watches in this process.

    The storage is asked when a trial gives its first report, and only where a
    rule of the policy compares trials. Each trial that completed since is read
    once. A trial that was pruned or failed shows nothing.
    """

    def __init__(self, notices: Notices) -> None:
        self._notices = notices
        self._lock = threading.Lock()
        self._studies: weakref.WeakKeyDictionary[BaseStorage, dict[str, _Read]]
        self._studies = weakref.WeakKeyDictionary()

    def compared(self, study: Study, policy: Policy) -> tuple[Policy, Peers | None]:
        """Return the policy with a budget, and what finished trials have reached.

        A policy without ``budget_steps`` takes the steps of the longest trial
        that completed. There are no peers while that is unknown, where no rule
        compares, or with several objectives, for which Optuna keeps no reports.
        """
        compares = any(rule.compares for rule in policy.armed_rules())
        if not compares or len(study.directions) > 1:
            return policy, None
        try:
            with self._lock:
                studies = self._studies.setdefault(_engine.storage_of(study), {})
                read = studies.setdefault(study.study_name, _Read())
                read.catch_up(study, policy)
        except Exception as error:  # noqa: BLE001 - nothing may raise into a study
            self._notices.once(
                "finished",
                f"The finished trials could not be read ({error!r}): the rules that"
                " compare trials are off for a trial.",
            )
            return policy, None
        if read.budget_steps is None:
            return policy, None
        return replace(policy, budget_steps=read.budget_steps), read.peers


class _Read:
    """What was read of one study."""

    def __init__(self) -> None:
        self.peers = Peers()
        self.budget_steps: int | None = None
        self._numbers: set[int] = set()

    def catch_up(self, study: Study, policy: Policy) -> None:
        """Read the trials that completed since the last time."""
        done = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        budget = policy.budget_steps
        if budget is None:
            lengths = [
                max(t.intermediate_values) for t in done if t.intermediate_values
            ]
            budget = max(lengths, default=-1) + 1 or None
        if budget != self.budget_steps:
            self.peers, self._numbers = Peers(), set()
            self.budget_steps = budget
        if budget is None:
            return
        sign = 1.0 if policy.mode == "max" else -1.0
        for trial in done:
            if trial.number not in self._numbers:
                self._numbers.add(trial.number)
                own = policy.for_trial(trial.params).budget_steps or budget
                self.peers.add(str(trial.number), _course(trial, sign, own))


def _steps_run(trial: FrozenTrial) -> int:
    return max(trial.intermediate_values, default=-1) + 1


def _course(trial: FrozenTrial, sign: float, budget_steps: int) -> Course:
    course = Course()
    for step, value in sorted(trial.intermediate_values.items()):
        if isfinite(value):
            course.add(sign * value, step, budget_steps)
    return course
