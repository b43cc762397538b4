"""A GPU that has failed: lost, out of order, or with errors in its memory."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import ClassVar

from tune_guard.exceptions import ConfigError
from tune_guard.observation import Observation
from tune_guard.rules.base import Context, Detector, Rule
from tune_guard.verdict import Blame, Finding, Tier

FATAL_XIDS = {
    48: "a double-bit ECC error",
    74: "an NVLink error",
    79: "the GPU has fallen off the bus",
    95: "an uncontained ECC error",
    119: "the GSP does not answer",
    120: "a GSP error",
    140: "an unrecovered ECC error",
}
"""XIDs after which DCGM's health checks always fail a GPU."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuFault(Rule):
    """Stop when the GPU is lost, reports a fatal XID, or an uncorrectable error.

    Fires at the first sign: ``gpu_lost``; a ``gpu_xid`` among ``xids``; or a
    ``gpu_ecc_uncorrected`` above its first reading. XIDs that a program causes
    by itself (13, 31, 43, 45, 68, 109) say nothing about the machine and are not
    among them. The stop is blamed on the infrastructure: the trial is to be run
    again. Without telemetry in the reports the rule is inactive.

    Args:
        xids: XIDs that stop the trial.

    Raises:
        ConfigError: If ``xids`` holds anything but XIDs.

    Source: the XIDs at which NVIDIA's DCGM always fails a GPU; those that
        NVIDIA's Kubernetes device plugin ignores as the application's.

    Example:
        >>> from tune_guard import Monitor, Policy
        >>> monitor = Monitor(Policy(metric="loss", mode="min", rules=(GpuFault(),)))
        >>> reports = [{"loss": 1.0, "gpu_xid": xid} for xid in (31, 79)]
        >>> [monitor.observe(i, report).stop for i, report in enumerate(reports)]
        [False, True]
    """

    id: ClassVar[str] = "gpu_fault"
    tier: ClassVar[Tier] = Tier.FATAL
    blame: ClassVar[Blame] = Blame.INFRASTRUCTURE
    needs: ClassVar[tuple[str, ...]] = (
        "gpu_lost",
        "gpu_xid",
        "gpu_ecc_uncorrected",
        "gpu_reasons",
    )

    xids: tuple[int, ...] = tuple(FATAL_XIDS)

    def __post_init__(self) -> None:
        listed = isinstance(self.xids, (tuple, list))
        if not listed or not all(type(xid) is int and xid > 0 for xid in self.xids):
            msg = (
                f"gpu_fault: `xids` must be a list of XIDs, but got {self.xids!r}."
                " Leave it out for those that are always fatal."
            )
            raise ConfigError(msg)
        object.__setattr__(self, "xids", tuple(self.xids))

    def start(self, context: Context) -> Detector:
        """Return a fresh detector for one trial."""
        return _GpuFaultDetector(self, context)


class _GpuFaultDetector(Detector):
    __slots__ = ("ecc_at_start",)

    machine_bound = True

    def __init__(self, rule: GpuFault, context: Context) -> None:
        super().__init__(rule, context)
        self.ecc_at_start: float | None = None

    def update(self, observation: Observation) -> Finding | None:
        if observation.gpu_lost:
            return self._found(observation, "gpu_lost", 1.0, None, "the GPU is lost")
        xid = observation.gpu_xid
        if xid is not None and xid in self.rule.xids:
            meaning = FATAL_XIDS.get(int(xid), "listed as fatal")
            seen = f"the driver reported XID {xid:.0f}, {meaning}"
            return self._found(observation, "gpu_xid", xid, None, seen)
        errors = observation.gpu_ecc_uncorrected
        if errors is None or not isfinite(errors):
            return None
        return self._judge_memory(errors, observation)

    def _judge_memory(self, errors: float, observation: Observation) -> Finding | None:
        """Errors from before the trial are no fault of now; a reset counts anew."""
        before = self.ecc_at_start
        if before is None or errors < before:
            self.ecc_at_start = errors
            return None
        if errors == before:
            return None
        seen = f"uncorrectable memory errors rose from {before:.0f} to {errors:.0f}"
        return self._found(observation, "gpu_ecc_uncorrected", errors, before, seen)

    def _found(
        self,
        observation: Observation,
        signal: str,
        value: float,
        threshold: float | None,
        seen: str,
    ) -> Finding:
        return self.finding(
            observation,
            metric=self.context.name_of(signal),
            value=value,
            threshold=threshold,
            message=(
                f"At step {observation.step} {seen}. Run the trial on another GPU, and"
                " have this one reset and tested."
            ),
        )
