"""What one trial reported at one step, and under which key each signal lies."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from tune_guard.exceptions import ConfigError, did_you_mean


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
FLAGS = frozenset({"step_skipped", "gpu_lost"})


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
