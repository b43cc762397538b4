"""One trial as its worker sees it: steps and reports judged, alone or with others."""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping
from typing import Any

from tune_guard.coercion import to_number
from tune_guard.evidence.bundle import Place
from tune_guard.evidence.settings import Evidence
from tune_guard.nested_keys import lookup
from tune_guard.notices import Notices
from tune_guard.policy import Policy
from tune_guard.record import StopRecord
from tune_guard.row_stamp import RUNNING, WARNED, to_row
from tune_guard.verdict import HEALTHY, Verdict
from tune_guard.worker.announcer import Announcer
from tune_guard.worker.evidence import Keeper
from tune_guard.worker.machine import Machine
from tune_guard.worker.pace import Pace
from tune_guard.worker.ranks import Ranks
from tune_guard.worker.reader import Given, StepReader
from tune_guard.worker.settings import Options
from tune_guard.worker.steps import StepWatch
from tune_guard.worker.streams import Streams
from tune_guard.worker.watchdog import StallWatch, rule_in, stacks

STATE_VERSION = 1


class WatchedTrial:
    """Judge a trial's steps and reports, and write its rows. Never raises.

    Args:
        policy: The rules, with a known mode.

        options: How it is watched.

        trial_id: Names the trial in records.

        first_step: Number of the first report.

        place: Returns the engine's place for a bundle of evidence.

        announcer: Tells of the trial where no engine does.

        notices: Where trouble is named.
    """

    def __init__(
        self,
        policy: Policy,
        options: Options,
        *,
        trial_id: str,
        first_step: int,
        place: Callable[[Evidence, str], Place | None],
        announcer: Announcer | None = None,
        notices: Notices,
    ) -> None:
        self.policy = policy
        self.reports = first_step
        self._by_step = options.unit == "step"
        self._trial_id = trial_id
        self._notices = notices
        self._announcer = announcer
        self._host, self._gpu_uuid = socket.gethostname(), ""
        self._last: dict[str, Any] = {}
        self._columns: dict[str, None] = {}
        self.streams = Streams(
            policy,
            unit=options.unit,
            trial_id=trial_id,
            notices=notices,
            keeps=options.evidence is not None,
        )
        self.ranks = Ranks(deciding_rank=options.deciding_rank, notices=notices)
        self.pace = Pace()
        machine = Machine(options.gpu, self.pace, notices)
        self.keeper = Keeper(options.evidence, place, self.streams, machine, notices)
        self.steps = StepWatch(
            policy,
            self.streams,
            reader=StepReader(
                notices, trace=options.trace, accumulate=options.accumulate
            ),
            machine=machine,
            pace=self.pace,
            notices=notices,
            sync=options.sync,
        )
        rule = self._stall_rule = rule_in(policy)
        self._watch = None if rule is None else StallWatch(rule, self._gone_silent)
        if self._watch is not None:
            self._watch.start()

    @property
    def verdict(self) -> Verdict:
        """The newest verdict; a stop is final."""
        return self.streams.verdict

    def check_step(self, loss: Any, given: Given, step: int | None) -> Verdict:
        """Judge an optimizer step, together with the other ranks."""
        if self.verdict.stop:
            return self.verdict
        verdict: Verdict | None = HEALTHY
        self.keeper.note(self.steps.count if step is None else step, given)
        try:
            verdict = self.steps.take(step, loss, given)
        except Exception as error:  # noqa: BLE001 - nothing may raise into a training
            self.trouble("step", error)
        return HEALTHY if verdict is None else self._agreed(verdict)

    def check_report(
        self, metrics: Mapping[str, Any], step: int | None
    ) -> tuple[Verdict, dict[str, Any], int]:
        """Judge a report; return the verdict, the row to send, and its step."""
        at = self._number(step)
        if self._watch is not None:
            self._watch.hear()
        if self.verdict.stop:
            return self.verdict, self._stamped(dict(metrics)), at
        verdict, row = HEALTHY, dict(metrics)
        try:
            verdict = self.steps.finish()
            row = self._row(metrics)
            if not verdict.stop:
                verdict = self.streams.report(at, row)
            self._last = dict(metrics)
            if self._announcer is not None:
                gpu_uuid = self.steps.machine.gpu_uuid
                self._announcer.sample(at, row, self.streams, gpu_uuid)
        except Exception as error:  # noqa: BLE001 - nothing may raise into a training
            self.trouble("report", error)
        self.pace.interrupt()
        self.reports = at + 1
        return self._agreed(verdict), self._stamped(row), at

    def _number(self, step: int | None) -> int:
        if step is not None:
            return step
        steps = self.steps.count
        return steps - 1 if self._by_step and steps else self.reports

    def _row(self, metrics: Mapping[str, Any]) -> dict[str, Any]:
        """Add the health signals; a column that was there once stays."""
        health = self.steps.health()
        self._columns |= dict.fromkeys(health)
        values = {key: _sendable(value) for key, value in metrics.items()}
        return {**dict.fromkeys(self._columns), **health, **values}

    def last_row(self) -> dict[str, Any]:
        """Return the row that tells of a stop between two reports.

        It repeats the last report, because engines want the metric in every row;
        a metric of a training that went non-finite is none.
        """
        row = self._row(self._last)
        known = to_number(lookup(self._last, self.policy.metric))
        if known is None or self.verdict.reason == "non_finite":
            row[self.policy.metric] = float("nan")
        return self._stamped(row)

    def _stamped(self, row: dict[str, Any]) -> dict[str, Any]:
        if self.verdict.stop:
            return {**row, **to_row(self.record())}
        return {**row, **(WARNED if self.streams.warned else RUNNING)}

    def _agreed(self, mine: Verdict) -> Verdict:
        """Return what all ranks agree on; alone, one's own."""
        if not self.ranks.shared:
            if mine.stop:
                self.keep_evidence()
            return mine
        told = self.ranks.share(
            mine, host=self._host, gpu_uuid=self.steps.machine.gpu_uuid
        )
        if told.verdict.stop:
            self.streams.adopt(told.verdict)
            self._host, self._gpu_uuid = told.host, told.gpu_uuid
            if told.own:
                self.keep_evidence()
        elif mine.stop:
            self.streams.forgive()
        return told.verdict

    def record(self) -> StopRecord:
        """Return the record of the present verdict."""
        gpu_uuid = self._gpu_uuid or self.steps.machine.gpu_uuid
        return self.streams.record(
            host=self._host, gpu_uuid=gpu_uuid, evidence=self.keeper.name
        )

    def keep_evidence(self) -> None:
        """Write down what is known of a trial that is about to be cut, once."""
        self.keeper.keep(self.record(), step=max(0, self.steps.count - 1))
        if self._announcer is not None:
            self._announcer.ended(self.record())

    def _gone_silent(self, silent_s: float, reported: bool) -> None:  # noqa: FBT001
        """Write down every thread's stack, from the thread of the watch."""
        text, rule = stacks(), self._stall_rule
        if rule is None or self.verdict.stop:
            return
        at = self.streams.reports.last_step
        verdict = rule.verdict(
            silent_s=silent_s, step=-1 if at is None else at, reported=reported
        )
        record = StopRecord.of(verdict, trial=self._trial_id, host=self._host)
        name = self.keeper.keep_stacks(record, verdict, text)
        kept = f" They are in {name}." if name else ""
        self._notices.once("stalled", f"{verdict.message}{kept}")

    def trouble(self, what: str, error: Exception) -> None:
        """Say once what could not be done."""
        self._notices.once(
            f"worker:{what}:{type(error).__name__}",
            f"The guard could not take a {what} ({error!r}): training goes on, and"
            " this is not judged.",
        )

    def close(self) -> None:
        """Judge what is still on its way, and let go of the machine and the model."""
        if self._watch is not None:
            self._watch.close()
        try:
            self.steps.finish()
            if not self.verdict.stop:
                self.streams.reports.finish()
            if self._announcer is not None:
                self._announcer.closed(self.record())
            self.steps.machine.close()
            self.steps.reader.close()
            self.keeper.close()
            self.ranks.close()
        except Exception as error:  # noqa: BLE001 - nothing may raise into a training
            self.trouble("close", error)

    def state(self) -> dict[str, Any]:
        """Return what decides later verdicts, as plain values."""
        return {
            "version": STATE_VERSION,
            "steps": self.steps.count,
            "reports": self.reports,
            "streams": self.streams.state(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over a state. What cannot be read starts anew, named once."""
        try:
            if state["version"] != STATE_VERSION:
                self._notices.once("state", "A state of another version: not used.")
                return
            self.streams.restore(state["streams"])
            self.steps.count, self.reports = int(state["steps"]), int(state["reports"])
        except Exception as error:  # noqa: BLE001 - a damaged state must not end a trial
            self.trouble("state", error)


def _sendable(value: Any) -> Any:
    """Return a tensor of one element as a number: engines refuse tensors."""
    if not hasattr(value, "detach"):
        return value
    number = to_number(value.detach())
    return value if number is None else number
