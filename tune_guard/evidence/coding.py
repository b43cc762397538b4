"""Observations and states as strict JSON, read back bit for bit.

JSON has no NaN and no infinities. In an observation, where only numbers can
stand, they are the texts that records use; in a state, where texts stand too,
``{"float": "NaN"}``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from tune_guard.observation import FLAGS, SIGNALS, Observation
from tune_guard.strict_json import number, plain

_NUMBERS = frozenset(SIGNALS) - FLAGS - {"step"} | {"metric"}
_FLOAT = "float"
_DEEPEST = 20


def observation_as_json(observation: Observation) -> dict[str, Any]:
    """Return an observation as strict JSON's types; what is not there is left out.

    Example:
        >>> observation_as_json(Observation(step=3, loss=float("nan"), lr=0.1))
        {'step': 3, 'loss': 'NaN', 'lr': 0.1}
    """
    fields = vars(observation)
    found = {name: plain(fields[name]) for name in fields if fields[name] is not None}
    if not observation.warming:
        found.pop("warming", None)
    if not observation.losses:
        found.pop("losses", None)
    return found


def observation_of(stored: Mapping[str, Any]) -> Observation:
    """Read back what :func:`observation_as_json` wrote.

    Raises:
        TypeError: If it is none.
    """
    step = stored.get("step")
    if not isinstance(step, int) or isinstance(step, bool):
        msg = f"an observation needs a step, but got {step!r}"
        raise TypeError(msg)
    fields: dict[str, Any] = {"step": step}
    for name, value in stored.items():
        if name in _NUMBERS:
            fields[name] = number(value)
        elif name in FLAGS or name == "warming":
            fields[name] = bool(value)
    if isinstance(stored.get("losses"), list):
        fields["losses"] = [(str(key), number(loss)) for key, loss in stored["losses"]]
    if isinstance(stored.get("values"), Mapping):
        read = ((str(key), number(value)) for key, value in stored["values"].items())
        fields["values"] = {key: value for key, value in read if value is not None}
    return Observation(**fields)


def state_as_json(state: Any) -> Any:
    """Return a monitor's state as strict JSON's types.

    Raises:
        TypeError: If a rule's state holds what is no plain value.

    Example:
        >>> state_as_json({"a": [1.5, float("nan"), None]})
        {'a': [1.5, {'float': 'NaN'}, None]}
    """
    return _encoded(state, _DEEPEST)


def _encoded(value: Any, depth: int) -> Any:
    if value is None or isinstance(value, (bool, str, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {_FLOAT: plain(value)}
    if depth and isinstance(value, Mapping):
        return {str(key): _encoded(item, depth - 1) for key, item in value.items()}
    if depth and isinstance(value, (list, tuple)):
        return [_encoded(item, depth - 1) for item in value]
    msg = f"a state of plain values cannot hold a {type(value).__name__}"
    raise TypeError(msg)


def state_of(stored: Any) -> Any:
    """Read back what :func:`state_as_json` wrote.

    Raises:
        ValueError: If it is nested deeper than any state.
    """
    return _decoded(stored, _DEEPEST)


def _decoded(stored: Any, depth: int) -> Any:
    if not isinstance(stored, (list, Mapping)):
        return stored
    if not depth:
        msg = f"a state is not nested deeper than {_DEEPEST} levels"
        raise ValueError(msg)
    if isinstance(stored, list):
        return [_decoded(item, depth - 1) for item in stored]
    if stored.keys() == {_FLOAT}:
        return number(stored[_FLOAT])
    return {key: _decoded(item, depth - 1) for key, item in stored.items()}


def line(value: Mapping[str, Any]) -> bytes:
    """Return a value of plain types as one line of strict JSON."""
    return (json.dumps(value, allow_nan=False, ensure_ascii=False) + "\n").encode()
