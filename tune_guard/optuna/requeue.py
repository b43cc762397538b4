"""A fault of the machine: the trial fails, and its parameters get another machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tune_guard.optuna import _engine

if TYPE_CHECKING:
    from collections.abc import Mapping

    from optuna.study import Study
    from optuna.trial import FrozenTrial

    from tune_guard.notices import Notices

RETRY_OF = "tune_guard/retry_of"
"""User attribute of a re-queued trial: number of the trial that it repeats."""

ATTEMPT = "tune_guard/attempt"
"""User attribute of a re-queued trial: which run of the parameters it is, from 2."""


def attempt_of(user_attrs: Mapping[str, Any]) -> int:
    """Return which run of its parameters a trial is, from 1."""
    attempt = user_attrs.get(ATTEMPT)
    return attempt if isinstance(attempt, int) and attempt > 1 else 1


def requeue(
    study: Study, trial: FrozenTrial, most_attempts: int, notices: Notices
) -> bool:
    """Queue the trial's parameters again, unless that was done often enough.

    Args:
        study: The trial's study.

        trial: The trial that the machine broke.

        most_attempts: Runs of the same parameters in all.

        notices: Where a queue that cannot be written is named, once.

    Returns:
        Whether a trial was queued: not where one with the same parameters
        waits already. Never raises.
    """
    attempt = attempt_of(trial.user_attrs)
    if attempt >= most_attempts:
        return False
    try:
        if _engine.waiting_like(study, trial):
            return False
        study.enqueue_trial(
            trial.params, user_attrs={RETRY_OF: trial.number, ATTEMPT: attempt + 1}
        )
    except Exception as error:  # noqa: BLE001 - the fault itself must still be raised
        notices.once(
            "requeue",
            f"The parameters of trial {trial.number} could not be queued again"
            f" ({error!r}); call `study.enqueue_trial` for them by hand.",
        )
        return False
    return True
