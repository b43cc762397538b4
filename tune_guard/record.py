"""The stored record of a trial's end: one schema in every engine.

The keys are part of the public interface: they lie in people's result files
and databases, and are never renamed.
"""

from __future__ import annotations

import datetime as dt
import enum
import functools
import importlib.metadata
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from tune_guard.strict_json import clean, from_json, number, plain, text_of, to_json
from tune_guard.verdict import Blame, Verdict

STATUS = "tune_guard/status"
REASON = "tune_guard/reason"
STEP = "tune_guard/step"
BLAME = "tune_guard/blame"
DETAIL = "tune_guard/detail"
KEYS = (STATUS, REASON, STEP, BLAME, DETAIL)

RECORD_FILE = "tune_guard.json"
FALLBACK_SUFFIX = ".tune_guard.jsonl"
"""Beside a local storage file: records that the storage refused, one a line."""
FALLBACK_FOLDER = ".tune_guard"
"""In the working directory: the same, where the storage is no local file."""

STALE = "tune_guard/stale/"
"""Before a trial's number: attribute of an Optuna study with the record of a trial
that was failed, and closed, because its worker was gone."""

SCHEMA = 1
DETAIL_LIMIT_BYTES = 1000
"""optuna-dashboard cuts a stored attribute at 1024 characters."""


class Status(enum.StrEnum):
    """State of a trial's health, as stamped on its rows."""

    RUNNING = "running"
    HEALTHY = "healthy"
    WARNED = "warned"
    STOPPED = "stopped"


class Outcome(enum.StrEnum):
    """How a trial ended, whoever ended it."""

    COMPLETED = "completed"
    GUARD = "guard"
    PRUNER = "pruner"
    SCHEDULER = "scheduler"
    CRITERION = "criterion"
    ERROR = "error"
    EXPERIMENT_STOP = "experiment_stop"
    INTERRUPTED = "interrupted"


CUTS = frozenset({Outcome.GUARD, Outcome.PRUNER, Outcome.SCHEDULER})
"""Outcomes of a trial that was cut before its end."""


def now_utc() -> str:
    """Return the time as ISO 8601 in UTC, to the second."""
    return dt.datetime.now(dt.UTC).isoformat(timespec="seconds")


