"""Several stop criteria at once, all of them asked, and the one that fired named."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from ray.tune.stopper import FunctionStopper, Stopper

from tune_guard.coercion import to_number
from tune_guard.exceptions import ConfigError, brief
from tune_guard.nested_keys import lookup
from tune_guard.notices import Notices
from tune_guard.policy import Policy
from tune_guard.ray.rows import (
    DONE,
    OpenRows,
    new_record,
    put_stamp,
    record_in,
    stamp_of,
    step_of,
)
from tune_guard.ray.stopper import GuardStopper
from tune_guard.ray.stored import pickled
from tune_guard.record import STATUS, Outcome
from tune_guard.row_stamp import RUNNING, to_row

STATE_VERSION = 1
Criterion = Stopper | Mapping[str, Any] | Callable[[str, dict[str, Any]], bool]


def combine(*criteria: Criterion) -> Stopper:
    """Return one stopper that stops a trial when any of the criteria says so.

    Unlike a list in Ray it takes dictionaries too, asks every criterion for
    every row (a criterion that counts rows misses none), and names the one that
    fired: the trial's reason is then ``criterion:<name>``. The guard's own
    verdict goes first. A criterion that raises is named once and counts as no.

    Args:
        criteria: Stoppers; dictionaries ``{"key": value}``, which stop at
            ``result[key] >= value``; functions of trial id and result.

    Raises:
        ConfigError: If there is none, or one is neither.

    Example:
        >>> from tune_guard import Policy
        >>> from tune_guard.ray import GuardStopper
        >>> stop = combine(
        ...     GuardStopper(Policy.default("loss", "min")), {"training_iteration": 2}
        ... )
        >>> result = {"loss": 0.5, "training_iteration": 2}
        >>> stop("trial", result), result["tune_guard/reason"]
        (True, 'criterion:training_iteration')
    """
    if not criteria:
        msg = "combine() must get criteria, but got none. Pass stoppers or dicts."
        raise ConfigError(msg)
    return Combined([named for one in criteria for named in _named(one)])


def _named(criterion: object) -> list[tuple[str, Stopper]]:
    if isinstance(criterion, Combined):
        return criterion.criteria
    if isinstance(criterion, Stopper):
        return [(type(criterion).__name__, criterion)]
    if isinstance(criterion, Mapping):
        return [(str(key), _reached(key, value)) for key, value in criterion.items()]
    if callable(criterion) and not isinstance(criterion, type):
        name = getattr(criterion, "__name__", type(criterion).__name__)
        return [(name, FunctionStopper(criterion))]
    advice = "Pass an instance, not a class."
    if isinstance(criterion, Policy):
        advice = "Wrap the policy: GuardStopper(policy)."
    elif isinstance(criterion, (list, tuple)):
        advice = "Pass them one by one: combine(*criteria)."
    msg = (
        "combine() takes stoppers, dicts and functions, but got"
        f" {brief(criterion)}. {advice}"
    )
    raise ConfigError(msg)


def _reached(key: str, value: Any) -> Stopper:
    if to_number(value) is None:
        msg = f"The criterion `{key}` must be a number, but got {value!r}."
        raise ConfigError(msg)
    return _Reached(key, float(value))


class _Reached(Stopper):
    """Stop at ``result[key] >= value``; what is no number does not count."""

    def __init__(self, key: str, value: float) -> None:
        self.key = key
        self.value = value

    def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:  # noqa: ARG002
        number = to_number(lookup(result, self.key))
        return number is not None and number >= self.value

    def stop_all(self) -> bool:
        return False


class Combined(Stopper):
    """The stopper that :func:`combine` makes."""

    def __init__(self, criteria: list[tuple[str, Stopper]]) -> None:
        self._begin()
        self.criteria += criteria

    def _begin(self) -> None:
        self.criteria: list[tuple[str, Stopper]] = []
        self._lost: list[str] = []
        self._notices = Notices()
        self._rows = OpenRows()

    def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
        """Ask every criterion about a row. Never raises."""
        self._name_the_lost()
        done = bool(result.get(DONE))
        # The last row of a function that returned is shown a second time: whoever
        # counts rows must not count it twice.
        repeated = done and STATUS in result
        fired = [
            name
            for name, criterion in self.criteria
            if (not repeated or isinstance(criterion, GuardStopper))
            and self._says_stop(name, partial(criterion, trial_id, result))
        ]
        if stamp_of(result) is None:
            put_stamp(result, RUNNING)
        if record_in(result) is None:
            self._stamp(trial_id, result, fired, done=done)
        return bool(fired)

    def stop_all(self) -> bool:
        """Ask every criterion whether the experiment is to end. Never raises."""
        fired = [
            name
            for name, criterion in self.criteria
            if self._says_stop(name, criterion.stop_all)
        ]
        if fired:
            self._rows.mark_stopped(fired[0])
        return bool(fired)

    def _says_stop(self, name: str, ask: Callable[[], Any]) -> bool:
        try:
            return bool(ask())
        except Exception as error:  # noqa: BLE001 - nothing may raise into a sweep
            self._notices.once(
                f"criterion:{name}",
                f"The stop criterion {name} failed with {error!r}: it counts as no.",
            )
            return False

    def _stamp(
        self, trial_id: str, result: dict[str, Any], fired: list[str], *, done: bool
    ) -> None:
        """Say which criterion ends the trial, unless the trial ends itself."""
        stamp = stamp_of(result)
        monitor = stamp.monitor if stamp is not None else None
        if done:
            record = new_record(monitor, trial=trial_id)
        elif fired:
            record = new_record(
                monitor,
                trial=trial_id,
                outcome=Outcome.CRITERION,
                reason=f"criterion:{fired[0]}",
                step=step_of(result, monitor),
                message=f"Stopped by {', '.join(fired)}.",
            )
        else:
            self._rows.add(trial_id, result)
            return
        put_stamp(result, to_row(record))

    def _name_the_lost(self) -> None:
        for name in self._lost:
            self._notices.once(
                f"lost:{name}",
                f"The stop criterion {name} could not be read from the experiment's"
                " state: it no longer stops trials.",
            )

    def __getstate__(self) -> dict[str, Any]:
        """Return each criterion apart, so that one cannot spoil the others."""
        return {
            "version": STATE_VERSION,
            "criteria": [(name, pickled(one)) for name, one in self.criteria],
        }

    def __setstate__(self, state: Any) -> None:
        """Take over a state. Never raises: see ``GuardStopper.__setstate__``."""
        self._begin()
        stored = state.get("criteria") if isinstance(state, dict) else None
        for name, packed in stored or []:
            try:
                criterion = pickle.loads(packed)  # noqa: S301 - the stopper's own
            except Exception:  # noqa: BLE001 - it may raise anything
                self._lost.append(name)
            else:
                self.criteria.append((name, criterion))


def guards_in(stoppers: list[Stopper]) -> Iterator[GuardStopper]:
    """Yield the guards among stoppers, those within :func:`combine` too."""
    for stopper in stoppers:
        if isinstance(stopper, GuardStopper):
            yield stopper
        elif isinstance(stopper, Combined):
            yield from guards_in([criterion for _, criterion in stopper.criteria])
