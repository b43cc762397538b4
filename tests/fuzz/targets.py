"""The targets: bytes go in, and nothing but the documented errors may come out."""

from __future__ import annotations

import json
import pickle
import random
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.fuzz import sources
from tests.fuzz.objects import report_of
from tests.fuzz.seeds import (
    POLICIES,
    SPACES,
    bundle_files,
    left_alerts,
    records,
    states,
)
from tune_guard import Monitor, Policy, Space, StopRecord
from tune_guard.evidence.coding import state_of
from tune_guard.exceptions import ConfigError
from tune_guard.notices import Notices
from tune_guard.notify.alert import Alert
from tune_guard.notify.digest import compose, readable
from tune_guard.notify.outbox_files import parse
from tune_guard.peers import Peers
from tune_guard.policy import DEFAULT
from tune_guard.rules import Behind, LearningRateFloor, Plateau
from tune_guard.space import SpaceError
from tune_guard.strict_json import from_json, to_json

RULES = (*DEFAULT, Plateau(patience=10), LearningRateFloor(target=0.001), Behind())


@dataclass(frozen=True, slots=True)
class Target:
    """One kind of input.

    Args:
        call: Takes the input; raises only what its documentation says, and that
            is caught here.

        seeds: Valid inputs to begin with.
    """

    call: Callable[[bytes], None]
    seeds: Callable[[], list[bytes]] = field(default=list)


def _observation(data: bytes) -> None:
    """Reports of any Python values: read, judged, recorded. Nothing is raised."""
    monitor = Monitor(_policy(), notices=Notices(), peers=Peers())
    for step, report in report_of(data):
        monitor.observe(step, report)
    monitor.finish()
    to_json(monitor.record().metadata())


def _policy() -> Policy:
    return Policy(
        metric="score", mode="min", rules=RULES, budget_steps=50, fresh_key=None
    )


def _policy_yaml(data: bytes) -> None:
    try:
        policy = Policy.from_yaml(data.decode(errors="replace") + "\n")
        text = policy.to_yaml()
        monitor = Monitor(policy.checked())
    except ConfigError:
        return
    assert Policy.from_yaml(text) == policy
    monitor.observe(0, {policy.metric: 1.0, "loss": 1.0, "lr": 0.1})


def _space_yaml(data: bytes) -> None:
    try:
        space = Space.from_yaml(data.decode(errors="replace") + "\n")
    except SpaceError:
        return
    assert Space.from_yaml(space.to_yaml()) == space
    point = space.sample(random.Random(0))
    assert space.contains(point)


def _record(data: bytes) -> None:
    stored = from_json(data.decode(errors="replace"))
    if not isinstance(stored, dict):
        return
    record = StopRecord.from_metadata(stored)
    if record is not None:
        json.dumps(record.metadata(), allow_nan=False)


def _state(data: bytes) -> Any:
    try:
        return state_of(from_json(data.decode(errors="replace")))
    except ValueError:
        return None


def _monitor_state(data: bytes) -> None:
    """A stored state is taken over or passed over, and the trial goes on."""
    state = _state(data)
    peers = Peers()
    monitor = Monitor(_policy(), trial_id="t", notices=Notices(), peers=peers)
    monitor.restore(state)
    monitor.margins()
    first = (monitor.last_step or 0) + 1
    for step in range(first, first + 12):
        monitor.observe(step, {"score": 1.0 / step, "loss": 1.0, "lr": 0.1})
        if step == first + 5:
            monitor.keyframe()
            monitor.begin_attempt(step)
    monitor.finish()
    to_json(monitor.record().metadata())
    size = len(pickle.dumps(monitor.state()))
    assert size < 2 * len(data) + 32_768, f"a state of {size} bytes"


def _squeezed(trial: object) -> bytes:
    return zlib.compress(pickle.dumps(trial), 1)


def _stopper_state(data: bytes) -> None:
    """What Ray unpickles with an experiment: the parts are ours to check."""
    from tune_guard.ray import GuardStopper

    stored = _state(data)
    for key, pack in (("awake", pickle.dumps), ("asleep", _squeezed)):
        if isinstance(stored, dict) and isinstance(stored.get(key), dict):
            packed = {name: pack(trial) for name, trial in stored[key].items()}
            stored = {**stored, key: packed}
    stopper = GuardStopper.__new__(GuardStopper)
    stopper.__setstate__(stored)
    for step in range(1, 4):
        stopper("t", {"training_iteration": step, "score": 1.0, "loss": 1.0})
    pickle.dumps(stopper)


class _Service:
    """What a digest asks of a service."""

    keyword, most_bytes = "", 2000

    def size(self, title: str, body: str) -> int:
        return len((title + body).encode(errors="replace"))


def _left_alerts(data: bytes) -> None:
    """What another process left undelivered becomes messages."""
    entries = parse(data.decode(errors="replace"))
    alerts = [readable(entry.alert) for entry in entries]
    service: Any = _Service()
    for language in ("en", "zh"):
        if alerts:
            compose(alerts, service, language)
    for alert in alerts:
        assert Alert.restored(alert.stored()).kind is alert.kind


TARGETS: dict[str, Target] = {
    "observation": Target(_observation, lambda: [bytes(range(0, 250, 3))]),
    "policy_yaml": Target(_policy_yaml, lambda: POLICIES),
    "space_yaml": Target(_space_yaml, lambda: SPACES),
    "record": Target(_record, records),
    "left_alerts": Target(_left_alerts, left_alerts),
    "monitor_state": Target(_monitor_state, lambda: states()[:3]),
    "stopper_state": Target(_stopper_state, lambda: [states()[3]]),
    **{
        f"evidence_{name}": Target(
            lambda data, name=name: sources.bundle_with(name, data),
            lambda name=name: [bundle_files()[name]],
        )
        for name in ("manifest.json", "record.json", "rules.json")
    },
}


def every_target() -> dict[str, Target]:
    """Return all targets by name, those that read files among them."""
    found: dict[str, Any] = dict(TARGETS)
    for name, (read, seeds) in sources.READERS.items():
        found[name] = Target(read, seeds)
    return found
