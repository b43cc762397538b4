"""A stored bundle judged again: the same rules over the same numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tune_guard.evidence.coding import state_of
from tune_guard.evidence.parts import RULES
from tune_guard.evidence.reader import StoredBundle
from tune_guard.evidence.trace import Trace
from tune_guard.exceptions import TuneGuardError
from tune_guard.monitor import Monitor
from tune_guard.notices import Notices
from tune_guard.peers import Peers
from tune_guard.policy import Policy
from tune_guard.record import StopRecord
from tune_guard.strict_json import number
from tune_guard.verdict import HEALTHY, Finding, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Again:
    """A stored verdict beside the one that comes out now.

    Args:
        record: The stored record, or None when it is lost.

        verdict: What the rules say now.

        trace: What they counted on the way; None when they could not run.

        why_not: Why they could not run, or what was different; empty when the
            verdict is the same, at the same step, on the same number.
    """

    record: StopRecord | None
    verdict: Verdict = HEALTHY
    trace: Trace | None = None
    why_not: str = ""

    @property
    def same(self) -> bool:
        """Whether the verdict of now is the stored one."""
        return self.trace is not None and not self.why_not


class _Kept(Notices):
    """Notices that are kept and not logged."""

    def once(self, topic: str, message: str) -> bool:
        return self.messages.setdefault(topic, message) is message


def judge_again(bundle: StoredBundle) -> Again:
    """Run the rules of a bundle over its observations.

    The monitor starts from the state that it had before the oldest stored
    observation. Nothing is unpickled: the policy is read as YAML.
    """
    record, rules = bundle.record(), bundle.rules()
    name, streams = rules.get("decided_by"), rules.get("streams")
    if record is None or not isinstance(streams, Mapping):
        lost = "record.json" if record is None else RULES
        return Again(record=record, why_not=f"{lost} is missing or damaged.")
    outside = f"`{record.reason}` came from outside the rules on the stored numbers."
    stream = streams.get(name)
    if not isinstance(stream, Mapping):
        return Again(record=record, why_not=outside)
    if stream.get("cannot_repeat"):
        return Again(record=record, why_not=f"{stream['cannot_repeat']}.")
    try:
        trace, peers = _tracer(stream)
        if record.reason not in trace.rules:
            return Again(record=record, why_not=outside)
        _run(trace, bundle, str(name), peers)
    except (TuneGuardError, TypeError, ValueError) as error:
        return Again(record=record, why_not=f"The stored rules cannot run: {error}")
    why = _difference(trace, rules.get("findings"), record)
    return Again(record=record, verdict=trace.verdict, trace=trace, why_not=why)


def _tracer(stream: Mapping[str, Any]) -> tuple[Trace, Mapping[str, Any] | None]:
    """Return a monitor in the stored state, and what finished trials had reached.

    Raises:
        TuneGuardError: If the policy cannot be read.
        ValueError: If the state cannot.
    """
    notices = _Kept()
    policy = Policy.from_yaml(str(stream.get("policy")) + "\n")
    trial = str(stream.get("trial") or "")
    monitor = Monitor(policy, trial_id=trial, notices=notices, peers=Peers())
    monitor.restore(state_of(stream.get("before")))
    if notices.messages:
        raise ValueError(" ".join(notices.messages.values()))
    names = stream.get("names")
    monitor.names.update(names if isinstance(names, Mapping) else {})
    return Trace(monitor), state_of(stream.get("peers"))


def _run(
    trace: Trace, bundle: StoredBundle, name: str, peers: Mapping[str, Any] | None
) -> None:
    """Feed the stored observations, up to the stop.

    What finished trials had reached is known for the last one only; before it,
    that had not led to a cut.
    """
    observations, shared = list(bundle.observations(name)), trace.monitor.peers
    for left, observation in zip(
        range(len(observations), 0, -1), observations, strict=True
    ):
        if left == 1 and peers and shared is not None:
            shared.restore(peers)
        if trace.take(observation).stop:
            return


def _difference(trace: Trace, findings: Any, record: StopRecord) -> str:
    """Say in what the verdict of now is another than the stored one."""
    verdict, cause = trace.verdict, trace.verdict.cause
    if not verdict.stop or cause is None:
        return f"No rule stops the trial on the {trace.count} stored observations."
    stored = (record.reason, record.step)
    if (verdict.reason, verdict.step) != stored:
        now = f"`{verdict.reason}` at step {verdict.step}"
        return f"Now it is {now}, stored is `{stored[0]}` at step {stored[1]}."
    if not _equal(cause, _first(findings)):
        return f"The numbers differ: now {cause.value!r} against {cause.threshold!r}."
    return ""


def _first(findings: Any) -> Mapping[str, Any]:
    found = findings[0] if isinstance(findings, list) and findings else None
    return found if isinstance(found, Mapping) else {}


def _equal(cause: Finding, stored: Mapping[str, Any]) -> bool:
    pairs = (
        (cause.value, number(stored.get("value"))),
        (cause.threshold, number(stored.get("threshold"))),
    )
    return all(_same(now, then) for now, then in pairs)


def _same(now: float | None, then: float | None) -> bool:
    if now is None or then is None:
        return now is then
    return now == then or (math.isnan(now) and math.isnan(then))
