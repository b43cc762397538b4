"""The wrapped pruner: when it is asked, what must agree, and the record of its cut."""

from __future__ import annotations

import socket
from dataclasses import replace
from typing import TYPE_CHECKING

from tune_guard.record import Outcome, StopRecord

if TYPE_CHECKING:
    from optuna.pruners import BasePruner
    from optuna.study import Study
    from optuna.trial import FrozenTrial

    from tune_guard.notices import Notices
    from tune_guard.optuna.signals import Watch


class WrappedPruner:
    """The pruner that a guard wraps.

    Args:
        pruner: The pruner.

        metric: Key of the objective, for records.

        veto: Id of the rule that must agree where the pruner cuts.

        notices: Where a pruner that fails is named once.
    """

    def __init__(
        self, pruner: BasePruner, metric: str, veto: str | None, notices: Notices
    ) -> None:
        self._pruner = pruner
        self._metric = metric
        self._veto = veto
        self._notices = notices

    def ask(self, study: Study, trial: FrozenTrial, watch: Watch) -> bool:
        """Ask the pruner, once per report. Return whether its verdict is a new one.

        Successive halving answers differently when asked twice.
        """
        reports = len(trial.intermediate_values)
        if watch.asked_at == reports:
            return False
        watch.pruner_says = self._wants(study, trial, watch)
        watch.asked_at = reports
        return True

    def _wants(self, study: Study, trial: FrozenTrial, watch: Watch) -> bool:
        """Ask the pruner; with a veto, its wish stands until the rule agrees.

        A pruner whose wish stands is not asked again: what it stores about this
        trial stays what it would have stored without the veto.
        """
        if watch.wished_at is None and self._prune(study, trial):
            watch.wished_at = max(trial.intermediate_values, default=-1)
        wishes = watch.wished_at is not None
        if self._veto is None:
            watch.wished_at = None
            return wishes
        monitor = watch.monitor
        return wishes and (monitor is None or monitor.is_against(self._veto))

    def _prune(self, study: Study, trial: FrozenTrial) -> bool:
        try:
            return self._pruner.prune(study, trial)
        except Exception as error:  # noqa: BLE001 - nothing may raise into a study
            kind = type(self._pruner).__name__
            self._notices.once(
                f"pruner:{type(error).__name__}",
                f"The wrapped {kind} failed with {error!r} at trial {trial.number}:"
                " that counts as no. The guard goes on judging; correct the pruner.",
            )
            return False

    def record(self, trial: FrozenTrial, watch: Watch) -> StopRecord:
        """Return the record of its cut."""
        kind, values = type(self._pruner).__name__, trial.intermediate_values
        step = max(values, default=-1)
        known = StopRecord(trial=str(trial.number))
        if watch.monitor is not None:
            known = watch.monitor.record()
        return replace(
            known,
            reason=f"pruner:{kind}",
            outcome=Outcome.PRUNER,
            step=step,
            metric=self._metric,
            value=values.get(step),
            message=self._message(kind, watch),
            host=socket.gethostname(),
        )

    def _message(self, kind: str, watch: Watch) -> str:
        if self._veto is None:
            return f"{kind} pruned the trial; the guard had nothing against it."
        asked = f"{kind} asked to prune the trial at step {watch.wished_at}"
        return f"{asked}, and the rule `{self._veto}` agrees."
