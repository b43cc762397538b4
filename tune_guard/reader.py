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
    """Where a signal may lie in reports of one shape.

    Args:
        signal: Its name.

        keys: Its keys in the order in which they are tried, each with the flat key
            of the report; None where it can only be nested.
    """

    signal: str
    keys: tuple[tuple[str, Any], ...]


class _Plan(NamedTuple):
    """Where to look in reports of one shape.

    Args:
        numbers: Signals that are no flags and can lie under one flat key only, with
            that key. Nearly every signal is one; they are read in the shortest way.

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
                self._take(signal, self.names[signal], raw, fields)
        for place in plan.others:
            self._read_place(place, report, fields)
        if plan.losses:
            fields["losses"] = [(k, to_number(lookup(report, k))) for k in plan.losses]
        if self.extra:
            self._read_extra(report, fields)
        return observation

    def _read_place(
        self, place: _Place, report: Mapping[str, Any], fields: dict[str, Any]
    ) -> None:
        """Take the first of a signal's keys that holds a value."""
        for alias, key in place.keys:
            raw = lookup(report, alias) if key is None else report[key]
            if raw is not None and self._take(place.signal, alias, raw, fields):
                self.names[place.signal] = alias
                return

    def _take(self, signal: str, key: str, raw: object, fields: dict[str, Any]) -> bool:
        """Take a value, if it is one; else name its key."""
        value = _CONVERT.get(signal, to_number)(raw)
        if value is not None:
            fields[signal] = value
            return True
        if not isinstance(raw, Mapping) or len(self.wanted[signal]) == 1:
            # A folder under one of several usual names is no value: `loss/val`.
            self._unusable(key, raw)
        return False

    def _plan(self, shape: tuple[Any, ...], report: Mapping[str, Any]) -> _Plan:
        """Find for each signal the keys that are there, flat, or may be nested."""
        tidy = {key.strip(): key for key in shape if isinstance(key, str)}
        tidy |= {key: key for key in shape if isinstance(key, str)}
        numbers, others = [], []
        for signal, aliases in self.wanted.items():
            keys = [(alias, tidy.get(alias)) for alias in aliases]
            keys = [
                (a, k) for a, k in keys if k or not tidy.keys().isdisjoint(_folders(a))
            ]
            if not keys:
                continue
            self.names[signal], flat = keys[0]
            if len(keys) == 1 and flat is not None and signal not in FLAGS:
                numbers.append((signal, flat))
            else:
                others.append(_Place(signal, tuple(keys)))
                self._read_place(others[-1], report, {})  # under which name it comes
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
