"""What one trial reported at one step, coerced to plain numbers."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tune_guard.exceptions import ConfigError, did_you_mean
from tune_guard.notices import Notices

_MOST_PLANS = 32
_LONGEST_PREFIX = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """Under which key of a report each signal is found.

    Each value is a key, or several in the order in which they are tried. A key
    with slashes, ``a/b``, is found flat and nested. Blanks around keys do not
    matter. A signal that is never reported leaves its rules inactive.

    Example:
        >>> Keys(loss="train/nll").loss
        'train/nll'
    """

    step: str | tuple[str, ...] = ()
    loss: str | tuple[str, ...] = ("loss", "train_loss", "train/loss")
    grad_norm: str | tuple[str, ...] = ("grad_norm", "train/grad_norm")
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

    def aliases(self, signal: str) -> tuple[str, ...]:
        """Return the keys of ``signal``, in the order in which they are tried."""
        keys = getattr(self, signal)
        keys = (keys,) if isinstance(keys, str) else tuple(keys)
        return tuple(key.strip() for key in keys)


SIGNALS = tuple(f.name for f in dataclasses.fields(Keys))
_FLAGS = frozenset({"step_skipped", "gpu_lost"})


@dataclass(frozen=True, kw_only=True)
class Observation:
    """One report of one trial, as the rules see it.

    A signal that was not reported, or could not be read as a number, is None.
    NaN and infinities are kept as they are.

    Args:
        step: Step of the report, as the trainer counts it.

        metric: The objective; None also where its evaluation marker
            (``fresh_key``) has not moved.

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
    values: Mapping[str, float] | None = None

    def get(self, name: str) -> float | None:
        """Return a signal by its name, or a further key that a rule asked for."""
        if self.values is not None and name in self.values:
            return self.values[name]
        value: float | None = getattr(self, name) if name in _READABLE else None
        return value


_READABLE = frozenset(SIGNALS) - {"step"} | {"metric"}


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
        return math.inf if value > 0 else -math.inf  # type: ignore[operator]
    except Exception:  # noqa: BLE001 - a foreign object's conversion may raise anything
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
    if str(getattr(value, "dtype", "")).endswith("bool"):
        return None
    size = getattr(value, "size", 1)
    size = value.numel() if hasattr(value, "numel") else size
    if callable(size) or size != 1:
        return None
    return to_number(value.item()) if hasattr(value, "item") else float(value)


def to_largest(value: object) -> float | None:
    """Read the largest of several numbers: the learning rates of all groups.

    Example:
        >>> to_largest([0.0, 1e-4])
        0.0001
    """
    number = to_number(value)
    if number is not None or value is None or isinstance(value, (str, bytes)):
        return number
    try:
        items: Any = value.values() if isinstance(value, Mapping) else value
        numbers = [n for n in map(to_number, items) if n is not None]
    except Exception:  # noqa: BLE001 - a foreign object's iteration may raise anything
        return None
    return max(numbers, default=None)


def to_flag(value: object) -> bool:
    """Read a flag: a bool, or a number that is not zero."""
    if isinstance(value, bool):
        return value
    return bool(to_number(value) or str(value).strip().lower() == "true")


def lookup(report: Mapping[str, Any], key: str) -> Any:
    """Find ``a/b`` in a report, flat or nested; None when it is not there."""
    if key in report:
        return report[key]
    found: Any = report
    for part in key.split("/"):
        if not isinstance(found, Mapping):
            return None
        found = found.get(part)
    return found


def flat_keys(report: Mapping[str, Any], prefix: str = "") -> list[str]:
    """Return every key of a nested report in the form ``a/b``."""
    keys: list[str] = []
    for key, value in report.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping) and len(prefix) < _LONGEST_PREFIX:
            keys += flat_keys(value, name + "/")
        else:
            keys.append(name)
    return keys


