"""What a training without an engine tells: see :mod:`tune_guard.listeners`.

In an engine its driver tells, since it knows of every trial how it ended.
"""

from __future__ import annotations

import itertools
import os
import socket
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tune_guard.events import (
    HealthSample,
    SweepStarted,
    TrialEnded,
    TrialStarted,
    gpu_values,
)
from tune_guard.listeners import announce, is_on, wants_samples
from tune_guard.policy import Policy
from tune_guard.record import Outcome, StopRecord
from tune_guard.worker.streams import Streams

SWEEP = "TUNE_GUARD_SWEEP"
"""Names the sweep that a training belongs to. By default its script's name does."""

_numbers = itertools.count(1)


class Announcer:
    """Announces one training.

    Args:
        policy: Its policy.
    """

    def __init__(self, policy: Policy) -> None:
        script = Path(sys.argv[0] if sys.argv else "").stem or "training"
        self._policy = policy
        self._sweep = os.environ.get(SWEEP) or script
        self._host = socket.gethostname()
        self._trial = f"{script}-{self._host}-{os.getpid()}-{next(_numbers)}"
        self._began_s = time.monotonic()
        self._has_begun = self._has_ended = False

    def sample(
        self, step: int, row: Mapping[str, Any], streams: Streams, gpu_uuid: str
    ) -> None:
        """A report was judged: how is its GPU, and how near are its rules?"""
        if not is_on():
            return
        self._begin()
        if not wants_samples():
            return
        margins: dict[str, float] = {}
        for monitor in streams.by_name.values():
            for rule, margin in monitor.margins().items():
                margins[rule] = max(margin, margins.get(rule, 0.0))
        announce(
            HealthSample(
                sweep=self._sweep,
                trial=self._trial,
                step=step,
                host=self._host,
                gpu_uuid=gpu_uuid,
                gpu=gpu_values(row, self._policy.keys),
                margins=margins,
            )
        )

    def ended(self, record: StopRecord) -> None:
        """The training was cut. Told once."""
        if self._has_ended or not is_on():
            return
        self._has_ended = True
        self._begin()
        announce(
            TrialEnded(
                sweep=self._sweep,
                trial=self._trial,
                record=replace(record, trial=self._trial),
                time_s=time.monotonic() - self._began_s,
            )
        )

    def closed(self, record: StopRecord) -> None:
        """The guard is closed: by an error, or at the end. One rank tells."""
        if os.environ.get("RANK", "0") != "0" or record.outcome is Outcome.GUARD:
            return
        error = sys.exc_info()[1]
        if isinstance(error, Exception):
            kind = f"error:{type(error).__name__}"
            record = replace(record, outcome=Outcome.ERROR, reason=kind)
        elif error is not None:
            record = replace(record, outcome=Outcome.INTERRUPTED, reason="interrupted")
        self.ended(record)

    def _begin(self) -> None:
        if not self._has_begun:
            self._has_begun = True
            announce(SweepStarted(sweep=self._sweep, metric=self._policy.metric))
            announce(TrialStarted(sweep=self._sweep, trial=self._trial))


def announce_cut(trial: Any, record: StopRecord) -> None:
    """Tell of a trial of Optuna that was cut beside a foreign pruner.

    A GuardPruner tells by itself.

    Args:
        trial: The running trial.

        record: Why it was cut.
    """
    if not is_on():
        return
    study = getattr(getattr(trial, "study", None), "study_name", "optuna")
    params = dict(getattr(trial, "params", {}))
    announce(
        TrialEnded(sweep=study, trial=str(trial.number), record=record, params=params)
    )
