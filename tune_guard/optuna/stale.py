"""A trial whose worker is gone: it gets a reason, and its parameters another worker."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from tune_guard.exceptions import ConfigError
from tune_guard.notices import Notices
from tune_guard.optuna.recorder import Recorder
from tune_guard.optuna.requeue import attempt_of, requeue
from tune_guard.record import Outcome, StopRecord
from tune_guard.verdict import Blame

if TYPE_CHECKING:
    from optuna.study import Study
    from optuna.trial import FrozenTrial

logger = logging.getLogger("tune_guard")


class StaleTrialCallback:
    """Say why a trial whose heartbeat has stopped has failed, and run it again.

    For the ``heartbeat_stale_trial_callback`` of an ``RDBStorage``, in place of
    Optuna's ``RetryHeartbeatStaleTrialCallback``. Optuna calls it when it has found
    such a trial and failed it; from then on the trial takes no attributes. Its
    record, with the reason ``stalled``, is stored with the study instead, as the user
    attribute ``tune_guard/stale/<number>``, from where ``load_sweep`` reads it.

    The parameters are queued again as for every fault of a machine: not more often
    than ``most_attempts``, not while a trial with the same waits, marked with the
    trial that they repeat, and without its record. A trial that the guard had cut
    for its hyperparameters before the worker died keeps that record and is not run
    again.

    Args:
        most_attempts: Runs of the same parameters in all; 1 never queues them again.

    Raises:
        ConfigError: If ``most_attempts`` is no whole number of at least 1.

    Example:
        >>> from optuna.storages import RDBStorage
        >>> storage = RDBStorage(
        ...     "sqlite:///:memory:",
        ...     heartbeat_interval=60,
        ...     heartbeat_stale_trial_callback=StaleTrialCallback(),
        ... )  # doctest: +SKIP
    """

    def __init__(self, *, most_attempts: int = 3) -> None:
        whole = isinstance(most_attempts, int) and not isinstance(most_attempts, bool)
        if not whole or most_attempts < 1:
            msg = (
                f"`most_attempts` must be a whole number >= 1, but got"
                f" {most_attempts!r}. 1 never queues parameters again."
            )
            raise ConfigError(msg)
        self._most_attempts = most_attempts
        self._notices = Notices()
        self._recorder = Recorder(self._notices)

    def __call__(self, study: Study, trial: FrozenTrial) -> None:
        """Record a stale trial and queue its parameters again. Never raises."""
        try:
            known = StopRecord.from_metadata(trial.user_attrs)
            if known is not None and known.reason and known.trial == str(trial.number):
                if known.blame is not Blame.INFRASTRUCTURE:
                    return
            else:
                record = _record_of(trial)
                logger.info("Trial %d: %s", trial.number, record.message)
                self._recorder.store_with_study(study, trial, record)
            requeue(study, trial, self._most_attempts, self._notices)
        except Exception as error:  # noqa: BLE001 - Optuna calls it in the next trial's start
            self._notices.once(
                f"stale:{type(error).__name__}",
                f"Trial {trial.number} lost its worker, and that could not be recorded"
                f" ({error!r}).",
            )


def _record_of(trial: FrozenTrial) -> StopRecord:
    step = max(trial.intermediate_values, default=-1)
    since = f" after step {step}" if step >= 0 else ""
    return StopRecord(
        reason="stalled",
        outcome=Outcome.ERROR,
        step=step,
        blame=Blame.INFRASTRUCTURE,
        message=(
            f"The worker's heartbeat stopped{since}: its process or its machine is"
            " gone. Look at its log; its memory may have run out."
        ),
        attempt=attempt_of(trial.user_attrs),
        trial=str(trial.number),
    )