class ReportReader:
    """Turn reports into observations, knowing where each signal lies.

    Where the signals lie is worked out once for each set of top-level keys, so
    that a report costs one dictionary access per signal that is really there.

    Args:
        metric: Key of the objective.

        keys: Keys of the other signals.

        extra: Further keys that rules ask for by name.

        notices: Where unusable values are named, once per key.
    """

    def __init__(
        self, metric: str, keys: Keys, extra: Iterable[str], notices: Notices
    ) -> None:
        self.wanted: dict[str, tuple[str, ...]] = {"metric": (metric.strip(),)}
        self.wanted |= {s: keys.aliases(s) for s in SIGNALS if keys.aliases(s)}
        self.extra = tuple(sorted(set(extra)))
        self.names = {signal: aliases[0] for signal, aliases in self.wanted.items()}
        self._notices = notices
        self._plans: dict[tuple[str, ...], list[tuple[str, str, bool, Any]]] = {}

    def read(self, step: int, report: Mapping[str, Any]) -> Observation:
        """Return what ``report`` says at ``step``. Never raises."""
        shape = tuple(report)
        plan = self._plans.get(shape)
        if plan is None:
            plan = self._plan(shape, report)
        fields: dict[str, Any] = {"step": step}
        for signal, key, flat, convert in plan:
            raw = report[key] if flat else lookup(report, key)
            if type(raw) is float and convert is to_number:
                fields[signal] = raw
            elif raw is not None:
                value = convert(raw)
                if value is None:
                    self._unusable(key, raw)
                else:
                    fields[signal] = value
        if self.extra:
            self._read_extra(report, fields)
        observation = object.__new__(Observation)
        observation.__dict__.update(fields)
        return observation

    def _plan(
        self, shape: tuple[str, ...], report: Mapping[str, Any]
    ) -> list[tuple[str, str, bool, Any]]:
        plan = []
        tidy = {str(key).strip(): key for key in shape}
        for signal, aliases in self.wanted.items():
            for alias in aliases:
                key = tidy.get(alias, alias)
                if key in report:
                    plan.append((signal, key, True, _converter(signal)))
                elif alias.split("/")[0] in report:
                    plan.append((signal, alias, False, _converter(signal)))
                else:
                    continue
                self.names[signal] = alias
                break
        if len(self._plans) < _MOST_PLANS:
            self._plans[shape] = plan
        return plan

    def _read_extra(self, report: Mapping[str, Any], fields: dict[str, Any]) -> None:
        values = {}
        for key in self.extra:
            raw = lookup(report, key)
            value = to_largest(raw) if raw is not None else None
            if value is not None:
                values[key] = value
        if values:
            fields["values"] = values

    def _unusable(self, key: str, raw: object) -> None:
        self._notices.once(
            f"unusable:{key}",
            f"`{key}` was reported as {_short(raw)}, which is no number: such"
            " values are not judged. Report one number per step.",
        )


def _converter(signal: str) -> Callable[[object], Any]:
    if signal in _FLAGS:
        return to_flag
    return to_largest if signal == "lr" else to_number


def _short(raw: object) -> str:
    try:
        text = repr(raw)
    except Exception:  # noqa: BLE001 - a foreign object's repr may raise anything
        text = "an object"
    return f"{type(raw).__name__} {text[:60]}"


def check_keys(keys: Mapping[str, Any], advice: str) -> Keys:
    """Build ``Keys`` from a mapping and name the nearest signal on an error.

    Raises:
        ConfigError: If a name is no signal, or a value is no key.
    """
    for name, value in keys.items():
        if name not in SIGNALS:
            msg = f"`{name}` is no signal. {did_you_mean(name, SIGNALS)}"
            raise ConfigError(msg)
        parts = [value] if isinstance(value, str) else list(value or ())
        if not all(isinstance(part, str) for part in parts):
            asked = f"`{name}` must be a key or a list of keys"
            msg = f"{asked}, but got {value!r}. {advice}"
            raise ConfigError(msg)
    tidy = {k: v if isinstance(v, str) else tuple(v or ()) for k, v in keys.items()}
    return Keys(**tidy)
