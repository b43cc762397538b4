"""Events as the engines announce them."""

from __future__ import annotations

from typing import Any

from tune_guard.events import TrialEnded
from tune_guard.record import Outcome, StopRecord
from tune_guard.verdict import Blame

SWEEP = "mnist"


def ended(trial: str, reason: str, blame: Blame | None, **more: Any) -> TrialEnded:
    """Return the end of a trial that the guard cut."""
    record = StopRecord(
        reason=reason,
        outcome=Outcome.GUARD if reason else Outcome.COMPLETED,
        step=more.pop("step", 3),
        blame=blame,
        metric=more.pop("metric", "loss"),
        value=more.pop("value", float("nan")),
        message=more.pop("message", "loss = nan at step 3. Lower the learning rate."),
        trial=trial,
        host=more.pop("host", "node7"),
    )
    return TrialEnded(
        sweep=more.pop("sweep", SWEEP), trial=trial, record=record, **more
    )


def fault(trial: str, **more: Any) -> TrialEnded:
    """Return a trial that the machine broke: worth a message at once."""
    message = more.pop("message", "GPU 3 fell off the bus at step 3. Drain the node.")
    return ended(trial, "gpu_fault", Blame.INFRASTRUCTURE, message=message, **more)


def nan(trial: str, **more: Any) -> TrialEnded:
    """Return a trial whose loss went NaN."""
    return ended(trial, "non_finite", Blame.CONFIG, **more)


def plateau(trial: str, **more: Any) -> TrialEnded:
    """Return a trial that stood still: not worth a message."""
    return ended(trial, "plateau", Blame.CONFIG, **more)


def completed(trial: str, **more: Any) -> TrialEnded:
    """Return a trial that ran to its end."""
    return ended(trial, "", None, **more)
