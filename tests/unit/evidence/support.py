"""Trials that were cut, and their bundles, for the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tests.streams import eventful
from tune_guard import Monitor, Policy
from tune_guard.evidence import Evidence
from tune_guard.evidence.bundle import Bundle, Part, write
from tune_guard.evidence.parts import in_order, trial_parts
from tune_guard.evidence.places import Folder
from tune_guard.evidence.window import Window
from tune_guard.notices import Notices
from tune_guard.policy import DEFAULT
from tune_guard.rules import LearningRateFloor, Plateau

RULES = (*DEFAULT, Plateau(patience=10), LearningRateFloor(target=0.001))


class Silent(Notices):
    """Notices that are not logged: the streams hold values of odd kinds."""

    def once(self, topic: str, message: str) -> bool:
        """Keep a message."""
        return self.messages.setdefault(topic, message) is message


def watched(policy: Policy, reports: Iterable[Mapping[str, Any]]) -> Monitor:
    """Return a monitor with a window, after the reports or the stop among them."""
    monitor = Monitor(policy, trial_id="t1", notices=Silent())
    monitor.witness = Window()
    for step, report in enumerate(reports):
        if monitor.observe(step, report).stop:
            break
    return monitor


def only(rule: str, **fields: Any) -> Policy:
    """Return a policy of all rules, of which one may cut."""
    actions = {"*": "warn", rule: "stop"}
    fields = {"metric": "score", "mode": "min", "warmup_steps": 5, **fields}
    return Policy(rules=RULES, actions=actions, **fields)


def long_stream(seed: int) -> list[dict[str, Any]]:
    """Return 1,600 reports in which a lot goes wrong, again and again."""
    return [report for more in range(4) for report in eventful(seed + more)]


def store(monitor: Monitor, path: Path, extra: Iterable[Part] = ()) -> Bundle:
    """Write a monitor's bundle into a folder."""
    record, verdict = monitor.record(), monitor.verdict
    parts = [*trial_parts(record, verdict, {"reports": monitor}), *extra]
    about = {"reason": record.reason, "step": record.step}
    return write(
        Folder(path),
        in_order(parts, Evidence()),
        about,
        most_bytes=2**25,
        most_s=60.0,
    )
