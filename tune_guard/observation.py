"""What one trial reported at one step, coerced to plain numbers."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from types import MappingProxyType
from typing import Any

from tune_guard.exceptions import ConfigError, did_you_mean

_MOST_KEYS_NAMED = 500
_DEEPEST_KEY = 12
_MOST_STEPS = 2**63
_MOST_RATES = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """Under which key of a report each signal is found.

    Each value is a key, or several in the order in which they are tried; none
    at all leaves the signal unwatched. A key with slashes, ``a/b``, is found
    flat and nested. Blanks around keys do not matter. A signal that is never
    reported leaves its rules inactive.

    Raises:
        ConfigError: If a value is no key.

    Example:
        >>> Keys(loss="train/nll").loss
        'train/nll'
    """

    loss: str | tuple[str, ...] = ("loss", "train_loss", "train/loss")
    grad_norm: str | tuple[str, ...] = ("grad_norm", "train/grad_norm", "gradient_norm")
    lr: str | tuple[str, ...] = ("lr", "learning_rate", "train/learning_rate")
    amp_scale: str | tuple[str, ...] = ("amp_scale", "loss_scale")
    step_skipped: str | tuple[str, ...] = ("step_skipped",)
    step_time_s: str | tuple[str, ...] = ("step_time_s",)
    data_time_s: str | tuple[str, ...] = ("data_time_s",)
    time_s: str | tuple[str, ...] = ("time_total_s",)
    gpu_reasons: str | tuple[str, ...] = ("gpu_reasons",)
    gpu_thermal_ratio: str | tuple[str, ...] = ("gpu_thermal_ratio",)
    gpu_utilization_ratio: str | tuple[str, ...] = ("gpu_utilization_ratio",)
    gpu_temperature_celsius: str | tuple[str, ...] = ("gpu_temperature_celsius",)
    gpu_clock_mhz: str | tuple[str, ...] = ("gpu_clock_mhz",)
    gpu_xid: str | tuple[str, ...] = ("gpu_xid",)
    gpu_lost: str | tuple[str, ...] = ("gpu_lost",)
    gpu_ecc_uncorrected: str | tuple[str, ...] = ("gpu_ecc_uncorrected",)

    def __post_init__(self) -> None:
        for name in SIGNALS:
            value = getattr(self, name)
            keys = [value] if isinstance(value, str) else value
            listed = isinstance(keys, (list, tuple))
            if not listed or not all(isinstance(k, str) and k.strip() for k in keys):
                msg = (
                    f"keys: `{name}` must be a key or a list of keys, but got"
                    f" {value!r}. An empty list leaves the signal unwatched."
                )
                raise ConfigError(msg)
            if isinstance(value, list):
                object.__setattr__(self, name, tuple(value))

    def aliases(self, signal: str) -> tuple[str, ...]:
        """Return the keys of ``signal``, in the order in which they are tried."""
        return aliases_of(self).get(signal, ())


SIGNALS = tuple(f.name for f in dataclasses.fields(Keys))


@functools.lru_cache(maxsize=64)
def aliases_of(keys: Keys) -> Mapping[str, tuple[str, ...]]:
    """Return the keys of each signal that is watched; every trial of a sweep asks."""
    found = {}
    for signal in SIGNALS:
        named = getattr(keys, signal)
        named = (named,) if isinstance(named, str) else named
        if named:
            found[signal] = tuple(key.strip() for key in named)
    return MappingProxyType(found)


FLAGS = frozenset({"step_skipped", "gpu_lost"})


@dataclass(frozen=True, kw_only=True)
class Observation:
    """One report of one trial, as the rules see it.

    A signal that was not reported, or could not be read as a number, is None.
    NaN and infinities are kept as they are.

    Args:
        step: Step of the report, as the trainer counts it.

        metric: The objective; None also where its evaluation marker
            (``fresh_key``) has not moved.

        losses: Other keys that are named like losses, with what they held.

        values: Further keys that single rules ask for by name.
    """

    step: int
    metric: float | None = None
    loss: float | None = None
    grad_norm: float | None = None
    lr: float | None = None
    amp_scale: float | None = None
    step_skipped: bool | None = None
    step_time_s: float | None = None
    data_time_s: float | None = None
    time_s: float | None = None
    gpu_reasons: float | None = None
    gpu_thermal_ratio: float | None = None
    gpu_utilization_ratio: float | None = None
    gpu_temperature_celsius: float | None = None
    gpu_clock_mhz: float | None = None
    gpu_xid: float | None = None
    gpu_lost: bool | None = None
    gpu_ecc_uncorrected: float | None = None
    warming: bool = False
    losses: Sequence[tuple[str, float | None]] = ()
    values: Mapping[str, float] | None = None

    def get(self, name: str) -> float | None:
        """Return a signal by its name, or a further key that a rule asked for."""
        if self.values is not None and name in self.values:
            return self.values[name]
        value: float | None = getattr(self, name) if name in _READABLE else None
        return value


_READABLE = frozenset(SIGNALS) | {"metric"}


def to_number(value: object) -> float | None:
    """Read a reported value as a number, or return None. Never raises.

    Numbers, numeric text, and arrays, tensors or lists of one element are
    numbers; so are the texts NaN and Infinity. None, bools, other text and
    several elements are no observation. An integer too large for a float is
    infinite.

    Example:
        >>> to_number("1e-3"), to_number([2.5]), to_number(True)
        (0.001, 2.5, None)
    """
    kind = type(value)
    if kind is float:
        return value  # type: ignore[return-value]
    if value is None or kind is bool:
        return None
    try:
        return _slow_number(value)
    except OverflowError:
        return _infinite(value)
    except Exception:  # noqa: BLE001 - a foreign object's conversion may raise anything
        return None


def _infinite(value: Any) -> float | None:
    """Return the infinity that stands for a number too large for a float."""
    try:
        return math.inf if value > 0 else -math.inf
    except Exception:  # noqa: BLE001 - a foreign object's comparison may raise anything
        return None


def _slow_number(value: Any) -> float | None:
    if isinstance(value, (int, float)):
        return float(value)
    if isinstance(value, str):
        return None if "_" in value else float(value)
    if isinstance(value, (list, tuple)):
        return to_number(value[0]) if len(value) == 1 else None
    if isinstance(value, (bytes, bytearray, complex, Mapping, set, frozenset)):
        return None
    kind = str(getattr(value, "dtype", ""))
    if kind.endswith("bool") or "time" in kind:
        return None
    size = getattr(value, "size", 1)
    size = value.numel() if hasattr(value, "numel") else size
    if callable(size) or size != 1:
        return None
    item = value.item() if hasattr(value, "item") else float(value)
    return float(item) if type(item) is type(value) else to_number(item)


def to_step(value: object) -> int | None:
    """Read a whole step, or None: what does not fit into 64 bits counts nothing.

    Example:
        >>> to_step("3"), to_step(1e300), to_step(float("nan"))
        (3, None, None)
    """
    if type(value) is int:  # nearly always
        return value if -_MOST_STEPS < value < _MOST_STEPS else None
    number = to_number(value)
    if number is None:
        return None
    return int(number) if -_MOST_STEPS < number < _MOST_STEPS else None


def is_whole(value: object) -> bool:
    """Whether a stored value is a count or a step: an integer of 64 bits."""
    return type(value) is int and -_MOST_STEPS <= value < _MOST_STEPS


def is_real(value: object) -> bool:
    """Whether a stored value is a number that arithmetic takes, NaN included."""
    return isinstance(value, float) or is_whole(value)


def to_largest(value: object) -> float | None:
    """Read the largest of several numbers: the learning rates of all groups.

    NaN counts only where there is nothing else. Of more than a thousand the first
    thousand count: no optimizer has as many groups. Never raises.

    Example:
        >>> to_largest([0.0, 1e-4])
        0.0001
    """
    number = to_number(value)
    if number is not None or value is None or isinstance(value, (str, bytes)):
        return number
    try:
        items: Any = value.values() if isinstance(value, Mapping) else value
        first = islice(items, _MOST_RATES)
        numbers = [n for n in map(to_number, first) if n is not None]
    except Exception:  # noqa: BLE001 - a foreign object's iteration may raise anything
        return None
    known = [n for n in numbers if not math.isnan(n)]
    return max(known or numbers, default=None)


def to_flag(value: object) -> bool | None:
    """Read a flag: a bool, a number (0 is false), or the texts true and false.

    Anything else is None: NaN, a table's empty cell, says neither. Never raises.

    Example:
        >>> to_flag("True"), to_flag(0), to_flag(float("nan"))
        (True, False, None)
    """
    if isinstance(value, bool):
        return value
    number = to_number(value)
    if number is not None:
        return None if math.isnan(number) else number != 0.0
    try:
        if isinstance(value, (list, tuple)):
            return to_flag(value[0]) if len(value) == 1 else None
        item = value.item() if hasattr(value, "item") else value
        return {"true": True, "false": False}.get(str(item).strip().lower())
    except Exception:  # noqa: BLE001 - a foreign object's conversion may raise anything
        return None


def lookup(report: Mapping[str, Any], key: str) -> Any:
    """Find ``a/b`` in a report: flat, nested or partly flat; None if it is absent.

    Example:
        >>> lookup({"eval": {"by/class": 1}}, "eval/by/class")
        1
    """
    found = _entry(report, key)
    if found is not None:
        return found
    head, slash, rest = key.partition("/")
    while slash:
        inner = _entry(report, head)
        found = lookup(inner, rest) if isinstance(inner, Mapping) else None
        if found is not None:
            return found
        part, slash, rest = rest.partition("/")
        head = f"{head}/{part}"
    return None


def _entry(report: Mapping[str, Any], key: str) -> Any:
    """Return the entry of a key, also where the report has blanks around it."""
    if key in report:
        return report[key]
    for name, value in report.items():
        if isinstance(name, str) and name.strip() == key:
            return value
    return None


def flat_keys(report: Mapping[str, Any]) -> list[str]:
    """Return the keys of a nested report in the form ``a/b``, the shallow first.

    Example:
        >>> flat_keys({"loss": 1, "eval": {"acc": 2}})
        ['loss', 'eval/acc']
    """
    keys: list[str] = []
    levels: list[tuple[str, Mapping[Any, Any]]] = [("", report)]
    seen = {id(report)}
    for prefix, level in levels:  # grows while it is walked
        for key, value in level.items():
            name = prefix + _text(key)
            if not isinstance(value, Mapping):
                keys.append(name)
            elif id(value) not in seen and name.count("/") < _DEEPEST_KEY:
                seen.add(id(value))
                levels.append((f"{name}/", value))
        if len(keys) >= _MOST_KEYS_NAMED:
            break
    return keys[:_MOST_KEYS_NAMED]


def _text(key: object) -> str:
    try:
        return str(key)
    except Exception:  # noqa: BLE001 - a foreign object's text may raise anything
        return type(key).__name__


def check_keys(keys: Any) -> Keys:
    """Build ``Keys`` from a mapping and name the nearest signal on an error.

    Raises:
        ConfigError: If it is no mapping, a name is no signal, or a value no key.
    """
    if not isinstance(keys, Mapping):
        msg = f"`keys` must say which signal lies where, but got {keys!r}."
        raise ConfigError(msg + " Write `lr: optim/lr`.")
    for name in keys:
        if name not in SIGNALS:
            msg = f"keys: `{name}` is no signal. {did_you_mean(str(name), SIGNALS)}"
            raise ConfigError(msg)
    return Keys(**keys)
