"""Decide about one study's trials, and carry the decision out."""

from __future__ import annotations

import logging
import socket
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from tune_guard.optuna import _engine
from tune_guard.optuna import evidence as bundles
from tune_guard.optuna.announcer import Announcer
from tune_guard.optuna.monitors import Monitors
from tune_guard.optuna.recorder import Recorder
from tune_guard.optuna.requeue import attempt_of, requeue
from tune_guard.optuna.signals import Watch, Watches
from tune_guard.optuna.wrapped import WrappedPruner
from tune_guard.record import StopRecord
from tune_guard.verdict import Blame, Level
from tune_guard.worker.faults import HardwareFault

if TYPE_CHECKING:
    from collections.abc import Mapping

    from optuna.pruners import BasePruner
    from optuna.study import Study
    from optuna.trial import FrozenTrial, Trial

    from tune_guard.evidence.settings import Evidence
    from tune_guard.monitor import Monitor
    from tune_guard.notices import Notices
    from tune_guard.policy import Policy

logger = logging.getLogger("tune_guard")


class Judge:
    """The guard's decisions: its own verdict first, then the wrapped pruner's.

    Args:
        policy: The rules; without a mode it takes each study's direction.

        wrapped: The wrapped pruner, if there is one.

        notices: Where each trouble is named once.

        mark_infeasible: Whether a bad configuration sets a constraint.

        most_attempts: Runs of the same parameters when machines break them.

        veto: Id of the rule that must agree where the wrapped pruner cuts.

        evidence: What is kept of a trial before it is cut; None for nothing.

        note: Whether a cut writes a note for optuna-dashboard.
    """

    def __init__(
        self,
        policy: Policy,
        wrapped: BasePruner | None,
        notices: Notices,
        *,
        mark_infeasible: bool | Literal["auto"],
        most_attempts: int,
        veto: str | None = None,
        evidence: Evidence | None = None,
        note: bool = False,
    ) -> None:
        self._policy = policy
        self._wrapped = (
            None
            if wrapped is None
            else WrappedPruner(wrapped, policy.metric, veto, notices)
        )
        self._notices = notices
        self._mark_infeasible = mark_infeasible
        self._most_attempts = most_attempts
        self._note = note
        self._evidence = evidence if evidence and evidence.has_place else None
        self._recorder = Recorder(notices)
        self._announcer = Announcer(policy)
        self._begin_process()

    def _begin_process(self) -> None:
        self._watches = Watches()
        self._monitors = Monitors(
            self._policy, self._notices, keeps_window=self._evidence is not None
        )

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what belongs to this process: a study pickles its pruner."""
        mine = ("_watches", "_monitors")
        return {k: v for k, v in self.__dict__.items() if k not in mine}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._begin_process()

    def prune(self, study: Study, trial: FrozenTrial) -> bool:
        """Judge a trial by its reports so far, and record a cut.

        Raises:
            HardwareFault: If the machine broke the trial. Nothing else.
        """
        stop = False
        try:
            watch = self._watch(study, trial)
            verdict = watch.judge(trial.intermediate_values)
            self._announcer.judged(study, trial, watch.monitor)
            stop = verdict.stop or watch.is_cut
            if stop:
                self._cut(study, trial, watch)
                return True
            if verdict.level is Level.WARN:
                self._note_warnings(study, trial, watch)
            if self._wrapped is None:
                return False
            return self._ask(self._wrapped, study, trial, watch)
        except HardwareFault:
            raise
        except Exception as error:  # noqa: BLE001 - nothing else may raise into a study
            self._trouble(trial.number, error)
            return stop

    def report(
        self, trial: Trial, step: int | None, value: Any, signals: Mapping[str, Any]
    ) -> None:
        """Judge a report before Optuna has it. Never raises."""
        try:
            current = _engine.current(trial)
            watch = self._watch(trial.study, current)
            watch.note_device(signals)
            self._announcer.sample(trial.study, current, step or 0, signals)
            report = {**signals, self._policy.metric: value}
            watch.report(current.intermediate_values, step, report)
        except Exception as error:  # noqa: BLE001 - nothing may raise into a study
            self._trouble(trial.number, error)

    def observe(
        self, trial: Trial | None, step: int | None, signals: Mapping[str, Any]
    ) -> None:
        """Take signals of a trial, or of the one this thread dealt with last."""
        watch = self._watches.current()
        try:
            if trial is not None:
                watch = self._watch(trial.study, _engine.current(trial))
            if watch is not None:
                watch.note_device(signals)
                watch.observe(step, signals)
        except Exception as error:  # noqa: BLE001 - nothing may raise into a study
            self._trouble(-1 if trial is None else trial.number, error)

    def cut(self, trial: Trial, record: StopRecord) -> None:
        """Take over a cut that the training loop decided. Never raises."""
        try:
            current = _engine.current(trial)
            watch = self._watch(trial.study, current)
            if not watch.is_cut:
                attempt = attempt_of(current.user_attrs)
                mine = replace(record, trial=str(trial.number), attempt=attempt)
                self._record_cut(trial.study, current, watch, mine)
        except Exception as error:  # noqa: BLE001 - nothing may raise into a study
            self._trouble(trial.number, error)

    def sentence(self, trial: Trial) -> str:
        """Say why the trial was cut; empty when it was not."""
        trial_id = _engine.trial_id_of(_engine.current(trial))
        watch = self._watches.find(trial.study, trial_id)
        return _sentence(watch.record) if watch and watch.record else ""

    def _watch(self, study: Study, trial: FrozenTrial) -> Watch:
        trial_id = _engine.trial_id_of(trial)
        watch = self._watches.find(study, trial_id)
        if watch is None:
            watch = self._new_watch(study, trial)
            if trial_id >= 0:
                self._watches.add(study, trial_id, watch)
        return watch

    def _new_watch(self, study: Study, trial: FrozenTrial) -> Watch:
        monitor = self._monitors.begin(study, trial)
        watch = Watch(monitor, stores_values=len(study.directions) == 1)
        self._announcer.started(study, trial)
        stored = StopRecord.from_metadata(trial.user_attrs)
        if stored is not None and stored.trial != str(trial.number):
            self._recorder.clear(study, trial)
        elif stored is not None and stored.reason:
            watch.record = stored
        return watch

    def _cut(self, study: Study, trial: FrozenTrial, watch: Watch) -> None:
        """Record the guard's verdict once, and tell the search whose fault it was."""
        if not watch.is_cut and watch.monitor is not None:
            record = watch.monitor.record(
                host=socket.gethostname(), gpu_uuid=watch.gpu_uuid
            )
            name = self._keep_evidence(study, trial, record, watch.monitor)
            record = replace(record, evidence=name)
            self._record_cut(study, trial, watch, record)
        if watch.record is not None and watch.record.blame is Blame.INFRASTRUCTURE:
            record = watch.record
            where = " ".join(filter(None, (record.host, record.gpu_uuid)))
            msg = f"{_sentence(record)} [{where}]"
            raise HardwareFault(msg, record)

    def _keep_evidence(
        self, study: Study, trial: FrozenTrial, record: StopRecord, monitor: Monitor
    ) -> str:
        if self._evidence is None:
            return ""
        try:
            return bundles.keep(
                study, trial, record, monitor, self._evidence, self._notices
            )
        except Exception as error:  # noqa: BLE001 - the cut stands without it
            self._trouble(trial.number, error)
            return ""

    def _record_cut(
        self, study: Study, trial: FrozenTrial, watch: Watch, record: StopRecord
    ) -> None:
        watch.record = record
        logger.info("Trial %d: %s", trial.number, _sentence(record))
        stored = self._recorder.store(study, trial, record)
        self._announcer.ended(study, trial, record)
        if stored and self._note:
            self._recorder.note(study, trial, record)
        if record.blame is Blame.INFRASTRUCTURE:
            requeue(study, trial, self._most_attempts, self._notices)
        elif stored and self._marks(study):
            self._recorder.mark_infeasible(study, trial)

    def _marks(self, study: Study) -> bool:
        if self._mark_infeasible == "auto":
            return _engine.learns_constraints(study)
        return self._mark_infeasible

    def _note_warnings(self, study: Study, trial: FrozenTrial, watch: Watch) -> None:
        """Record what would have been a cut, had the policy let it."""
        if watch.newly_kept() and watch.monitor is not None:
            self._recorder.store(study, trial, watch.monitor.record())

    def _ask(
        self, wrapped: WrappedPruner, study: Study, trial: FrozenTrial, watch: Watch
    ) -> bool:
        """Ask the wrapped pruner, and record its verdict.

        It does not stick: a trial that runs on all the same is judged afresh.
        """
        if len(study.directions) > 1:
            return False
        if wrapped.ask(study, trial, watch):
            if watch.pruner_says and watch.record is None:
                watch.record = wrapped.record(trial, watch)
                self._recorder.store(study, trial, watch.record)
                self._announcer.ended(study, trial, watch.record)
            elif watch.record is not None and not watch.pruner_says:
                watch.record = None
                self._recorder.clear(study, trial)
        return watch.pruner_says

    def _trouble(self, number: int, error: Exception) -> None:
        self._notices.once(
            f"trouble:{type(error).__name__}",
            f"Trial {number} could not be judged ({error!r}): it is left alone.",
        )


def _sentence(record: StopRecord) -> str:
    return f"{record.reason} at step {record.step}: {record.message}"
