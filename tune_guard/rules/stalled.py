"""A trial that is silent: no report comes any more, and nobody would notice."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from tune_guard.observation import Observation
from tune_guard.rules.base import Context, Detector, Rule
from tune_guard.verdict import Blame, Finding, Level, Tier, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Stalled(Rule):
    """Stop when a running trial reports nothing for a time.

    Fires when ``timeout_s`` seconds have passed since the last report, or
    ``first_report_s`` since the trial began to run and reported nothing yet. No
    report tells of it, so that a watchdog must look:
    :class:`~tune_guard.ray.Watchdog` on Ray's driver, which ends the
    trial's process, and :class:`~tune_guard.TrialGuard` in the training process,
    which writes down every thread's stack shortly before. Without a watchdog the
    rule is inactive. The stop is blamed on the infrastructure: a deadlock, a lost
    file system or a dead peer, for which the trial is to be run again.

    Args:
        timeout_s: Seconds without a report. Take several times the longest pause
            between two reports, evaluation and checkpoints included.

        first_report_s: Seconds until the first report of an attempt, with imports,
            data sets and compilation; None for twice ``timeout_s``.

    Raises:
        ConfigError: If a value cannot be meant.

    Source: the default is that of PyTorch's collectives, which give up after 30
        minutes (``torch.distributed``); 10 minutes for NCCL since 2.2.

    Example:
        >>> from tune_guard.rules import Stalled
        >>> rule = Stalled(timeout_s=600)
        >>> rule.limit_s(reported=True), rule.limit_s(reported=False)
        (600, 1200)
        >>> rule.verdict(silent_s=601.5, step=40, reported=True).reason
        'stalled'
    """

    id: ClassVar[str] = "stalled"
    tier: ClassVar[Tier] = Tier.FATAL
    blame: ClassVar[Blame] = Blame.INFRASTRUCTURE

    timeout_s: float = 1800.0
    first_report_s: float | None = None

    def __post_init__(self) -> None:
        advice = "Take several times the longest pause between two reports."
        self._require_seconds("timeout_s", advice)
        if self.first_report_s is not None:
            self._require_seconds("first_report_s", "None is twice `timeout_s`.")

    def _require_seconds(self, name: str, advice: str) -> None:
        value = getattr(self, name)
        real = isinstance(value, (int, float)) and not isinstance(value, bool)
        ok = real and math.isfinite(value) and value > 0
        self.require(ok, name, "a number of seconds > 0", advice)

    def start(self, context: Context) -> Detector:
        """Return a detector that finds nothing: silence is not in any report."""
        return _NoDetector(self, context)

    def limit_s(self, *, reported: bool) -> float:
        """Return the seconds of silence that are too many.

        Args:
            reported: Whether the attempt has reported before.
        """
        if reported:
            return self.timeout_s
        first = self.first_report_s
        return 2 * self.timeout_s if first is None else first

    def verdict(self, *, silent_s: float, step: int, reported: bool) -> Verdict:
        """Return the verdict on a trial that has been silent for too long.

        Args:
            silent_s: Seconds since its last report, or since it began to run.

            step: Step of its last report; -1 when there is none.

            reported: Whether the attempt has reported before.
        """
        since = f"since step {step}" if reported else "since it began to run"
        found = Finding(
            rule=self.id,
            step=step,
            tier=self.tier,
            blame=self.blame,
            metric="silent_s",
            value=float(silent_s),
            threshold=float(self.limit_s(reported=reported)),
            message=(
                f"No report for {silent_s:.0f} s {since}. Look at the data's storage,"
                " the network and the machine, and at the threads' stacks, which a"
                " TrialGuard in the training keeps."
            ),
        )
        return Verdict(Level.STOP, (found,))


class _NoDetector(Detector):
    __slots__ = ()

    def update(self, observation: Observation) -> Finding | None:  # noqa: ARG002
        return None
