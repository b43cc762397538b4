"""The callback: record the end of every trial, whoever ended it."""

# ruff: noqa: ARG002 - the arguments of the hooks are Ray's

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ray.tune import Callback

from tune_guard.coercion import to_number
from tune_guard.evidence.settings import Evidence, checked
from tune_guard.notices import Notices
from tune_guard.policy import Policy
from tune_guard.ray import _engine, setup_checks
from tune_guard.ray import evidence as bundles
from tune_guard.ray.announcer import Announcer
from tune_guard.ray.recorder import Recorder
from tune_guard.ray.rows import DONE, checked_policy, put_stamp, stamp_of
from tune_guard.record import STATUS
from tune_guard.row_stamp import to_row

if TYPE_CHECKING:
    from ray.tune.experiment import Trial

_EVIDENCE = Evidence()


class GuardCallback(Callback):
    """Record why every trial of a sweep ended.

    Whoever ended it: the guard, the trial itself, the scheduler, a criterion,
    an error, the end of the experiment. The record lies in ``tune_guard.json`` in
    the trial's directory, written straight to storage; in the trial's last
    result, from where ``Result.metrics`` and a restored experiment show it; and
    in TensorBoard's table of hyperparameters. ``result.json`` holds it for a trial
    that was stopped; after a function has returned, or failed, Ray writes no row
    more, and the last one still says ``running``. Interrupted by Ctrl-C, a trial's
    file says ``interrupted`` until it is resumed.

    Before a trial is cut, the numbers that led to it are kept in its directory,
    in ``tune_guard_evidence``; ``tune-guard explain`` judges them again. A
    :class:`~tune_guard.TrialGuard` in the training loop keeps more.

    Nothing that happens here can end a sweep. A storage that refuses costs a
    quarter of a second, one warning, and puts the record into a local file.

    Args:
        policy: The policy that the sweep's GuardStopper has.

        evidence: What is kept of a trial that is cut; None for nothing. The
            driver spends 2 seconds on it at most.

    Raises:
        ConfigError: If the policy's mode is missing, or a value cannot be meant.

    Example:
        >>> from tune_guard import Policy
        >>> callback = GuardCallback(Policy.default("loss", "min"))
    """

    def __init__(
        self, policy: Policy, *, evidence: Evidence | None = _EVIDENCE
    ) -> None:
        self._policy = checked_policy(policy, "GuardCallback")
        self._evidence = checked(evidence)
        self._notices = Notices()
        self._announcer = Announcer(self._policy)
        self._recorder = Recorder(self._policy, self._announcer, self._notices)
        self._time_budget_s: float | None = None
        self._began_s = time.monotonic()

    def __getstate__(self) -> dict[str, Any]:
        """Leave the trials out: they belong to the running experiment."""
        return {"policy": self._policy, "evidence": self._evidence}

    def __setstate__(self, state: dict[str, Any]) -> None:
        evidence = state.get("evidence", _EVIDENCE)
        self.__init__(state["policy"], evidence=evidence)  # type: ignore[misc]

    # ------------------------------------------------------------ Ray's hooks

    def setup(self, *args: Any, **info: Any) -> None:
        """Note when the experiment began and how long it may take."""
        self._began_s = time.monotonic()
        self._safely(self._take_budget, info)

    def on_step_begin(self, iteration: int, trials: list[Trial], **info: Any) -> None:
        """At the first step, see which trials a restored experiment brought."""
        if not self._recorder.knows_restored:
            self._safely(self._recorder.take_stock, trials)
            self._safely(_engine.survive_memory_kills, _engine.controller())
            self._safely(setup_checks.name_other_mode, self._policy, self._notices)
            self._safely(setup_checks.name_bare_optuna_search, self._notices)

    def on_step_end(self, iteration: int, trials: list[Trial], **info: Any) -> None:
        """Notice when the experiment was stopped: Ray names no trial then."""
        self._safely(self._record_experiment_stop, trials)

    def on_trial_start(
        self, iteration: int, trials: list[Trial], trial: Trial, **info: Any
    ) -> None:
        """A trial starts, or starts again."""
        self._safely(self._recorder.begin, trial)

    def on_trial_result(
        self,
        iteration: int,
        trials: list[Trial],
        trial: Trial,
        result: dict[str, Any],
        **info: Any,
    ) -> None:
        """Complete the last row of a trial, before the loggers write it."""
        if STATUS not in result:
            self._safely(setup_checks.name_unjudged, self._notices)
        if result.get(DONE):
            self._safely(self._keep_evidence, trial, result)
            self._safely(self._recorder.complete_row, trial, result)
        self._safely(self._announcer.sample, trial, result)

    def on_trial_recover(
        self, iteration: int, trials: list[Trial], trial: Trial, **info: Any
    ) -> None:
        """An attempt failed; the trial is tried again."""
        self._safely(self._announcer.lost, trial)

    def on_trial_complete(
        self, iteration: int, trials: list[Trial], trial: Trial, **info: Any
    ) -> None:
        """Record the end of a trial that did not fail."""
        self._safely(self._recorder.record_end, trial)

    def on_trial_error(
        self, iteration: int, trials: list[Trial], trial: Trial, **info: Any
    ) -> None:
        """Record the end of a trial that failed for good."""
        self._safely(self._recorder.record_error, trial)

    def on_checkpoint(
        self,
        iteration: int,
        trials: list[Trial],
        trial: Trial,
        checkpoint: Any,
        **info: Any,
    ) -> None:
        """Let the stopper know to which row a retry will return."""
        self._safely(_mark_checkpoint, trial)

    def on_experiment_end(self, trials: list[Trial], **info: Any) -> None:
        """Note the trials that an interrupt left open; they may be resumed."""
        self._safely(self._recorder.record_interrupt)

    def _safely(self, do: Callable[..., None], *args: Any) -> None:
        try:
            do(*args)
        except Exception as error:  # noqa: BLE001 - nothing may raise into a sweep
            self._notices.once(
                f"callback:{do.__name__}:{type(error).__name__}",
                f"A trial's end could not be recorded ({error!r}); the sweep goes on.",
            )

    # --------------------------------------------------------- what they do

    def _take_budget(self, info: dict[str, Any]) -> None:
        budget = info.get("time_budget_s")
        seconds = getattr(budget, "total_seconds", None)
        self._time_budget_s = to_number(seconds() if seconds else budget)

    def _keep_evidence(self, trial: Trial, result: dict[str, Any]) -> None:
        """Keep the numbers of a trial that the stopper has just condemned."""
        stamp = stamp_of(result)
        monitor = stamp.judge() if stamp is not None and stamp.judge else None
        if stamp is None or monitor is None or self._evidence is None:
            return
        record = monitor.record(host=str(result.get("hostname") or ""))
        name = bundles.keep(self._evidence, trial, record, monitor, self._notices)
        stamp.judge = None
        put_stamp(result, to_row(replace(record, evidence=name)))

    def _record_experiment_stop(self, trials: Sequence[Trial]) -> None:
        if not self._recorder.ended_silently(trials):
            return
        spent_s = time.monotonic() - self._began_s
        budget_s = self._time_budget_s
        out_of_time = budget_s is not None and spent_s >= budget_s
        self._recorder.record_experiment_stop(trials, out_of_time=out_of_time)


def _mark_checkpoint(trial: Trial) -> None:
    stamp = stamp_of(_engine.newest_row(trial))
    if stamp is not None:
        stamp.checkpointed = True
