"""A new trial's monitor: the policy, as its study and its parameters complete it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tune_guard.evidence.window import Window
from tune_guard.monitor import Monitor
from tune_guard.optuna import _engine
from tune_guard.optuna.finished import FinishedTrials
from tune_guard.optuna.requeue import attempt_of

if TYPE_CHECKING:
    from optuna.study import Study
    from optuna.trial import FrozenTrial

    from tune_guard.notices import Notices
    from tune_guard.policy import Policy


class Monitors:
    """Makes the monitors of one guard in this process.

    Args:
        policy: The rules; without a mode it takes each study's direction.

        notices: Where each trouble is named once.

        keeps_window: Whether a monitor keeps its newest observations as evidence.
    """

    def __init__(self, policy: Policy, notices: Notices, *, keeps_window: bool) -> None:
        self._policy = policy
        self._notices = notices
        self._keeps_window = keeps_window
        self._finished = FinishedTrials(notices)

    def begin(self, study: Study, trial: FrozenTrial) -> Monitor | None:
        """Return a monitor for a trial; None where nobody knows the direction."""
        policy = self._policy_for(study)
        if policy is None:
            return None
        policy, peers = self._finished.compared(study, policy)
        monitor = Monitor(
            policy.for_trial(trial.params),
            trial_id=str(trial.number),
            notices=self._notices,
            peers=peers,
        )
        monitor.attempt = attempt_of(trial.user_attrs)
        monitor.witness = Window() if self._keeps_window else None
        return monitor

    def _policy_for(self, study: Study) -> Policy | None:
        """Return the policy with a mode: its own, else the study's direction."""
        policy, name = self._policy, study.study_name
        mode = _engine.mode_of(study, policy.metric)
        if mode is None and policy.mode is None:
            self._notices.once(
                f"mode:{name}",
                f"Study `{name}` does not say which direction `{policy.metric}` has, so"
                " the guard is off there. Write Policy.default"
                f'("{policy.metric}", "min"), or name it in `study.set_metric_names`.',
            )
            return None
        if mode is not None and policy.mode not in (None, mode):
            self._notices.once(
                f"mode:{name}",
                f"The policy's mode is {policy.mode!r}, but study `{name}` has the"
                f" direction {mode!r}: the guard uses {policy.mode!r}, Optuna uses"
                f" {mode!r}. Correct one of them.",
            )
        return policy if mode is None else policy.with_mode(mode)
