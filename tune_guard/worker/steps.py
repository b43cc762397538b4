"""The optimizer steps of one trial: read, summed up and judged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tune_guard.notices import Notices
from tune_guard.observation import SIGNALS
from tune_guard.policy import Policy
from tune_guard.verdict import HEALTHY, Verdict
from tune_guard.worker.amp import ScaleWatch
from tune_guard.worker.diagnosis import Diagnosis
from tune_guard.worker.health import StepHealth
from tune_guard.worker.machine import Machine
from tune_guard.worker.pace import Pace
from tune_guard.worker.reader import Given, StepReader
from tune_guard.worker.ring import MOST_LATE, Reading
from tune_guard.worker.streams import Streams


class StepWatch:
    """Take in each optimizer step and judge it as soon as its numbers are there.

    Args:
        policy: Names the keys under which signals are reported.

        streams: Judge what was read.

        reader: Reads the steps.

        machine: Watches GPU and pace.

        pace: Times the steps.

        notices: Where trouble is named.

        sync: Whether every step is judged before the next begins.
    """

    def __init__(
        self,
        policy: Policy,
        streams: Streams,
        *,
        reader: StepReader,
        machine: Machine,
        pace: Pace,
        notices: Notices,
        sync: bool,
    ) -> None:
        self.streams = streams
        self.reader = reader
        self.machine = machine
        self.pace = pace
        self.count = 0
        self._keys = {s: policy.keys.aliases(s) for s in SIGNALS}
        self._diagnosis = Diagnosis(notices)
        self._scale = ScaleWatch()
        self._health = StepHealth()
        self._most_late = 0 if sync else MOST_LATE

    def take(self, step: int | None, loss: Any, given: Given) -> Verdict | None:
        """Take in a step and return what is known by now.

        Returns:
            None for a batch that more are to follow before the optimizer steps.
        """
        loss = self.reader.accumulated(loss)
        if loss is NotImplemented:
            return None
        at = self.count if step is None else step
        self.count = at + 1
        self.reader.read(at, loss, given, self.pace.step())
        verdict = self._judge(self.reader.ring.take(most_late=self._most_late), at)
        self.machine.trains_on(self.reader.device)
        return verdict if verdict.stop else self._look_at_machine(verdict, at)

    def finish(self) -> Verdict:
        """Wait for what is on its way, judge it, and return the verdict."""
        return self._judge(self.reader.ring.take(most_late=0), self.count - 1)

    def _judge(self, readings: list[Reading], now: int) -> Verdict:
        verdict = HEALTHY
        for reading in readings:
            if verdict.stop:
                break
            verdict = self._judge_one(reading, fresh=reading.step == now)
        return verdict

    def _judge_one(self, reading: Reading, *, fresh: bool) -> Verdict:
        context = reading.context
        signals: dict[str, Any] = reading.numbers()
        if context.has_scaler:
            signals = self._scale.signals(signals, scaled_norm=context.scaled_norm)
        times = reading.step_time_s, context.data_time_s
        self._health.add(signals, *times)
        self.machine.add(*times)
        self._diagnosis.look(reading, signals, fresh=fresh)
        verdict = self.streams.step(reading.step, self.named(signals))
        if not verdict.stop:
            return verdict
        told = self._diagnosis.explain(verdict, reading, fresh=fresh)
        self.streams.adopt(told)
        return told

    def _look_at_machine(self, verdict: Verdict, step: int) -> Verdict:
        signals = self.machine.pulse()
        if signals is None:
            return verdict
        found = self.streams.pulse(step, self.named(signals))
        return found if found.level > verdict.level else verdict

    def health(self) -> dict[str, Any]:
        """Return the signals since the last report, under their keys."""
        return self.named({**self._health.take(), **self.machine.report()})

    def named(self, signals: Mapping[str, Any]) -> dict[str, Any]:
        """Return signals under the keys that the policy gives them."""
        found = {}
        for name, value in signals.items():
            keys = self._keys.get(name, (name,))
            if keys:
                found[keys[0]] = value
        return found
