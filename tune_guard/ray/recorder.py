"""How the trials of one experiment ended, put on record once for each attempt."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tune_guard.ray import _engine, outcome
from tune_guard.ray.announcer import Announcer
from tune_guard.ray.record_file import RecordFiles
from tune_guard.ray.rows import DONE, ITERATION, put_stamp, record_in, stamp_of
from tune_guard.record import REASON, Outcome, StopRecord
from tune_guard.row_stamp import to_row

if TYPE_CHECKING:
    from ray.tune.experiment import Trial

    from tune_guard.notices import Notices
    from tune_guard.policy import Policy

logger = logging.getLogger("tune_guard")


class Recorder:
    """Records the ends of an experiment's trials, and knows which are open.

    A record goes into the trial's last result, its hyperparameters and its file;
    then it is announced.

    Args:
        policy: The policy of the sweep.

        announcer: Tells whoever listens.

        notices: Where trouble is named once.
    """

    def __init__(self, policy: Policy, announcer: Announcer, notices: Notices) -> None:
        self._policy = policy
        self._announcer = announcer
        self._files = RecordFiles(notices)
        self._open: dict[str, Trial] = {}
        self._recorded: set[str] = set()
        self._restored: set[str] | None = None

    @property
    def knows_restored(self) -> bool:
        """Whether it was seen which trials a restored experiment brought."""
        return self._restored is not None

    def take_stock(self, trials: Sequence[Trial]) -> None:
        """See which trials a restored experiment brought, and which had ended."""
        self._recorded |= {t.trial_id for t in trials if _engine.is_finished(t)}
        self._restored = {t.trial_id for t in trials if not _engine.is_finished(t)}

    def begin(self, trial: Trial) -> None:
        """A trial starts, or starts again."""
        trial_id = trial.trial_id
        self._open[trial_id] = trial
        self._recorded.discard(trial_id)
        stamp = stamp_of(_engine.newest_row(trial))
        if stamp is not None:
            stamp.silent = None
        if self._restored and trial_id in self._restored:
            self._restored.discard(trial_id)
            self._files.withdraw(trial)
        self._announcer.started(trial)

    def complete_row(self, trial: Trial, result: dict[str, Any]) -> None:
        """Say in a trial's last row who made it the last, unless the guard did."""
        if record_in(result) is not None:
            return
        stamped = stamp_of(result) is not None
        fields = outcome.end_at_row(trial, result, stamped=stamped)
        put_stamp(result, to_row(outcome.record_at(trial, result, **fields)))

    def record_end(self, trial: Trial) -> None:
        """Record the end of a trial that did not fail."""
        record = record_in(_engine.newest_row(trial))
        if record is None:
            record = _unstamped_end(trial)
        self._record(trial, record)

    def record_error(self, trial: Trial) -> None:
        """Record the end of a trial that failed for good."""
        self._record(trial, outcome.record_of(trial, **outcome.error_fields(trial)))

    def ended_silently(self, trials: Sequence[Trial]) -> bool:
        """Whether trials ended of which no hook told: the experiment was stopped.

        All open trials end at once, so one look tells.
        """
        for trial in next(iter(self._open.values()), None), *trials[-1:]:
            if trial is None or not _engine.is_finished(trial):
                continue
            if trial.trial_id not in self._recorded:
                return True
        return False

    def record_experiment_stop(
        self, trials: Sequence[Trial], *, out_of_time: bool
    ) -> None:
        """Record the trials that ended with the experiment."""
        for trial in trials:
            if _engine.is_finished(trial) and trial.trial_id not in self._recorded:
                fields = outcome.experiment_stop_fields(trial, out_of_time=out_of_time)
                self._record(trial, outcome.record_of(trial, **fields))

    def record_interrupt(self) -> None:
        """Note the trials that an interrupt left open; they may be resumed."""
        interrupted = bool(self._open)
        for trial in self._open.values():
            record = outcome.record_of(
                trial,
                outcome=Outcome.INTERRUPTED,
                reason="interrupted",
                message="The sweep was interrupted; Tuner.restore resumes the trial.",
            )
            self._files.write(trial, _content(trial, record, final=False))
        self._open = {}
        self._announcer.over(interrupted=interrupted)

    def _record(self, trial: Trial, record: StopRecord) -> None:
        """Put the record into the last result, the hyperparameters and the file."""
        if trial.trial_id in self._recorded:
            return
        self._recorded.add(trial.trial_id)
        self._open.pop(trial.trial_id, None)
        if not record.objective:  # no stopper judged the trial, and named it
            metric, mode = self._policy.metric, self._policy.mode or ""
            record = replace(record, objective=metric, mode=mode)
        row = _engine.newest_row(trial)
        stamp = put_stamp(row, to_row(record))
        stamp.ended = True
        stamp.monitor = None
        _engine.keep(trial, row, _engine.controller())
        shown = record.reason or str(record.outcome)
        trial.evaluated_params = {**(trial.evaluated_params or {}), REASON: shown}
        self._files.write(trial, _content(trial, record, final=True))
        self._announcer.ended(trial, record)
        if record.outcome is Outcome.GUARD:
            logger.info("Trial %s: %s", trial.trial_id, record.message)


def _unstamped_end(trial: Trial) -> StopRecord:
    """Return the record of an end at which no row was reported."""
    row = _engine.newest_row(trial)
    if row.get(DONE):
        return outcome.record_of(trial)
    scheduler = _engine.scheduler_of(_engine.controller())
    return outcome.record_of(trial, **outcome.by_scheduler(scheduler, row, []))


def _content(trial: Trial, record: StopRecord, *, final: bool) -> dict[str, Any]:
    row = _engine.newest_row(trial)
    return {
        **record.metadata(),
        "trial_id": trial.trial_id,
        "path": str(trial.path),
        ITERATION: row.get(ITERATION),
        "final": final,
    }
