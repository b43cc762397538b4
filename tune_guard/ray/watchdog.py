"""The watchdog: end trials that have gone silent, whatever scheduler is in use."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ray.tune.schedulers import FIFOScheduler, TrialScheduler

from tune_guard.exceptions import ConfigError
from tune_guard.notices import Notices
from tune_guard.policy import Policy
from tune_guard.ray import _engine
from tune_guard.ray.nodes import avoid_node
from tune_guard.ray.outcome import broken_by_machine
from tune_guard.ray.rows import checked_policy, put_stamp, stamp_of, step_of
from tune_guard.ray.wrapping import WrappingScheduler
from tune_guard.row_stamp import RUNNING
from tune_guard.rules import Stalled

if TYPE_CHECKING:
    from ray.tune.experiment import Trial

    from tune_guard.verdict import Verdict

_LOOKS = 20
"""Looks within the shortest time that is too long."""

_MOST_S = 5.0
"""Seconds between two looks at most."""


@dataclass(slots=True)
class _Heard:
    """When a running attempt was heard of last.

    Args:
        actor: The attempt's process; another one is another attempt.

        at_s: When it was heard of, in seconds for which this process has listened.

        reported: Whether the attempt has reported.

        verdict: Why it was ended, if it was.
    """

    actor: Any
    at_s: float
    reported: bool = False
    verdict: Verdict | None = None


class Watchdog(WrappingScheduler):
    """End trials that report nothing any more, and let another scheduler do the rest.

    Neither a stopper nor a callback is asked about a trial that hangs; Ray would
    wait for it for ever. The watchdog ends its process, which frees the resources
    at once. To Ray that is a failure: ``max_failures`` tries the trial again, on
    another node where there is one (see below), and a searcher learns nothing
    from it. The reason ``stalled`` is recorded by the sweep's
    :class:`~tune_guard.ray.GuardCallback`. A :class:`~tune_guard.TrialGuard` in the
    training writes every thread's stack into the evidence shortly before.

    Time is counted by this process: it does not run while the sweep is
    interrupted, nor while a trial is paused or waits for resources. Nor does it run
    while the driver itself is held up, by a storage that does not answer or a slow
    callback: it hears no trial then.

    A node whose machine broke a trial, by this or by a
    :class:`~tune_guard.worker.HardwareFault`, is avoided when that trial runs
    again, as long as another node has the resources.

    Args:
        policy: Its rule :class:`~tune_guard.rules.Stalled` says how long is too long.

        wrapped_scheduler: Any scheduler; None for Ray's default.

    Raises:
        ConfigError: If the policy has no such rule, or an argument is of the
            wrong kind.

    Example:
        >>> from ray.tune.schedulers import ASHAScheduler
        >>> from tune_guard import Policy
        >>> from tune_guard.policy import DEFAULT
        >>> from tune_guard.rules import Stalled
        >>> rules = (*DEFAULT, Stalled(timeout_s=600))
        >>> policy = Policy.default("loss", "min", rules=rules)
        >>> scheduler = Watchdog(policy, ASHAScheduler())
    """

    def __init__(
        self, policy: Policy, wrapped_scheduler: TrialScheduler | None = None
    ) -> None:
        checked_policy(policy, "Watchdog")
        found = [rule for rule in policy.rules if isinstance(rule, Stalled)]
        if not found:
            msg = (
                "`policy` must have the rule `stalled`, but it has none. Add"
                " Stalled(timeout_s=...) from tune_guard.rules to its rules."
            )
            raise ConfigError(msg)
        if wrapped_scheduler is None:
            wrapped_scheduler = FIFOScheduler()  # type: ignore[no-untyped-call]
        super().__init__(wrapped_scheduler)
        self._rule = found[0]
        self._action = policy.action(self._rule.id)
        self._notices = Notices()
        self._begin()

    def _begin(self) -> None:
        shortest = min(self._rule.limit_s(reported=known) for known in (True, False))
        self._pause_s = min(_MOST_S, shortest / _LOOKS)
        self._next_s = 0.0
        self._clock: Callable[[], float] = time.monotonic
        self._asked_s: float | None = None
        self._listened_s = 0.0
        self._heard: dict[str, _Heard] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the times: they are this process's own."""
        mine = ("_heard", "_clock", "_next_s", "_asked_s", "_listened_s")
        return {name: v for name, v in self.__dict__.items() if name not in mine}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._begin()

    def choose_trial_to_run(self, tune_controller: Any) -> Trial | None:
        """Look after the running trials, then let the scheduler choose.

        Ray asks several times a second, also when nothing can be started.
        """
        now_s = self._listening_s()
        if now_s >= self._next_s and self._action != "off":
            self._next_s = now_s + self._pause_s
            try:
                self._look(tune_controller, now_s)
            except Exception as error:  # noqa: BLE001 - nothing may raise into a sweep
                self._trouble("The running trials could not be watched", error)
        return super().choose_trial_to_run(tune_controller)

    def on_trial_result(
        self, tune_controller: Any, trial: Trial, result: dict[str, Any]
    ) -> str:
        """A trial is heard of; let the scheduler decide about its result."""
        now_s = self._listening_s()
        heard = self._hear(trial, now_s)
        heard.at_s, heard.reported = now_s, True
        if heard.verdict is not None:  # sent before its process was gone
            _note(result, heard.verdict)
        return super().on_trial_result(tune_controller, trial, result)

    def on_trial_error(self, tune_controller: Any, trial: Trial) -> None:
        """A trial failed: avoid the node if that was to blame."""
        try:
            if broken_by_machine(trial):
                avoid_node(trial)
        except Exception as error:  # noqa: BLE001 - nothing may raise into a sweep
            self._trouble("A faulty node could not be avoided", error)
        super().on_trial_error(tune_controller, trial)

    def _trouble(self, what: str, error: Exception) -> None:
        self._notices.once(
            f"watchdog:{what}:{type(error).__name__}",
            f"{what} ({error!r}); the sweep goes on.",
        )

    # ------------------------------------------------------------------- looking

    def _listening_s(self) -> float:
        """Return the seconds for which this process has listened to its trials.

        A long time since the last question was spent elsewhere, and counts as a
        short one: whatever the trials reported meanwhile is not heard yet.
        """
        now_s, asked_s = self._clock(), self._asked_s
        if asked_s is not None:
            self._listened_s += min(now_s - asked_s, self._pause_s)
        self._asked_s = now_s
        return self._listened_s

    def _look(self, tune_controller: Any, now_s: float) -> None:
        running = {
            trial.trial_id: trial
            for trial in tune_controller.get_live_trials()
            if trial.status == trial.RUNNING
        }
        for trial_id in self._heard.keys() - running.keys():
            del self._heard[trial_id]
        for trial in running.values():
            heard = self._hear(trial, now_s)
            silent_s = now_s - heard.at_s
            if silent_s >= self._rule.limit_s(reported=heard.reported):
                self._end(trial, heard, silent_s)

    def _hear(self, trial: Trial, now_s: float) -> _Heard:
        """Return when a trial was heard of last: a new attempt begins now."""
        actor = _engine.process_of(trial)
        heard = self._heard.get(trial.trial_id)
        if heard is None or heard.actor != actor:
            heard = self._heard[trial.trial_id] = _Heard(actor, now_s)
        return heard

    def _end(self, trial: Trial, heard: _Heard, silent_s: float) -> None:
        """Note the reason where whoever records the end finds it, and end it."""
        if heard.verdict is not None:
            return
        row = _engine.newest_row(trial)
        step = step_of(row, None) if heard.reported else -1
        verdict = self._rule.verdict(
            silent_s=silent_s, step=step, reported=heard.reported
        )
        if self._action == "warn":
            self._notices.once(f"{trial.trial_id}:stalled", verdict.message)
            return
        heard.verdict = verdict
        _note(row, verdict)
        _engine.end_process(trial)


def _note(row: dict[str, Any], verdict: Verdict) -> None:
    """Leave the verdict in a trial's newest row."""
    stamp = stamp_of(row)
    if stamp is None:
        stamp = put_stamp(row, RUNNING)
    stamp.silent = verdict
