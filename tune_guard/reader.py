"""Reports of any shape, read as observations."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from tune_guard.coercion import to_bits, to_flag, to_largest, to_number
from tune_guard.nested_keys import flat_keys, lookup
from tune_guard.notices import Notices
from tune_guard.observation import FLAGS, Keys, Observation, aliases_of

_MOST_PLANS = 32
_MOST_LOSSES = 8
_LOSS_LIKE = re.compile(r"(^|[^a-z])(loss(es)?|nll)(?!_?scale|[a-z])", re.IGNORECASE)
_NO_RESULTS = ("config", "tune_guard")
"""Folders of a Ray result that hold no numbers of the training."""


class _Place(NamedTuple):
    """Where a signal may lie in reports of one shape: nested, or else flat."""

    signal: str
    key: Any
    nested: tuple[str, ...]


class _Plan(NamedTuple):
    """Where to look in reports of one shape.

    Args:
        numbers: Signals that are no flags and can lie under one flat key only.
            Nearly every signal is one; they are read in the shortest way.

        others: The other signals.

        losses: Keys of other losses.
    """

    numbers: list[tuple[str, Any]]
    others: list[_Place]
    losses: list[str]


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
        self.wanted |= aliases_of(keys)
        self.extra = tuple(sorted(set(extra)))
        self.names = {signal: aliases[0] for signal, aliases in self.wanted.items()}
        self._notices = notices
        self._plans: dict[tuple[Any, ...], _Plan] = {}
        self._shape: tuple[Any, ...] = ()
        self._newest = _Plan([], [], [])

    def read(self, step: int, report: Mapping[str, Any]) -> Observation:
        """Return what ``report`` says at ``step``."""
        shape = tuple(report)
        if shape == self._shape:  # compared by identity: cheaper than a hash
            plan = self._newest
        else:
            plan = self._plans.get(shape) or self._plan(shape, report)
            self._shape, self._newest = shape, plan
        observation = object.__new__(Observation)
        fields = observation.__dict__
        fields["step"] = step
        for signal, key in plan.numbers:
            raw = report[key]
            if type(raw) is float:
                fields[signal] = raw
            elif raw is not None:
                self._convert(signal, raw, fields)
        for signal, key, nested in plan.others:
            raw = self._nested(signal, nested, report)
            if raw is None and key is not None:
                raw = report[key]
            if raw is not None:
                self._convert(signal, raw, fields)
        if plan.losses:
            fields["losses"] = [(k, to_number(lookup(report, k))) for k in plan.losses]
        if self.extra:
            self._read_extra(report, fields)
        return observation

    def _convert(self, signal: str, raw: object, fields: dict[str, Any]) -> None:
        value = _CONVERT.get(signal, to_number)(raw)
        if value is not None:
            fields[signal] = value
        elif not isinstance(raw, Mapping) or len(self.wanted[signal]) == 1:
            # A folder under one of several usual names is no value: `loss/val`.
            self._unusable(self.names[signal], raw)

    def _plan(self, shape: tuple[Any, ...], report: Mapping[str, Any]) -> _Plan:
        """Find each signal's flat key, and the keys before it that may be nested."""
        tidy = {key.strip(): key for key in shape if isinstance(key, str)}
        tidy |= {key: key for key in shape if isinstance(key, str)}
        numbers, others = [], []
        for signal, aliases in self.wanted.items():
            flat, nested = None, []
            for alias in aliases:
                if alias in tidy:
                    flat = tidy[alias]
                    self.names[signal] = alias
                    break
                if any(folder in tidy for folder in _folders(alias)):
                    nested.append(alias)
            if nested or (flat is not None and signal in FLAGS):
                others.append(_Place(signal, flat, tuple(nested)))
            elif flat is not None:
                numbers.append((signal, flat))
        plan = _Plan(numbers, others, self._other_losses(report))
        if len(self._plans) < _MOST_PLANS:
            self._plans[shape] = plan
        return plan

    def _other_losses(self, report: Mapping[str, Any]) -> list[str]:
        """Return keys that are named like losses and are no signal: ``kl_loss``."""
        taken = {self.names["metric"], self.names.get("loss")}
        keys = [
            key.strip()
            for key in flat_keys(report)
            if _LOSS_LIKE.search(key) and not key.startswith(_NO_RESULTS)
        ]
        return [key for key in keys if key not in taken][:_MOST_LOSSES]

    def _nested(
        self, signal: str, aliases: tuple[str, ...], report: Mapping[str, Any]
    ) -> Any:
        for alias in aliases:
            raw = lookup(report, alias)
            if raw is not None:
                self.names[signal] = alias
                return raw
        return None

    def _read_extra(self, report: Mapping[str, Any], fields: dict[str, Any]) -> None:
        values = {}
        for key in self.extra:
            raw = lookup(report, key)
            value = to_number(raw)
            if value is not None:
                values[key] = value
            elif raw is not None:
                self._unusable(key, raw)
        if values:
            fields["values"] = values

    def _unusable(self, key: str, raw: object) -> None:
        if isinstance(raw, float):
            return  # NaN for a flag: an empty cell of a table
        self._notices.once(
            f"unusable:{key}",
            f"`{key}` was reported as {type(raw).__name__} {reprlib.repr(raw)[:60]},"
            " which is no single number: such values are not judged. Report one"
            " number per step.",
        )


def _folders(key: str) -> list[str]:
    parts = key.split("/")
    return ["/".join(parts[:i]) for i in range(1, len(parts))]


_CONVERT: Mapping[str, Callable[[object], Any]] = {
    "gpu_reasons": to_bits,
    "lr": to_largest,
    **dict.fromkeys(FLAGS, to_flag),
}
