"""What a Ray sweep tells whoever listens: see :mod:`tune_guard.listeners`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tune_guard.coercion import to_number
from tune_guard.events import (
    HealthSample,
    SweepEnded,
    SweepStarted,
    TrialEnded,
    TrialStarted,
    gpu_values,
    saved_s,
)
from tune_guard.listeners import announce, is_on, wants_samples
from tune_guard.ray import _engine, outcome
from tune_guard.ray.rows import ITERATION, stamp_of, step_of
from tune_guard.record import Outcome, StopRecord

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ray.tune.experiment import Trial

    from tune_guard.policy import Policy


class Announcer:
    """Announces the events of one experiment.

    Args:
        policy: The policy of the sweep.
    """

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._sweep = ""
        self._open: set[str] = set()
        self._best: tuple[float, str] | None = None

    def started(self, trial: Trial) -> None:
        """A trial starts; a trial that starts again is not told again."""
        if not is_on():
            return
        if not self._sweep:
            self._sweep = trial.storage.experiment_dir_name if trial.storage else "ray"
            announce(SweepStarted(sweep=self._sweep, metric=self._policy.metric))
        if trial.trial_id not in self._open:
            self._open.add(trial.trial_id)
            announce(
                TrialStarted(
                    sweep=self._sweep, trial=trial.trial_id, params=_params(trial)
                )
            )

    def sample(self, trial: Trial, result: Mapping[str, Any]) -> None:
        """A trial reported: how is its GPU, and how near are its rules?"""
        if not wants_samples():
            return
        values = gpu_values(result, self._policy.keys)
        stamp = stamp_of(result)
        monitor = stamp.monitor if stamp is not None else None
        margins = monitor.margins() if monitor is not None else {}
        if values or margins:
            announce(
                HealthSample(
                    sweep=self._sweep,
                    trial=trial.trial_id,
                    step=step_of(result, monitor),
                    host=str(result.get("hostname") or ""),
                    gpu_uuid=str(result.get("gpu_uuid") or ""),
                    gpu=values,
                    margins=margins,
                )
            )

    def lost(self, trial: Trial) -> None:
        """An attempt failed and is tried again."""
        if not is_on():
            return
        record = outcome.record_of(trial, **outcome.error_fields(trial))
        self._announce_end(trial, record, final=False)

    def ended(self, trial: Trial, record: StopRecord) -> None:
        """A trial's record is stored."""
        if not is_on():
            return
        self._open.discard(trial.trial_id)
        self._rank(trial.trial_id, record)
        self._announce_end(trial, record, final=True)

    def over(self, *, interrupted: bool) -> None:
        """The experiment is over."""
        value, trial = self._best or (None, "")
        announce(
            SweepEnded(
                sweep=self._sweep,
                metric=self._policy.metric,
                best_trial=trial,
                best_value=value,
                interrupted=interrupted,
            )
        )
        self._sweep = ""

    def _announce_end(self, trial: Trial, record: StopRecord, *, final: bool) -> None:
        row = _engine.newest_row(trial)
        time_s = to_number(row.get("time_total_s"))
        spared = None
        if record.outcome is Outcome.GUARD:
            steps = to_number(row.get(ITERATION)) or 0.0
            spared = saved_s(time_s, int(steps), self._policy.budget_steps)
        announce(
            TrialEnded(
                sweep=self._sweep,
                trial=trial.trial_id,
                record=record,
                params=_params(trial),
                time_s=time_s if final else None,
                saved_s=spared,
                final=final,
            )
        )

    def _rank(self, trial_id: str, record: StopRecord) -> None:
        value = record.best_value
        if value is None:
            return
        sign = 1.0 if self._policy.mode == "max" else -1.0
        if self._best is None or sign * value > sign * self._best[0]:
            self._best = (value, trial_id)


def _params(trial: Trial) -> dict[str, Any]:
    """Return a trial's hyperparameters, nested ones as ``a/b``."""
    flat: dict[str, Any] = {}
    waiting = [("", trial.config or {})]
    while waiting:
        prefix, level = waiting.pop()
        for key, value in level.items():
            if isinstance(value, dict):
                waiting.append((f"{prefix}{key}/", value))
            else:
                flat[f"{prefix}{key}"] = value
    return flat
