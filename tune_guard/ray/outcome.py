"""Who ended a trial, told from what Ray lets a callback see."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tune_guard.coercion import to_number
from tune_guard.nested_keys import lookup
from tune_guard.ray import _engine
from tune_guard.ray.combine import Combined
from tune_guard.ray.evidence import newest_evidence
from tune_guard.ray.rows import new_record, stamp_of, step_of
from tune_guard.ray.stopper import GuardStopper
from tune_guard.record import Outcome, StopRecord
from tune_guard.verdict import Blame, Verdict

if TYPE_CHECKING:
    from ray.tune.experiment import Trial

_LONGEST_TEXT = 300
_HOST_OOM = "running low on memory"
_GPU_OOM = "CUDA out of memory"
_OOM = "OutOfMemoryError"


def record_of(trial: Trial, **fields: Any) -> StopRecord:
    """Make a trial's record after its newest row was taken."""
    return record_at(trial, _engine.newest_row(trial), **fields)


def record_at(trial: Trial, result: dict[str, Any], **fields: Any) -> StopRecord:
    """Make a trial's record, with what its monitor knows while it is there."""
    stamp = stamp_of(result)
    monitor = stamp.monitor if stamp is not None else None
    if fields.get("outcome", Outcome.COMPLETED) is not Outcome.COMPLETED:
        fields.setdefault("step", step_of(result, monitor))
    host = str(result.get("hostname") or "")
    return new_record(monitor, trial=trial.trial_id, host=host, **fields)


def end_at_row(
    trial: Trial, result: dict[str, Any], *, stamped: bool
) -> dict[str, Any]:
    """Say who made this row the trial's last one, as fields of a record.

    Neither the guard nor the trial itself did. Ray asks in this order: stopper,
    dictionary of criteria, scheduler.

    Args:
        trial: The trial.

        result: Its last row.

        stamped: Whether a GuardStopper has seen the row: only then is it known
            that the trial did not end itself.
    """
    for key, value in trial.stopping_criterion.items():
        number = to_number(lookup(result, key))
        if number is not None and number >= value:
            return _criterion(key, f"`{key}` reached {value}.")
    owner = _engine.controller()
    scheduler = _engine.scheduler_of(owner)
    others = _engine.foreign_stoppers(owner, (GuardStopper, Combined))
    if scheduler is None:
        if others:
            return _criterion(others[0], f"Stopped by {' or '.join(others)}.")
        return (
            _criterion("unknown", "Stopped by an unknown criterion.") if stamped else {}
        )
    return by_scheduler(scheduler, result, others)


def by_scheduler(
    scheduler: Any, result: dict[str, Any], others: list[str]
) -> dict[str, Any]:
    """Return the fields of a record for a trial that a scheduler stopped."""
    name = type(scheduler).__name__ if scheduler is not None else "unknown"
    if _engine.reached_budget(scheduler, result):
        return {"message": f"Ran to the end that {name} sets."}
    doubt = f" or {' or '.join(others)}; combine() tells which" if others else ""
    return {
        "outcome": Outcome.SCHEDULER,
        "reason": f"scheduler:{name}",
        "message": f"Stopped by {name}{doubt}: other trials did better.",
    }


def _criterion(name: str, message: str) -> dict[str, Any]:
    return {
        "outcome": Outcome.CRITERION,
        "reason": f"criterion:{name}",
        "message": message,
    }


def error_fields(trial: Trial) -> dict[str, Any]:
    """Return the fields of a record for a trial that failed for good."""
    stamp = stamp_of(_engine.newest_row(trial))
    if stamp is not None and stamp.silent is not None:
        return _silent_fields(trial, stamp.silent)
    fault = _engine.fault_of(trial)
    if fault is not None:
        names = ("reason", "outcome", "step", "blame", "metric", "value", "threshold")
        kept = {name: getattr(fault, name) for name in names}
        more = {n: getattr(fault, n) for n in ("message", "gpu_uuid", "evidence")}
        return {**kept, **more}
    kind, text, machine = _engine.error_of(trial)
    kind, blame = _named(kind, text, machine=machine)
    return {
        "outcome": Outcome.ERROR,
        "reason": f"error:{kind}",
        "blame": blame,
        "message": " ".join(text.split())[:_LONGEST_TEXT],
    }


def broken_by_machine(trial: Trial) -> bool:
    """Whether the machine, and not the trial, made its last attempt fail."""
    return error_fields(trial)["blame"] is Blame.INFRASTRUCTURE


def _named(kind: str, text: str, *, machine: bool) -> tuple[str, Blame | None]:
    """Return the kind of an error and whose fault it is.

    Torch and Ray give the same name to two things: a GPU whose memory has run
    out, mostly for the size of model and batch, and a machine whose memory has,
    for which Ray's memory monitor kills whoever it picks.
    """
    if _HOST_OOM in text:
        return "host_oom", Blame.INFRASTRUCTURE
    if kind == _OOM or _GPU_OOM in text:
        return "cuda_oom", Blame.CONFIG
    return kind, Blame.INFRASTRUCTURE if machine else None


def _silent_fields(trial: Trial, verdict: Verdict) -> dict[str, Any]:
    """Return the fields of a record for a trial that the watchdog ended."""
    record = StopRecord.of(verdict, evidence=newest_evidence(trial, verdict.reason))
    names = ("reason", "outcome", "step", "blame", "metric", "value", "threshold")
    more = (*names, "message", "evidence")
    return {name: getattr(record, name) for name in more}


def experiment_stop_fields(trial: Trial, *, out_of_time: bool) -> dict[str, Any]:
    """Return the fields for a trial that ended because the experiment did."""
    stamp = stamp_of(_engine.newest_row(trial))
    cause = stamp.stopped_by if stamp is not None else ""
    if not cause and out_of_time:
        cause = "time_budget"
    if not cause and _engine.failed_fast(_engine.controller()):
        cause = "fail_fast"
    return {
        "outcome": Outcome.EXPERIMENT_STOP,
        "reason": f"experiment_stop:{cause}" if cause else "experiment_stop",
        "message": "The experiment was stopped while this trial was open.",
    }
