"""What the rules counted while they watched a trial, step by step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from tune_guard.evidence.gauges import Gauge, gauges_of
from tune_guard.monitor import Monitor
from tune_guard.observation import Observation
from tune_guard.verdict import HEALTHY, Level, Verdict


class Point(NamedTuple):
    """One gauge at one step."""

    step: int
    value: float
    limit: float
    share: float


class Fired(NamedTuple):
    """A rule's trigger over a stretch of steps, under the same holds.

    Args:
        first: First step of the stretch.

        last: Last step of it.

        level: Whether it warned or stopped.

        holds: What kept it from cutting.

        times: Observations of the stretch at which it was met.
    """

    first: int
    last: int
    level: Level
    holds: tuple[str, ...]
    times: int = 1


@dataclass(slots=True)
class RuleTrace:
    """What one rule counted and found.

    Args:
        rule: Its id.

        gauges: Its numbers over time, by what they are.

        fired: When its trigger was met, and what stood against a cut.
    """

    rule: str
    gauges: dict[str, list[Point]] = field(default_factory=dict)
    fired: list[Fired] = field(default_factory=list)

    def closest(self) -> dict[str, Point]:
        """Return where each number came closest to its limit, the first of equals."""
        return {
            name: max(points, key=lambda point: point.share)
            for name, points in self.gauges.items()
        }


class Trace:
    """Follow one monitor, from which the trial is judged, and note its rules' numbers.

    Args:
        monitor: The monitor. Its witness is taken.

    Example:
        >>> from tune_guard import Policy
        >>> from tune_guard.rules import Plateau
        >>> rules = (Plateau(patience=3, holds=()),)
        >>> trace = Trace(Monitor(Policy("loss", "min", rules=rules)))
        >>> for step, loss in enumerate([3.0, 2.0, 2.0, 2.0, 1.0]):
        ...     verdict = trace.observe(step, {"loss": loss})
        >>> trace.rules["plateau"].closest()["without a gain"]
        Point(step=3, value=2.0, limit=3.0, share=0.6666666666666666)
    """

    def __init__(self, monitor: Monitor) -> None:
        self.monitor = monitor
        self.rules = {rule_id: RuleTrace(rule_id) for rule_id in monitor.detectors}
        self.verdict = HEALTHY
        self.count = 0
        self._seen: Observation | None = None
        monitor.witness = self

    def see(self, monitor: Monitor, observation: Observation) -> None:  # noqa: ARG002
        """Take what the monitor is about to judge."""
        self._seen = observation

    def forget(self) -> None:
        """Forget nothing: a trace goes on after a retry."""

    def observe(self, step: int, report: dict[str, float]) -> Verdict:
        """Let the monitor judge a report, and note what its rules counted."""
        self._seen = None
        verdict = self.monitor.observe(step, report)
        if self._seen is not None:
            self._note(verdict, self._seen)
        return verdict

    def take(self, observation: Observation) -> Verdict:
        """Let the monitor judge a stored observation, and note the same."""
        verdict = self.monitor.take(observation)
        self._note(verdict, observation)
        return verdict

    def _note(self, verdict: Verdict, observation: Observation) -> None:
        self.verdict = verdict
        self.count += 1
        for rule_id, gauge in self._gauges(observation):
            points = self.rules[rule_id].gauges.setdefault(gauge.name, [])
            points.append(Point(observation.step, *gauge[1:]))
        for found in verdict.findings:
            rule = self.rules.setdefault(found.rule, RuleTrace(found.rule))
            rule.fired.append(
                Fired(observation.step, observation.step, found.level, found.holds)
            )

    def _gauges(self, observation: Observation) -> Iterator[tuple[str, Gauge]]:
        for rule_id, detector in self.monitor.detectors.items():
            for gauge in gauges_of(detector, observation):
                yield rule_id, gauge


def stretches(fired: list[Fired]) -> list[Fired]:
    """Join triggers that follow each other under the same holds, also after gaps.

    Example:
        >>> level = Level.WARN
        >>> found = stretches([Fired(n, n, level, ("young",)) for n in (4, 5, 6)])
        >>> [(one.first, one.last, one.times) for one in found]
        [(4, 6, 3)]
    """
    joined: list[Fired] = []
    for one in fired:
        before = joined[-1] if joined else None
        if before is not None and before[2:4] == one[2:4]:
            joined[-1] = before._replace(last=one.last, times=before.times + 1)
        else:
            joined.append(one)
    return joined
