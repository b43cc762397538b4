"""The stopper: judge every row, stamp it, and cut the trials that are sick."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any

from ray.tune.stopper import Stopper

from tune_guard.exceptions import ConfigError, did_you_mean
from tune_guard.monitor import Monitor
from tune_guard.notices import Notices
from tune_guard.observation import flat_keys, lookup, to_number
from tune_guard.policy import Policy
from tune_guard.ray.rows import (
    CHECKPOINTED,
    DONE,
    ITERATION,
    LOOKED_AT,
    RUNNING,
    SINCE_RESTORE,
    TOP,
    WARNED,
    Stamp,
    checked_policy,
    has_ended,
    stamp_of,
    to_row,
)
from tune_guard.ray.stored import pack_policy, print_of, unpack_policy
from tune_guard.verdict import HEALTHY

STATE_VERSION = 1
_MOST_ENDED = 1024
_ROWS_BEFORE_NOTICE = 3
_GPU_RULES = ("gpu_fault", "thermal_throttle")


class _Trial:
    """An open trial: its monitor, its newest row, and its configuration's print."""

    __slots__ = ("config", "monitor", "row")

    def __init__(self, monitor: Monitor, config: str) -> None:
        self.monitor = monitor
        self.config = config
        self.row: dict[str, Any] | None = None


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
        >>> stopper("trial", result), result["tune_guard"]["reason"]
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
        self._policy = policy
        self._step_key = step_key
        self._notices = Notices()
        self._trials: dict[str, _Trial] = {}
        self._stored: dict[str, dict[str, Any]] = {}
        self._ended: dict[str, int] = {}
        self._rows = 0

    def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
        """Judge one row of one trial and stamp it. Never raises.

        Returns:
            Whether Ray is to stop the trial.
        """
        try:
            return self._judge(trial_id, result)
        except Exception as error:  # noqa: BLE001 - nothing may raise into a sweep
            self._notices.once(
                f"stopper:{type(error).__name__}",
                f"A row of trial {trial_id} could not be judged ({error!r}): the"
                " trial goes on unguarded for this row.",
            )
            result.setdefault(TOP, dict(RUNNING))
            return False

    def stop_all(self) -> bool:
        """Return False: the guard ends trials, never the experiment."""
        return False

    # ------------------------------------------------------------ one row

    def _judge(self, trial_id: str, result: dict[str, Any]) -> bool:
        if result.get(DONE):
            self._finish(trial_id, result)
            return False
        trial = self._trials.get(trial_id) or self._open(trial_id, result)
        monitor = trial.monitor
        step = self._step(result)
        self._follow(trial, step, result)
        verdict = monitor.observe(step, result)
        if verdict.stop:
            result[TOP] = Stamp(to_row(monitor.record(host=_host(result))))
            self._free(trial_id)
            return True
        result[TOP] = Stamp(WARNED if monitor.warnings else RUNNING, monitor)
        trial.row = result
        if result.get(CHECKPOINTED):
            monitor.keyframe()
        if self._rows <= _ROWS_BEFORE_NOTICE:
            self._name_what_is_missing(result)
        return False

    def _step(self, result: Mapping[str, Any]) -> int | None:
        raw = result.get(self._step_key)
        if type(raw) is int:
            return raw
        number = to_number(lookup(result, self._step_key) if raw is None else raw)
        return None if number is None or number - number else int(number)

    def _follow(
        self, trial: _Trial, step: int | None, result: Mapping[str, Any]
    ) -> None:
        """Notice a retry, a rewind, a resume, or another trial's configuration."""
        monitor = trial.monitor
        restarted = result.get(SINCE_RESTORE) == 1
        last = monitor.last_step
        stamp = stamp_of(trial.row)
        if stamp is not None and stamp.checkpointed:
            stamp.checkpointed = False
            monitor.keyframe()
        if last is None or not (restarted or (step is not None and step < last)):
            return
        config = print_of(result.get("config")) if restarted else trial.config
        monitor.begin_attempt(
            last + 1 if step is None else step, config_changed=config != trial.config
        )
        trial.config = config

    def _finish(self, trial_id: str, result: dict[str, Any]) -> None:
        """Take the last row of a trial that ends by itself; it is not cut.

        A function that returns makes Ray show its last row a second time. That
        row was judged before, or its trial has been let go.
        """
        known = trial_id in self._trials or trial_id in self._stored
        if not known and TOP in result:
            return
        trial = self._trials.get(trial_id) or self._open(trial_id, result)
        monitor, step = trial.monitor, self._step(result)
        if trial.row is not result and (step is None or step != monitor.last_step):
            self._follow(trial, step, result)
            verdict = monitor.observe(step, result)
            if verdict.stop:
                monitor.warnings.setdefault(verdict.reason, verdict.step)
                monitor.verdict = HEALTHY
        result[TOP] = Stamp(to_row(monitor.record(host=_host(result))))
        self._free(trial_id)

    # ------------------------------------------------------- open trials

    def _open(self, trial_id: str, result: Mapping[str, Any]) -> _Trial:
        self._let_ended_go()
        if self._policy is None:
            msg = "the policy could not be read from the experiment's state"
            raise ConfigError(msg)
        monitor = Monitor(self._policy, trial_id=trial_id, notices=self._notices)
        stored = self._stored.pop(trial_id, None)
        if stored is not None:
            monitor.restore(stored["monitor"])
        elif trial_id in self._ended:
            monitor.attempt = self._ended.pop(trial_id) + 1
        config = stored["config"] if stored else print_of(result.get("config"))
        trial = self._trials[trial_id] = _Trial(monitor, config)
        return trial

    def _let_ended_go(self) -> None:
        """Look at the few trials that were not looked at for longest."""
        for trial_id in list(islice(self._trials, LOOKED_AT)):
            if has_ended(self._trials[trial_id].row):
                self._free(trial_id)
            else:
                self._trials[trial_id] = self._trials.pop(trial_id)

    def _free(self, trial_id: str) -> None:
        trial = self._trials.pop(trial_id, None)
        if trial is None:
            return
        stamp = stamp_of(trial.row)
        if stamp is not None:
            stamp.monitor = None
        self._ended[trial_id] = trial.monitor.attempt
        if len(self._ended) > _MOST_ENDED:
            del self._ended[next(iter(self._ended))]

    def _name_what_is_missing(self, result: Mapping[str, Any]) -> None:
        """Say once what the reports lack."""
        self._rows += 1
        if self._rows != _ROWS_BEFORE_NOTICE or self._policy is None:
            return
        keys = flat_keys(result)
        if lookup(result, self._step_key) is None:
            self._notices.once(
                "step_key",
                f"`{self._step_key}` was in none of the first reports: steps cannot"
                f" be told apart. {did_you_mean(self._step_key, keys)}",
            )
        armed = [r.id for r in self._policy.armed_rules() if r.id in _GPU_RULES]
        if armed and not any("gpu_" in key for key in keys):
            self._notices.once(
                "telemetry",
                f"{' and '.join(armed)} are inactive: the reports hold no GPU"
                " telemetry (`gpu_...`).",
            )

    # -------------------------------------------------------------- state

    def __getstate__(self) -> dict[str, Any]:
        """Return plain values and two texts: no class of ours is named in it."""
        live = {
            trial_id: {"monitor": trial.monitor.state(), "config": trial.config}
            for trial_id, trial in self._trials.items()
        }
        return {
            "version": STATE_VERSION,
            "policy": pack_policy(self._policy),
            "step_key": self._step_key,
            "trials": {**self._stored, **live},
            "ended": dict(self._ended),
            "notices": dict(self._notices.messages),
            "rows": self._rows,
        }

    def __setstate__(self, state: Any) -> None:
        """Take over a state. Never raises; what cannot be read starts anew.

        An error here would make Ray start the experiment over with an empty
        configuration in the same directory.
        """
        self._start(None)
        try:
            self._policy = unpack_policy(state["policy"])
            self._step_key = str(state["step_key"])
            if state["version"] != STATE_VERSION:
                return
            self._stored = {str(k): dict(v) for k, v in state["trials"].items()}
            self._ended = {str(k): int(v) for k, v in state["ended"].items()}
            self._notices.messages = dict(state["notices"])
            self._rows = int(state["rows"])
        except Exception:  # noqa: BLE001 - see above
            self._stored, self._ended = {}, {}


def _host(result: Mapping[str, Any]) -> str:
    return str(result.get("hostname") or "")
