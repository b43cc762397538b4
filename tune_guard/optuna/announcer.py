"""What a study tells whoever listens: see :mod:`tune_guard.listeners`.

A pruner sees trials that report and those that it cuts. Who completes does so
unseen, so that a summary says how many were not cut.
"""

from __future__ import annotations

import datetime as dt
import socket
import weakref
from typing import TYPE_CHECKING, Any

from tune_guard.events import (
    HealthSample,
    SweepStarted,
    TrialEnded,
    TrialStarted,
    gpu_values,
    saved_s,
)
from tune_guard.listeners import announce, is_on, wants_samples
from tune_guard.record import Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping

    from optuna.study import Study
    from optuna.trial import FrozenTrial

    from tune_guard.monitor import Monitor
    from tune_guard.policy import Policy
    from tune_guard.record import StopRecord


class Announcer:
    """Announces the events of the studies that one guard watches in this process.

    Args:
        policy: The guard's policy.
    """

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        # Asking a study for its name asks its storage.
        self._names: weakref.WeakKeyDictionary[Study, str] = weakref.WeakKeyDictionary()
        self._ended: set[tuple[str, int]] = set()

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what was announced: another process announces its own."""
        return {"policy": self._policy}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["policy"])  # type: ignore[misc]

    def started(self, study: Study, trial: FrozenTrial) -> None:
        """A trial is seen for the first time in this process."""
        if not is_on():
            return
        if study not in self._names:
            metric = self._policy.metric
            announce(SweepStarted(sweep=self._name(study), metric=metric))
        sweep = self._name(study)
        announce(
            TrialStarted(sweep=sweep, trial=str(trial.number), params=trial.params)
        )

    def _name(self, study: Study) -> str:
        if study not in self._names:
            self._names[study] = study.study_name
        return self._names[study]

    def sample(
        self, study: Study, trial: FrozenTrial, step: int, signals: Mapping[str, Any]
    ) -> None:
        """Signals came with a report: how is the trial's GPU?"""
        if not wants_samples():
            return
        values = gpu_values(signals, self._policy.keys)
        if values:
            announce(
                HealthSample(
                    sweep=self._name(study),
                    trial=str(trial.number),
                    step=step,
                    host=socket.gethostname(),
                    gpu_uuid=str(signals.get("gpu_uuid") or ""),
                    gpu=values,
                )
            )

    def judged(self, study: Study, trial: FrozenTrial, monitor: Monitor | None) -> None:
        """A report was judged: how near are the rules?"""
        if not wants_samples() or monitor is None or monitor.last_step is None:
            return
        announce(
            HealthSample(
                sweep=self._name(study),
                trial=str(trial.number),
                step=monitor.last_step,
                host=socket.gethostname(),
                margins=monitor.margins(),
            )
        )

    def ended(self, study: Study, trial: FrozenTrial, record: StopRecord) -> None:
        """A trial was cut, and its record is stored. Told once for each trial."""
        if not is_on():
            return
        sweep = self._name(study)
        key = (sweep, trial.number)
        if key in self._ended:
            return
        self._ended.add(key)
        time_s, spared = _age_s(trial), None
        if record.outcome is Outcome.GUARD:
            steps = max(trial.intermediate_values, default=record.step) + 1
            spared = saved_s(time_s, steps, self._policy.budget_steps)
        announce(
            TrialEnded(
                sweep=sweep,
                trial=str(trial.number),
                record=record,
                params=trial.params,
                time_s=time_s,
                saved_s=spared,
            )
        )


def _age_s(trial: FrozenTrial) -> float | None:
    start = trial.datetime_start
    if start is None:
        return None
    # Optuna's times are local ones without a zone.
    return max(0.0, (dt.datetime.now(start.tzinfo) - start).total_seconds())
