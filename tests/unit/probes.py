"""Rules that fire where the loss is above a level, and monitors that watch by them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from tune_guard import Monitor, Observation, Policy
from tune_guard.notices import Notices
from tune_guard.rules.base import Context, Detector, Rule
from tune_guard.verdict import Blame, Finding, Tier


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe(Rule):
    """A rule that fires where the loss is above a level, or does as it is told."""

    id: ClassVar[str] = "probe"
    tier: ClassVar[Tier] = Tier.STABILITY
    blame: ClassVar[Blame] = Blame.CONFIG

    above: float = 10.0
    start_raises: Exception | None = None
    update_raises: Exception | None = None
    returns: Any = None

    def start(self, context: Context) -> Detector:
        """Return a detector, or raise."""
        if self.start_raises is not None:
            raise self.start_raises
        return _ProbeDetector(self, context)


class _ProbeDetector(Detector):
    __slots__ = ("steps",)

    def __init__(self, rule: Probe, context: Context) -> None:
        super().__init__(rule, context)
        self.steps: list[float] = []

    def update(self, observation: Observation) -> Finding | None:
        self.steps.append(observation.step)
        rule = self.rule
        if rule.update_raises is not None:
            raise rule.update_raises
        if rule.returns is not None:
            return rule.returns  # type: ignore[no-any-return]
        loss = observation.loss
        if loss is None or loss <= rule.above:
            return None
        return self.finding(
            observation, metric="loss", value=loss, threshold=rule.above, message="high"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineProbe(Probe):
    """The same, but its state describes the machine."""

    id: ClassVar[str] = "machine_probe"

    def start(self, context: Context) -> Detector:
        """Return a detector."""
        return _MachineProbeDetector(self, context)


class _MachineProbeDetector(_ProbeDetector):
    __slots__ = ()
    machine_bound = True


def watch(*rules: Rule, notices: Notices | None = None, **policy: Any) -> Monitor:
    """Return a monitor of a loss that is minimised."""
    fields: dict[str, Any] = {"metric": "loss", "mode": "min", **policy}
    return Monitor(Policy(rules=rules, **fields), trial_id="t1", notices=notices)


def feed(monitor: Monitor, losses: dict[int, Any]) -> list[int]:
    """Report losses by step and return the steps whose verdict was to stop."""
    return [s for s, loss in losses.items() if monitor.observe(s, {"loss": loss}).stop]


def steps_of(monitor: Monitor, rule_id: str = "probe") -> list[int]:
    """Return the steps that a probe was shown."""
    return monitor.detectors[rule_id].steps  # type: ignore[attr-defined, no-any-return]
