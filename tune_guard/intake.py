"""Which reports are observations: a new step, a moved marker, nothing to ignore."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tune_guard.coercion import to_number, to_step
from tune_guard.exceptions import brief
from tune_guard.key_watch import KeyWatch
from tune_guard.nested_keys import lookup
from tune_guard.notices import Notices
from tune_guard.observation import Observation
from tune_guard.reader import ReportReader

if TYPE_CHECKING:
    from tune_guard.policy import Policy


class Intake:
    """Read a trial's reports, and pass over those that say nothing new.

    Args:
        policy: Names the keys, the marker and what to ignore.

        notices: Where repeated steps and unusable values are named.
    """

    def __init__(self, policy: Policy, notices: Notices) -> None:
        self._policy, self._notices = policy, notices
        self.reader = ReportReader(
            policy.metric, policy.keys, policy.extra_keys(), notices
        )
        metric = policy.metric.strip()
        wanted = self.reader.wanted
        self._namesakes = [s for s, keys in wanted.items() if metric in keys]
        self.forget()

    def forget(self) -> None:
        """Start as before the first report."""
        self.first_step: int | None = None
        self.last_step: int | None = None
        self.marker: str | float | None = None
        self.key_watch = KeyWatch(self._policy, self._notices)

    def take(self, step: object, report: Mapping[str, Any]) -> Observation | None:
        """Return the observation of a report, or None where it is none."""
        policy = self._policy
        if policy.ignore_where and _matches(report, policy.ignore_where):
            return None
        between = step is None
        now = (self.last_step or 0) if between else self._advance(step)
        if now is None:
            return None
        observation = self.reader.read(now, report)
        if now < policy.warmup_steps:
            observation.__dict__["warming"] = True
        if self.key_watch.unseen:
            self.key_watch.see(observation, report, counts=not between)
        if policy.fresh_key is not None and not self._moved(report, policy.fresh_key):
            self._drop_metric(observation)
        return observation

    def _advance(self, step: object) -> int | None:
        """Go on to a step; None where it cannot be read or is none that is new."""
        now = to_step(step)
        if now is None:
            self._notices.once(
                "step",
                f"A step was reported as {brief(step)}, which is no whole"
                " number of 64 bits: such reports are not judged.",
            )
            return None
        if self.last_step is not None and now <= self.last_step:
            self._notices.once(
                "repeated",
                f"Step {now} was reported after step {self.last_step}: a step that"
                " was seen before is not judged again. Report each step once.",
            )
            return None
        self.last_step = now
        if self.first_step is None:
            self.first_step = now
        return now

    def _moved(self, report: Mapping[str, Any], fresh_key: str) -> bool:
        marker = _plain_marker(lookup(report, fresh_key))
        if marker is None or marker == self.marker:
            return False
        self.marker = marker
        return True

    def _drop_metric(self, observation: Observation) -> None:
        """Take the carried-forward value away, also where a signal is the metric."""
        names = self.reader.names
        for signal in self._namesakes:
            if names[signal] == names["metric"]:
                observation.__dict__.pop(signal, None)


def _matches(report: Mapping[str, Any], where: Mapping[str, Any]) -> bool:
    return all(_same(lookup(report, key), value) for key, value in where.items())


def _same(reported: object, value: object) -> bool:
    try:
        return bool(reported == value)
    except Exception:  # noqa: BLE001 - arrays and foreign objects compare as they like
        return False


def _plain_marker(marker: object) -> str | float | None:
    """Return a marker that can be compared and stored: a text or a finite number."""
    if isinstance(marker, (str, bool)):
        return marker
    number = to_number(marker)
    return number if number is not None and math.isfinite(number) else None
