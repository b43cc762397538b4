"""What a stopper keeps between two processes: its policy, and prints of configs."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable, Mapping
from typing import Any

from ray import cloudpickle

from tune_guard.coercion import to_number
from tune_guard.policy import Policy
from tune_guard.record import version


def pickled(value: object) -> bytes:
    """Pickle a value, also one whose class lies in a script."""
    data: bytes = cloudpickle.dumps(value)  # type: ignore[no-untyped-call]
    return data


def pack_policy(policy: Policy | None) -> dict[str, Any]:
    """Store a policy twice: exactly, and in a form that later versions read."""
    try:
        text = policy.to_yaml() if policy is not None else ""
    except Exception:  # noqa: BLE001 - a third party's rule may hold what YAML cannot
        text = ""
    return {
        "exact": pickled(policy),
        "yaml": text,
        "package": version(),
    }


def unpack_policy(stored: Mapping[str, Any]) -> Policy | None:
    """Read a stored policy, its exact form first if this very version wrote it."""
    readers: list[Callable[[], Any]] = [
        lambda: pickle.loads(stored["exact"]),  # noqa: S301 - the stopper's own
        lambda: Policy.from_yaml(stored["yaml"]),
    ]
    if stored.get("package") != version():
        readers.reverse()
    for read in readers:
        try:
            policy = read()
            if isinstance(policy, Policy):
                return policy.checked()
        except Exception:  # noqa: BLE001, S112 - the next form may be readable
            continue
    return None


def print_of(config: Any) -> str:
    """Return a short print of the hyperparameters, the same in every process."""
    text = repr(_comparable(config)).encode(errors="replace")
    return hashlib.sha256(text).hexdigest()[:16]


def _comparable(value: Any) -> Any:
    if isinstance(value, Mapping):
        items = ((str(key), _comparable(item)) for key, item in value.items())
        return sorted(items, key=lambda item: item[0])
    if isinstance(value, (list, tuple)):
        return [_comparable(item) for item in value]
    if value is None or isinstance(value, (bool, str)):
        return value
    number = to_number(value)
    return type(value).__name__ if number is None else number
