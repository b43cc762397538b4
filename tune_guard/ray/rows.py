"""What the guard writes into a row of results, and reads back from it.

The row is all that the stopper and the callback share: after a restart of the
driver they are unpickled apart, and no other object would be the same in both.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

from tune_guard.coercion import to_number
from tune_guard.exceptions import ConfigError
from tune_guard.policy import Policy
from tune_guard.record import DETAIL, STATUS, StopRecord

if TYPE_CHECKING:
    from tune_guard.monitor import Monitor
    from tune_guard.verdict import Verdict

ITERATION = "training_iteration"
SINCE_RESTORE = "iterations_since_restore"
DONE = "done"
CHECKPOINTED = "should_checkpoint"

LOOKED_AT = 4
"""Open trials looked at whenever one opens: more than 1, so that the ended go."""


class Stamp(str):
    """The status of one row, with what must not be logged riding along.

    Loggers see a plain text; pickled or copied, it is one.

    It is made for every row of a sweep, hence slots and no constructor of its own:
    what was not set has the value of ``_UNSET``.
    """

    __slots__ = ("checkpointed", "ended", "judge", "monitor", "silent", "stopped_by")

    monitor: Monitor | None
    """The trial's monitor while the trial is open: whoever records its end learns
    from it the best value, the attempt and the warnings."""

    checkpointed: bool
    """Set by the callback: a checkpoint was taken after this row."""

    ended: bool
    """Set by the callback: the trial has ended after this row."""

    stopped_by: str
    """Set by a criterion that stops the experiment: its name."""

    silent: Verdict | None
    """Set by the watchdog: it ended the trial, which was not heard of any more."""

    judge: weakref.ref[Monitor] | None
    """The monitor that cut the trial after this row. It does not live on for it."""

    def __getattr__(self, name: str) -> Any:
        try:
            return _UNSET[name]
        except KeyError:
            raise AttributeError(name) from None

    def __reduce__(self) -> tuple[Any, ...]:
        return str, (str(self),)


_UNSET = {
    "monitor": None,
    "checkpointed": False,
    "ended": False,
    "stopped_by": "",
    "silent": None,
    "judge": None,
}


def stamp_of(result: Mapping[str, Any] | None) -> Stamp | None:
    """Return the live stamp of a row; None for one that came from a file."""
    stamp = result.get(STATUS) if result else None
    return stamp if isinstance(stamp, Stamp) else None


def put_stamp(result: dict[str, Any], values: Mapping[str, Any]) -> Stamp:
    """Write the five values into a row; what rode along on its stamp goes on."""
    before = stamp_of(result)
    result.update(values)
    stamp = result[STATUS] = Stamp(values[STATUS])
    if before is not None:
        for name in _UNSET:
            setattr(stamp, name, getattr(before, name))
    return stamp


def record_in(result: Mapping[str, Any] | None) -> StopRecord | None:
    """Return the record that a row holds; None while its trial is open."""
    if not result or not result.get(DETAIL):
        return None
    return StopRecord.from_metadata(result)


def new_record(monitor: Monitor | None, **fields: Any) -> StopRecord:
    """Make the record of an end that was not the guard's; the monitor may be gone."""
    if monitor is None or monitor.verdict.stop:
        return StopRecord(**fields)
    return monitor.record(**fields)


def step_of(result: Mapping[str, Any], monitor: Monitor | None) -> int:
    """Return the step that the rules count in, or Ray's; -1 when there is none."""
    if monitor is not None and monitor.last_step is not None:
        return monitor.last_step
    number = to_number(result.get(ITERATION))
    return -1 if number is None else int(number)


def has_ended(row: Mapping[str, Any] | None) -> bool:
    """Whether a trial has ended since this, its newest row.

    Ray does not tell a stopper. But whoever ends a trial marks its newest row:
    Ray by ``done``, the callback on the stamp.
    """
    stamp = stamp_of(row)
    return bool(row and row.get(DONE)) or (stamp is not None and stamp.ended)


class OpenRows:
    """The newest row of every open trial; ended trials are let go by and by."""

    def __init__(self) -> None:
        self._rows: dict[str, dict[str, Any]] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, trial_id: str, row: dict[str, Any]) -> None:
        """Take the newest row of a trial."""
        is_new = trial_id not in self._rows
        self._rows[trial_id] = row
        if is_new:
            for oldest in list(islice(self._rows, LOOKED_AT)):
                found = self._rows.pop(oldest)
                if not has_ended(found):
                    self._rows[oldest] = found

    def mark_stopped(self, by: str) -> None:
        """Leave word in every open trial's row who stops the experiment."""
        for row in self._rows.values():
            stamp = stamp_of(row)
            if stamp is not None:
                stamp.stopped_by = by


def checked_policy(policy: object, name: str) -> Policy:
    """Return the policy if it can be used.

    Raises:
        ConfigError: If it is no policy, or its mode is missing.
    """
    if not isinstance(policy, Policy):
        msg = (
            f"`policy` must be a Policy, but got {policy!r}. Write"
            f' {name}(Policy.default("val_loss", "min")).'
        )
        raise ConfigError(msg)
    return policy.checked()
