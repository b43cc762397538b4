"""Turns the events of sweeps into the alerts that are worth sending."""

from __future__ import annotations

import os
import socket
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tune_guard.events import Event, SweepEnded, SweepStarted, TrialEnded, TrialStarted
from tune_guard.notify.alert import Alert, Kind
from tune_guard.notify.region import find_region
from tune_guard.notify.worth import Worth
from tune_guard.record import Outcome, StopRecord
from tune_guard.verdict import Blame

NAN_RULE = "non_finite"

DEADLY = (Outcome.GUARD, Outcome.ERROR)
"""The outcomes that count as dying. A pruner or scheduler that cuts does its job."""

MOST_PARAMS = 20_000
"""Trials whose hyperparameters are kept for comparison, in each sweep."""


@dataclass(slots=True)
class _Tally:
    """What is known of one sweep, in this process."""

    metric: str = ""
    started: int = 0
    params: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    ended: Counter[tuple[str, str]] = field(default_factory=Counter)
    dead: dict[str, list[str]] = field(default_factory=dict)
    named: dict[str, int] = field(default_factory=dict)
    nan_seen: bool = False
    time_s: float = 0.0
    saved_s: float = 0.0

    @property
    def trials(self) -> int:
        return max(self.started, self.ended.total())


class Judge:
    """Turns events into the alerts that are worth sending. One per process.

    Args:
        worth: What is worth a message.

        claim: Whether this process is the one to say something that several
            processes of a sweep may notice; called with what it is.
    """

    def __init__(
        self, worth: Worth, claim: Callable[[str], bool] | None = None
    ) -> None:
        self._worth = worth
        self._claim = claim or (lambda _: True)
        self._sweeps: dict[str, _Tally] = {}

    def consider(self, event: Event) -> list[Alert]:
        """Return the alerts that an event gives rise to, often none."""
        if isinstance(event, SweepStarted):
            self._sweeps[event.sweep] = _Tally(metric=event.metric)
        elif isinstance(event, TrialStarted):
            self._start(event)
        elif isinstance(event, TrialEnded):
            return self._kept(self._end_trial(event))
        elif isinstance(event, SweepEnded):
            return self._kept(self._end_sweep(event, whole=True))
        return []

    def leave(self) -> list[Alert]:
        """Return a summary of each sweep that this process leaves without an end."""
        alerts: list[Alert] = []
        for sweep in list(self._sweeps):
            event = SweepEnded(sweep=sweep)
            alerts += self._kept(self._end_sweep(event, whole=False))
        return alerts

    def _kept(self, alerts: Iterator[Alert]) -> list[Alert]:
        return [alert for alert in alerts if alert.kind in self._worth.kinds]

    def _tally(self, sweep: str) -> _Tally:
        return self._sweeps.setdefault(sweep, _Tally())

    def _start(self, event: TrialStarted) -> None:
        tally = self._tally(event.sweep)
        if event.trial not in tally.params:
            tally.started += 1
            if len(tally.params) < MOST_PARAMS:
                tally.params[event.trial] = event.params

    def _end_trial(self, event: TrialEnded) -> Iterator[Alert]:
        tally, record = self._tally(event.sweep), event.record
        if event.final:
            tally.ended[str(record.outcome), record.reason] += 1
            tally.saved_s += event.saved_s or 0.0
            if event.params and len(tally.params) < MOST_PARAMS:
                tally.params[event.trial] = event.params
        tally.time_s += event.time_s or 0.0
        if record.blame is Blame.INFRASTRUCTURE:
            yield _about(event, Kind.FAULT, again=not event.final)
        elif event.final and record.outcome in DEADLY and record.reason:
            yield from self._death(event, tally)

    def _death(self, event: TrialEnded, tally: _Tally) -> Iterator[Alert]:
        reason = event.record.reason
        dead = tally.dead.setdefault(reason, [])
        dead.append(event.trial)
        if reason == NAN_RULE and not tally.nan_seen:
            tally.nan_seen = True
            if self._claim(f"first_nan:{event.sweep}"):
                yield _about(event, Kind.FIRST_NAN)
        if event.record.outcome is Outcome.GUARD:
            yield _about(event, Kind.CUT)
        enough = max(self._worth.least_dead, 2 * tally.named.get(reason, 0))
        if len(dead) >= enough and len(dead) >= self._worth.share * tally.trials:
            new = dead[tally.named.get(reason, 0) :]
            tally.named[reason] = len(dead)
            yield _share_of(event, tally, dead, new)

    def _end_sweep(self, event: SweepEnded, *, whole: bool) -> Iterator[Alert]:
        tally = self._sweeps.pop(event.sweep, None)
        if tally is None or not tally.trials:
            return
        by: dict[str, dict[str, int]] = {}
        for (outcome, reason), count in tally.ended.items():
            by.setdefault(outcome, {})[reason] = count
        facts = {
            "trials": tally.trials,
            "ended": by,
            "time_s": tally.time_s or None,
            "saved_s": tally.saved_s or None,
            "metric": event.metric or tally.metric,
            "best_trial": event.best_trial,
            "best_value": event.best_value,
            "interrupted": event.interrupted,
            "process": "" if whole else f"{socket.gethostname()} {os.getpid()}",
        }
        yield Alert(kind=Kind.END, sweep=event.sweep, facts=_some(facts))


def _about(event: TrialEnded, kind: Kind, *, again: bool = False) -> Alert:
    record = event.record
    return Alert(
        kind=kind,
        sweep=event.sweep,
        trials=(event.trial,),
        reason=record.reason,
        step=record.step if record.step >= 0 else None,
        message=record.message,
        facts=_some({**_numbers(record), "again": again}),
    )


def _numbers(record: StopRecord) -> dict[str, Any]:
    return {
        "metric": record.metric,
        "value": record.value,
        "threshold": record.threshold,
        "host": record.host,
        "gpu_uuid": record.gpu_uuid,
        "attempt": record.attempt if record.attempt > 1 else None,
    }


def _share_of(
    event: TrialEnded, tally: _Tally, dead: list[str], new: list[str]
) -> Alert:
    gone = set(dead)
    region = find_region(
        [tally.params[trial] for trial in dead if trial in tally.params],
        [params for trial, params in tally.params.items() if trial not in gone],
    )
    facts: dict[str, Any] = {"dead": len(dead), "trials": tally.trials}
    if region is not None:
        facts["region"] = {
            "param": region.param,
            "relation": region.relation,
            "bound": region.bound,
            "killed": [region.killed_inside, region.killed],
            "others": [region.others_inside, region.others],
        }
    return Alert(
        kind=Kind.SHARE,
        sweep=event.sweep,
        trials=tuple(new),
        reason=event.record.reason,
        message=event.record.message,
        facts=facts,
    )


def _some(facts: Mapping[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in facts.items() if v not in (None, "", False, {})}
