"""What a worker knows of its running trials: monitors and signals, in memory only."""

from __future__ import annotations

import itertools
import threading
import weakref
from typing import TYPE_CHECKING, Any, NamedTuple

from tune_guard.coercion import to_number
from tune_guard.optuna import _engine
from tune_guard.record import Outcome, StopRecord
from tune_guard.verdict import HEALTHY, Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from optuna.storages import BaseStorage
    from optuna.study import Study

    from tune_guard.monitor import Monitor

MOST_TRIALS = 1024
"""Trials that one guard watches at once in one process."""

_JUDGED_BUT_KEPT = (("action",), ("holdout",))


class Watch:
    """One running trial: its monitor, and what was seen of it so far.

    Optuna carries nothing over to another process. A watch that is made for a
    trial with stored values judges these first, step by step, and goes on where
    the other worker ended.

    Args:
        monitor: Judges the trial; None where the metric's direction is unknown.

        stores_values: Whether the trial's reports reach its storage. With
            several objectives they do not: then signals have their own steps.
    """

    def __init__(self, monitor: Monitor | None, *, stores_values: bool = True) -> None:
        self.monitor = monitor
        self.place: Place | None = None
        self.gpu_uuid = ""
        self.record: StopRecord | None = None
        self.asked_at = -1
        self.wished_at: int | None = None
        self.pruner_says = False
        self._metric = "" if monitor is None else monitor.policy.metric
        self._stores_values = stores_values
        self._kept: set[str] = set()
        self._lock = threading.Lock()
        self._seen = 0
        self._reported: int | None = None
        self._pending: dict[str, Any] = {}
        self._pending_step: int | None = None

    @property
    def is_cut(self) -> bool:
        """Whether the guard's own cut is recorded: it is final."""
        return self.record is not None and self.record.outcome is Outcome.GUARD

    def note_device(self, signals: Mapping[str, Any]) -> None:
        """Remember which GPU the trial runs on, if the signals say it."""
        if "gpu_uuid" in signals:
            self.gpu_uuid = str(signals["gpu_uuid"])

    def judge(self, values: dict[int, float]) -> Verdict:
        """Judge what was stored or observed since the last call.

        A running trial's mapping grows in the order of its reports, so that the
        new ones lie at its end: the cost does not grow with the trial's length.
        """
        if self.monitor is None:
            return HEALTHY
        if self._pending or len(values) != self._seen:
            with self._lock:
                self._catch_up(values)
                if self._pending:
                    self._flush()
        return self.monitor.verdict

    def report(
        self, values: dict[int, float], step: int | None, report: Mapping[str, Any]
    ) -> None:
        """Judge a report with the objective, before the storage has it."""
        with self._lock:
            self._catch_up(values)
            self._take(step, report)
            self._reported = step

    def observe(self, step: int | None, signals: Mapping[str, Any]) -> None:
        """Take signals between reports; those of a coming report's step wait for it."""
        with self._lock:
            if step is None or step != self._pending_step:
                self._flush()
            self._pending.update(signals)
            self._pending_step = step
            if step is None:
                self._flush()

    def _catch_up(self, values: dict[int, float]) -> None:
        before, self._seen = self._seen, len(values)
        new = max(0, len(values) - before)
        steps = [*itertools.islice(reversed(values), new)][::-1]
        if before == 0:
            steps.sort()  # another worker's come out of a database in any order
        for step in steps:
            if step != self._reported:
                self._take(step, {self._metric: values[step]})

    def _take(self, step: int | None, report: Mapping[str, Any]) -> None:
        """Judge a report together with the signals observed for the same step."""
        if self._pending:
            if self._pending_step == step:
                report = {**self._pending, **report}
                self._pending = {}
            self._flush()
        if self.monitor is not None:
            self.monitor.observe(step, report)

    def _flush(self) -> None:
        """Judge waiting signals by themselves: they count for the last report's step.

        Their own step may be of another unit, batches beside epochs, and would
        make the next report look old.
        """
        if not self._pending:
            return
        signals, self._pending = self._pending, {}
        if self.monitor is not None:
            step = None if self._stores_values else self._pending_step
            self.monitor.observe(step, signals)

    def newly_kept(self) -> bool:
        """Whether a rule would have cut now for the first time, and may not.

        That is so where its action is ``warn``, or the trial is in the holdout.
        """
        findings = () if self.monitor is None else self.monitor.verdict.findings
        new = {f.rule for f in findings if f.holds in _JUDGED_BUT_KEPT} - self._kept
        self._kept |= new
        return bool(new)


class Place(NamedTuple):
    """Where a trial lies. The storage is not kept alive by it."""

    storage: weakref.ref[BaseStorage]
    study_name: str
    trial_id: int


class Watches:
    """The watches of one guard in this process, by storage and trial.

    They are bounded, and a thread that runs a study's trials one after another
    frees a trial's watch when it meets the next trial.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thread = threading.local()
        self._trials: weakref.WeakKeyDictionary[BaseStorage, dict[int, Watch]]
        self._trials = weakref.WeakKeyDictionary()

    def __len__(self) -> int:
        return sum(map(len, self._trials.values()))

    def find(self, study: Study, trial_id: int) -> Watch | None:
        """Return the trial's watch, and make it the thread's current one."""
        storage, watch = _engine.storage_of(study), self.current()
        if watch is not None and watch.place is not None:
            place = watch.place
            if place.trial_id == trial_id and place.storage() is storage:
                return watch
        trials = self._trials.get(storage)
        watch = None if trials is None else trials.get(trial_id)
        if watch is not None:
            self._thread.current = watch
        return watch

    def add(self, study: Study, trial_id: int, watch: Watch) -> None:
        """Keep a new watch, and free the one of the trial before it."""
        storage, former = _engine.storage_of(study), self.current()
        watch.place = Place(weakref.ref(storage), study.study_name, trial_id)
        with self._lock:
            trials = self._trials.setdefault(storage, {})
            place = None if former is None else former.place
            ended = place is not None and place.study_name == study.study_name
            if place is not None and ended and _engine.in_optimize(study):
                trials.pop(place.trial_id, None)
            while len(trials) >= MOST_TRIALS:
                del trials[next(iter(trials))]
            trials[trial_id] = watch
        self._thread.current = watch

    def current(self) -> Watch | None:
        """Return the watch of the trial that this thread dealt with last."""
        watch: Watch | None = getattr(self._thread, "current", None)
        return watch


def as_step(step: object) -> int | None:
    """Read a step; None for what Optuna refuses: no number, or a negative one.

    Example:
        >>> as_step("3"), as_step(2.7), as_step(-1), as_step(None)
        (3, 2, None, None)
    """
    number = to_number(step)
    if number is None or not 0 <= number < float("inf"):
        return None
    return step if type(step) is int else int(number)
