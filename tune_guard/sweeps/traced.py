"""One recorded trial under a policy, with everything that its rules counted."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from tune_guard.evidence.trace import Trace
from tune_guard.exceptions import ConfigError, did_you_mean
from tune_guard.monitor import Monitor
from tune_guard.notices import Notices
from tune_guard.record import StopRecord
from tune_guard.sweeps.objective import resolve
from tune_guard.sweeps.replay import reports, watched
from tune_guard.sweeps.replayed import Request
from tune_guard.sweeps.sweep import Sweep, Trial


@dataclass(frozen=True, slots=True, kw_only=True)
class Traced:
    """A recorded trial, and how near each rule came to cutting it.

    Args:
        trial: The trial.

        record: Its stored record, if it has one.

        trace: What the rules counted, up to the stop if there was one.

        last_step: Step of the last reading that is stored, or -1.
    """

    trial: Trial
    record: StopRecord | None
    trace: Trace
    last_step: int = -1


def trace_trial(
    sweeps: Sequence[Sweep], name: str, request: Request, notices: Notices
) -> Traced:
    """Run a policy over one trial of what was loaded.

    The trial is judged by itself: rules that compare trials stay inactive.

    Args:
        sweeps: What a source holds.

        name: The trial's id, its name, its number in its sweep, or the start of id or
            name if only one begins so.

        request: The policy; without one, the default policy for the sweep.

        notices: Where missing keys are named.

    Raises:
        ConfigError: If no trial, or more than one, is meant; or if the objective
            is not known.
    """
    sweep, trial = _find(sweeps, name)
    sweep = _resolved(sweep, request)
    policy = dataclasses.replace(request.policy_for(sweep), holdout=0.0)
    trace = Trace(Monitor(policy, trial_id=trial.id, notices=notices))
    curves = watched(sweep.curves.of(trial.id), policy)
    if curves:
        for step, report in reports(curves):
            if trace.observe(step, report).stop:
                break
    last = max((curve.steps[-1] for curve in curves.values() if curve), default=-1)
    record = sweep.records.get(trial.id)
    return Traced(trial=trial, record=record, trace=trace, last_step=last)


def _resolved(sweep: Sweep, request: Request) -> Sweep:
    """Rank a sweep by the objective that is asked for, recorded, or the policy's."""
    policy, metric, mode = request.policy, request.metric, request.mode
    if policy is not None and not metric and not sweep.metric:
        metric, mode = policy.metric, mode or policy.mode or ""
    return resolve(sweep, metric, mode)


def _find(sweeps: Sequence[Sweep], name: str) -> tuple[Sweep, Trial]:
    every = [(sweep, trial) for sweep in sweeps for trial in sweep.trials]
    ways = (
        lambda t: name in (t.id, t.name),
        lambda t: name.isdecimal() and _number(t) == name.lstrip("0"),
        lambda t: t.id.startswith(name) or t.name.startswith(name),
    )
    for is_meant in ways:
        found = [pair for pair in every if is_meant(pair[1])]
        if len(found) == 1:
            return found[0]
        if found:
            names = ", ".join(f"{s.name}: {t.name or t.id}" for s, t in found[:5])
            msg = f"`{name}` may be any of {len(found)} trials ({names} ...)."
            raise ConfigError(msg + " Name one in full, or the study by --study.")
    known = [trial.name or trial.id for _, trial in every]
    msg = f"There is no trial `{name}`. {did_you_mean(name, known)}"
    raise ConfigError(msg)


def _number(trial: Trial) -> str | None:
    """Return the number that ends a trial's id: 3 of Ray's ``0e268_00003``."""
    number = trial.id.rpartition("_")[2]
    return number.lstrip("0") if number.isdecimal() else None
