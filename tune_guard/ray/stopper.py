"""The stopper: judge every row, stamp it, and cut the trials that are sick."""

from __future__ import annotations

import math
import weakref
from collections import deque
from collections.abc import Mapping
from typing import Any

from ray.tune.stopper import Stopper

from tune_guard.coercion import to_number
from tune_guard.exceptions import ConfigError, did_you_mean
from tune_guard.monitor import Monitor
from tune_guard.nested_keys import flat_keys, lookup
from tune_guard.notices import Notices
from tune_guard.policy import Policy
from tune_guard.ray.open_trials import OpenTrials
from tune_guard.ray.rows import (
    CHECKPOINTED,
    DONE,
    ITERATION,
    SINCE_RESTORE,
    Stamp,
    checked_policy,
    put_stamp,
)
from tune_guard.ray.stored import pack_policy, unpack_policy
from tune_guard.ray.worker_stop import completed, told_by_worker
from tune_guard.record import STATUS, StopRecord
from tune_guard.row_stamp import RUNNING, WARNED, to_row
from tune_guard.verdict import HEALTHY

STATE_VERSION = 1
_MOST_CONDEMNED = 4


class GuardStopper(Stopper):
    """Cut the trials that are sick, and say why in their results.

    Every row gets the same five values from the first row on, so that each
    logger keeps them: ``tune_guard/status``, ``reason``, ``step``, ``blame`` and
    ``detail``. A trial that says itself that it is done is not cut. Nothing
    that happens here can end a sweep: what cannot be judged is named once in
    the log and goes on.

    Add a :class:`~tune_guard.ray.GuardCallback` to record also the trials that
    others ended. To use it together with other criteria, take
    :func:`~tune_guard.ray.combine` rather than a list: Ray's own combination
    asks the second stopper only when the first one says no.

    Args:
        policy: The rules, with metric and mode.

        step_key: Key of the step in the results; the rules count in its units.

    Raises:
        ConfigError: If the policy's mode is missing, or a value cannot be meant.

    Example:
        >>> from tune_guard import Policy
        >>> stopper = GuardStopper(Policy.default("loss", "min"))
        >>> result = {"loss": float("nan"), "training_iteration": 1}
        >>> stopper("trial", result), result["tune_guard/reason"]
        (True, 'non_finite')
    """

    def __init__(self, policy: Policy, *, step_key: str = ITERATION) -> None:
        if not isinstance(step_key, str) or not step_key.strip():
            msg = (
                f"`step_key` must be the key of the step, but got {step_key!r}."
                f" Leave it out to count in `{ITERATION}`."
            )
            raise ConfigError(msg)
        self._start(checked_policy(policy, "GuardStopper"), step_key.strip())

    def _start(self, policy: Policy | None, step_key: str = ITERATION) -> None:
        self._step_key = step_key
        self._notices = Notices()
        self._trials = OpenTrials(policy, self._notices)
        self._awake = self._trials.awake
        # Whoever records the cut finds its monitor alive, while few are kept.
        self._condemned: deque[Monitor] = deque(maxlen=_MOST_CONDEMNED)

    def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
        """Judge one row of one trial and stamp it. Never raises.

        Returns:
            Whether Ray is to stop the trial.
        """
        try:
            told = told_by_worker(result) if STATUS in result else None
            if told is not None:
                return self._take_over(trial_id, result, told)
            if result.get(DONE):
                self._finish(trial_id, result)
                return False
            return self._judge(trial_id, result)
        except Exception as error:  # noqa: BLE001 - nothing may raise into a sweep
            self._name_trouble(trial_id, error)
            if isinstance(result, dict):
                for key, value in RUNNING.items():
                    result.setdefault(key, value)
            return False

    def _name_trouble(self, trial_id: str, error: Exception) -> None:
        said = (
            f"A row of trial {trial_id} could not be judged ({error!r}): the trial goes"
            " on unguarded for this row."
        )
        if self._trials.policy is None:
            said = (
                "The policy could not be read from the experiment's state: the sweep"
                " goes on unguarded. Stop it, install the packages that its rules come"
                " from, and restore it again."
            )
        self._notices.once(f"stopper:{type(error).__name__}", said)

    def stop_all(self) -> bool:
        """Return False: the guard ends trials, never the experiment."""
        return False

    def is_against(self, trial_id: str, rule_id: str) -> bool | None:
        """Return whether a rule has cause to cut a trial, by its newest row.

        None when the policy does not have the rule: it has no say then. See
        :meth:`tune_guard.Policy.watching`.
        """
        policy = self._trials.policy
        if policy is None or all(r.id != rule_id for r in policy.armed_rules()):
            return None
        trial = self._awake.get(trial_id)
        return trial is not None and trial.monitor.is_against(rule_id)

    # ------------------------------------------------------------ one row

    def _judge(self, trial_id: str, result: dict[str, Any]) -> bool:
        trial = self._awake.get(trial_id) or self._trials.open(trial_id, result)
        monitor = trial.monitor
        step = result.get(self._step_key)
        if type(step) is not int:
            step = self._odd_step(result)
        if result.get(SINCE_RESTORE) == 1 or trial.is_behind(step):
            trial.follow(step, result)
        verdict = monitor.observe(step, result)
        if verdict is not HEALTHY and verdict.stop:
            stamp = put_stamp(result, to_row(monitor.record(host=_host(result))))
            stamp.judge = weakref.ref(monitor)
            self._condemned.append(monitor)
            self._trials.free(trial_id)
            return True
        result.update(WARNED if monitor.warnings else RUNNING)
        stamp = result[STATUS] = Stamp(result[STATUS])
        stamp.monitor, stamp.checkpointed = monitor, False
        trial.row, trial.stamp = result, stamp
        if result.get(CHECKPOINTED):
            monitor.keyframe()
        return False

    def _take_over(
        self, trial_id: str, result: dict[str, Any], record: StopRecord
    ) -> bool:
        """Stop a trial that its worker found sick, for the worker's reason."""
        trial = self._awake.get(trial_id) or self._trials.open(trial_id, result)
        trial.follow(self._odd_step(result), result)
        put_stamp(result, to_row(completed(record, trial_id, trial.monitor)))
        self._trials.free(trial_id)
        return True

    def _odd_step(self, result: Mapping[str, Any]) -> int | None:
        """Return a step that is no plain integer; None when there is none."""
        raw = lookup(result, self._step_key)
        if raw is None and not result.get(DONE):
            self._notices.once(
                "step_key",
                f"`{self._step_key}` is missing in a result: such results count for"
                " the step before. " + did_you_mean(self._step_key, flat_keys(result)),
            )
        number = to_number(raw)
        return None if number is None or not math.isfinite(number) else int(number)

    def _finish(self, trial_id: str, result: dict[str, Any]) -> None:
        """Take the last row of a trial that ends by itself; it is not cut.

        A function that returns makes Ray show its last row a second time. That
        row was judged before, or its trial has been let go.
        """
        if trial_id not in self._trials and STATUS in result:
            return
        trial = self._awake.get(trial_id) or self._trials.open(trial_id, result)
        monitor, step = trial.monitor, self._odd_step(result)
        if trial.row is not result and (step is None or step != monitor.last_step):
            trial.follow(step, result)
            verdict = monitor.observe(step, result)
            if verdict.stop:
                monitor.warnings.setdefault(verdict.reason, verdict.step)
                monitor.verdict = HEALTHY
        monitor.finish()
        put_stamp(result, to_row(monitor.record(host=_host(result))))
        self._trials.free(trial_id)

    # -------------------------------------------------------------- state

    def __getstate__(self) -> dict[str, Any]:
        """Return plain values and bytes: no class of ours is named in it."""
        return {
            "version": STATE_VERSION,
            "policy": pack_policy(self._trials.policy),
            "step_key": self._step_key,
            "notices": dict(self._notices.messages),
            **self._trials.state(),
        }

    def __setstate__(self, state: Any) -> None:
        """Take over a state. Never raises; what cannot be read starts anew.

        An error here would make Ray start the experiment over with an empty
        configuration in the same directory.
        """
        self._start(None)
        try:
            self._start(unpack_policy(state["policy"]), str(state["step_key"]))
            if state["version"] != STATE_VERSION:
                return
            self._notices.messages.update(state["notices"])
            self._trials.restore(state)
        except Exception:  # noqa: BLE001, S110 - see above
            pass


def _host(result: Mapping[str, Any]) -> str:
    return str(result.get("hostname") or "")
