"""The parts of a bundle that every engine has: record, observations, rules."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tune_guard.evidence.bundle import Bundle, LeftOut, Part, Place, Stream, write
from tune_guard.evidence.coding import line, observation_as_json, state_as_json
from tune_guard.evidence.environment import environment
from tune_guard.evidence.settings import Evidence
from tune_guard.evidence.window import Window
from tune_guard.exceptions import brief
from tune_guard.record import StopRecord
from tune_guard.strict_json import plain
from tune_guard.verdict import Finding, Verdict

if TYPE_CHECKING:
    from tune_guard.monitor import Monitor

RECORD = "record.json"
OBSERVATIONS = "observations.jsonl"
RULES = "rules.json"
ENVIRONMENT = "environment.json"

REPORTS = "reports"
"""Name of the stream of what a trial reports; a worker has others beside it."""


def trial_parts(
    record: StopRecord,
    verdict: Verdict,
    streams: Mapping[str, Monitor],
    decided_by: str = REPORTS,
) -> list[Part]:
    """Return what is known of a trial without its process.

    Args:
        record: Why it is cut.

        verdict: The verdict, with all findings.

        streams: The monitors by the name of what they watch; their witness is a
            :class:`~tune_guard.evidence.window.Window`.

        decided_by: The one whose verdict it is.
    """
    return [
        json_part("record", RECORD, lambda: _record(record)),
        Part("observations", OBSERVATIONS, lambda to: _write_observations(to, streams)),
        json_part("rules", RULES, lambda: _rules(verdict, streams, decided_by)),
        json_part("environment", ENVIRONMENT, environment),
    ]


def write_wanted(
    place: Place,
    parts: Sequence[Part],
    record: StopRecord,
    evidence: Evidence,
    *,
    most_s: float | None = None,
) -> Bundle:
    """Write a trial's bundle, as its evidence is wanted. Never raises.

    Args:
        place: Where it goes.

        parts: What could be written.

        record: Why the trial is cut.

        evidence: Which parts are wanted, and how much they may take.

        most_s: Seconds that it may take, where they are not the evidence's own.
    """
    return write(
        place,
        in_order(parts, evidence),
        {"reason": record.reason, "step": record.step, "trial": record.trial},
        most_bytes=evidence.most_bytes,
        most_s=evidence.most_s if most_s is None else most_s,
    )


def in_order(parts: Sequence[Part], evidence: Evidence) -> list[Part]:
    """Return the parts that are wanted, in the order that is wanted."""
    order = {kind: place for place, kind in enumerate(evidence.parts)}
    wanted = [part for part in parts if part.kind in order]
    return sorted(wanted, key=lambda part: order[part.kind])


def json_part(kind: str, file: str, content: Any) -> Part:
    """Return a part that holds one strict JSON value.

    Args:
        kind: Which part it is.

        file: Its name.

        content: Returns the value; may raise ``LeftOut``.
    """

    def write(stream: Stream) -> None:
        value = content()
        text = json.dumps(value, allow_nan=False, ensure_ascii=False, indent=1)
        stream.write(text.encode() + b"\n")

    return Part(kind, file, write)


def _record(record: StopRecord) -> dict[str, Any]:
    """Return the five keys, and beside them the fields without any cut short."""
    whole = {f.name: plain(getattr(record, f.name)) for f in dataclasses.fields(record)}
    return {**record.metadata(), "record": whole}


def _write_observations(stream: Stream, streams: Mapping[str, Monitor]) -> None:
    for name, monitor in streams.items():
        window = monitor.witness
        if isinstance(window, Window):
            for observation in window.observations():
                stream.write(line({"stream": name, **observation_as_json(observation)}))


def _rules(
    verdict: Verdict, streams: Mapping[str, Monitor], decided_by: str
) -> dict[str, Any]:
    if not streams:
        msg = "no monitor judged the trial here"
        raise LeftOut(msg)
    return {
        "schema": 1,
        "decided_by": decided_by,
        "findings": [_finding(found) for found in verdict.findings],
        "streams": {name: _stream(monitor) for name, monitor in streams.items()},
    }


def _finding(found: Finding) -> dict[str, Any]:
    """Return a finding: which number crossed which."""
    values = {name: getattr(found, name) for name in Finding.__slots__}
    values |= {"tier": found.tier.name.lower(), "level": found.level.name.lower()}
    return {name: plain(value) for name, value in values.items()}


def _stream(monitor: Monitor) -> dict[str, Any]:
    """Return what it takes to judge a stream's observations again."""
    window = monitor.witness
    kept = window if isinstance(window, Window) else Window()
    before, failed = _coded(kept.state, kept.failed)
    after, _ = _coded(monitor.state(), "")
    policy, unwritten = _policy(monitor)
    peers = monitor.peers
    found = {
        "policy": policy,
        "trial": monitor.trial_id,
        "names": dict(monitor.names),
        "observations": len(kept),
        "before": before,
        "after": after,
        "peers": state_as_json(peers.state()) if peers and peers.finished else None,
        "cannot_repeat": failed or unwritten,
    }
    return {name: value for name, value in found.items() if value not in ("", None)}


def _policy(monitor: Monitor) -> tuple[str, str]:
    try:
        return monitor.policy.to_yaml(), ""
    except Exception as error:  # noqa: BLE001 - a foreign rule may hold what YAML cannot
        return "", f"the policy cannot be written: {brief(error)}"


def _coded(state: Mapping[str, Any], failed: str) -> tuple[Any, str]:
    try:
        return state_as_json(state), failed
    except TypeError as error:
        return None, str(error)