@functools.cache
def version() -> str:
    """Return the version of the installed package."""
    try:
        return importlib.metadata.version("tune-guard")
    except importlib.metadata.PackageNotFoundError:
        return "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class StopRecord:
    """Why and how one trial ended, and on which numbers.

    Args:
        reason: Rule id, ``pruner:<Class>``, ``scheduler:<Class>``,
            ``error:<kind>``, or empty when the trial simply completed.

        outcome: Who ended it.

        step: Step for which the reason holds; -1 when there is none.

        blame: Whose fault it is, or None.

        value: The number that crossed ``threshold``.

        objective: Key of the sweep's objective, and ``mode`` its direction.

        best_value: Best objective before the first non-finite reading.

        attempt: Which run of the trial this was, from 1.

        warnings: What did not cut, as ``rule@step``.

        spared: What would have cut, had its action not been ``warn`` (``action``)
            or the trial not been in the holdout (``holdout``): the first such
            finding, as ``rule@step:action``. Empty when there was none.

        time: When it was recorded, ISO 8601 in UTC.
    """

    reason: str = ""
    outcome: Outcome = Outcome.COMPLETED
    step: int = -1
    blame: Blame | None = None
    metric: str = ""
    value: float | None = None
    threshold: float | None = None
    message: str = ""
    objective: str = ""
    mode: str = ""
    best_value: float | None = None
    best_step: int | None = None
    attempt: int = 1
    trial: str = ""
    host: str = ""
    gpu_uuid: str = ""
    warnings: tuple[str, ...] = ()
    spared: str = ""
    evidence: str = ""
    time: str = field(default_factory=now_utc)
    version: str = field(default_factory=version)

    @classmethod
    def of(cls, verdict: Verdict, **more: Any) -> StopRecord:
        """Make the record of a verdict that cut; ``more`` are further fields."""
        cause = verdict.cause
        if cause is None:
            return cls(**more)
        return cls(
            reason=cause.rule,
            outcome=Outcome.GUARD,
            step=cause.step,
            blame=cause.blame,
            metric=cause.metric,
            value=cause.value,
            threshold=cause.threshold,
            message=cause.message,
            **more,
        )

    @property
    def status(self) -> Status:
        """The health that the record stands for."""
        if self.outcome is Outcome.GUARD:
            return Status.STOPPED
        return Status.WARNED if self.warnings else Status.HEALTHY

    def detail(self) -> dict[str, Any]:
        """Return ``tune_guard/detail``: plain values, under 1 kB as JSON."""
        names = [f.name for f in fields(self)]
        out: dict[str, Any] = {"schema": SCHEMA, "rule": self.reason}
        out |= {name: plain(getattr(self, name)) for name in names}
        out["status"] = str(self.status)
        for name in ("reason", "step"):
            del out[name]
        return _shrunk({k: v for k, v in out.items() if v not in (None, "", [])})

    def metadata(self) -> dict[str, Any]:
        """Return all five keys, detail first and reason last.

        The reason is written last, so that who finds it finds the rest too.
        """
        return {
            DETAIL: self.detail(),
            STATUS: str(self.status),
            BLAME: str(self.blame or ""),
            STEP: plain(self.step),
            REASON: clean(self.reason),
        }

    @classmethod
    def from_metadata(cls, stored: Mapping[str, Any]) -> StopRecord | None:
        """Read a record back; None when nothing was stored. Never raises.

        Unknown and damaged fields are left out, so that a record of a newer
        version, or one that was edited by hand, is read as far as it goes.
        """
        reason, detail = stored.get(REASON), stored.get(DETAIL)
        if not isinstance(reason, str):
            return None
        detail = from_json(detail) if isinstance(detail, str) else detail
        detail = detail if isinstance(detail, Mapping) else {}
        step = number(stored.get(STEP))
        return cls(
            reason=reason,
            outcome=_member(Outcome, detail.get("outcome")) or _outcome_of(reason),
            step=-1 if step is None or not math.isfinite(step) else int(step),
            blame=_member(Blame, stored.get(BLAME) or detail.get("blame")),
            **_fields_of(detail),
        )


def _member(kind: type[enum.StrEnum], value: Any) -> Any:
    return kind(value) if value in [str(member) for member in kind] else None


def _outcome_of(reason: str) -> Outcome:
    """Tell who ended a trial from its reason alone, where the detail is damaged."""
    if not reason:
        return Outcome.COMPLETED
    found: Outcome | None = _member(Outcome, reason.partition(":")[0])
    return found or Outcome.GUARD


_TEXTS = (
    "metric",
    "message",
    "objective",
    "mode",
    "trial",
    "host",
    "gpu_uuid",
    "spared",
    "evidence",
)


def _fields_of(detail: Mapping[str, Any]) -> dict[str, Any]:
    """Return the record's fields that a stored detail holds in a usable form."""
    out: dict[str, Any] = {}
    for name in ("value", "threshold", "best_value"):
        out[name] = number(detail.get(name))
    for name in ("best_step", "attempt"):
        found = number(detail.get(name))
        if found is not None and math.isfinite(found):
            out[name] = int(found)
    for name in _TEXTS:
        out[name] = text_of(detail.get(name) or "")
    warnings = detail.get("warnings")
    out["warnings"] = (
        tuple(map(text_of, warnings)) if isinstance(warnings, list) else ()
    )
    out["time"] = text_of(detail.get("time") or "")
    out["version"] = text_of(detail.get("version") or "")
    return out


def _shrunk(detail: dict[str, Any]) -> dict[str, Any]:
    """Shorten the longest texts until the whole is under the limit."""
    while len(to_json(detail).encode()) >= DETAIL_LIMIT_BYTES:
        name = max(detail, key=lambda name: len(to_json({"": detail[name]}).encode()))
        value = detail[name]
        if isinstance(value, list):
            detail[name] = value[: len(value) // 2]
        else:
            detail[name] = str(value)[: len(str(value)) * 3 // 4 - 1] + "…"
    return detail
