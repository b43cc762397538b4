"""Optuna from inside an objective: reports, and the end of a trial."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tune_guard.coercion import to_number
from tune_guard.evidence.artifacts import place_for_optuna
from tune_guard.evidence.bundle import Place
from tune_guard.evidence.settings import Evidence
from tune_guard.nested_keys import lookup
from tune_guard.notices import Notices
from tune_guard.record import DETAIL, KEYS, REASON, STEP, StopRecord
from tune_guard.verdict import Blame
from tune_guard.worker.announcer import announce_cut
from tune_guard.worker.sessions import fault, sentence

if TYPE_CHECKING:
    from optuna.trial import BaseTrial

    from tune_guard.policy import Policy

_PARAMETERS = {"trial", "value", "step"}
"""Names that are no signals, because the pruner's ``report`` takes them itself."""


class OptunaSession:
    """The trial of an objective.

    Where the study's pruner is a GuardPruner, it gets every report and stores the
    reason. Beside any other pruner the guard stores the reason itself; what that
    pruner says is asked, as ever, by ``trial.should_prune()``.

    Args:
        trial: The running trial.

        policy: Its metric is the objective.

        notices: Where trouble is named once.
    """

    first_step = 0

    def __init__(self, trial: BaseTrial, policy: Policy, notices: Notices) -> None:
        self._trial: Any = trial
        self._metric = policy.metric
        self._notices = notices
        self._takes_reports: bool | None = None
        self.trial_id = str(getattr(trial, "number", ""))

    def send(self, row: Mapping[str, Any], step: int, **extra: Any) -> None:  # noqa: ARG002
        """Report the objective, with the other signals beside it.

        Raises:
            optuna.TrialPruned: If a GuardPruner cuts the trial.
        """
        value = self._value(row)
        if value is None:
            return
        guard = self._guard()
        if guard is None:
            self._report(value, step)
            return
        guard.report(self._trial, value, step, **self._signals(row))
        if guard.should_prune(self._trial):
            raise guard.pruned(self._trial)

    def end(self, record: StopRecord, row: Mapping[str, Any], step: int | None) -> None:
        """Store the reason and end the trial.

        Raises:
            optuna.TrialPruned: If the configuration is to blame.
            HardwareFault: If the machine is.
        """
        import optuna

        value = None if step is None else self._value(row)
        if value is not None and step is not None:
            self._report(value, step)
        guard = self._guard()
        if guard is not None:
            guard.cut(self._trial, record)
            if guard.should_prune(self._trial):
                raise guard.pruned(self._trial)
        self._store(record)
        announce_cut(self._trial, record)
        if record.blame is Blame.INFRASTRUCTURE:
            raise fault(record)
        raise optuna.TrialPruned(sentence(record))

    def place(self, evidence: Evidence, name: str) -> Place | None:
        """Return the artifact store or folder that evidence or pruner name."""
        given = evidence
        if not evidence.has_place:
            given = getattr(self._guard(), "evidence", None) or evidence
        name = f"trial_{self.trial_id}-{name}"
        return place_for_optuna(given, self._trial, None, name, self._notices)

    def _guard(self) -> Any:
        """Return the study's GuardPruner, or None."""
        pruner = getattr(getattr(self._trial, "study", None), "pruner", None)
        return pruner if hasattr(pruner, "cut") else None

    def _report(self, value: float, step: int) -> None:
        """Pass the objective on; a study with several objectives takes no reports."""
        if self._takes_reports is None:
            study = getattr(self._trial, "study", None)
            self._takes_reports = len(getattr(study, "directions", ())) <= 1
        if self._takes_reports:
            self._trial.report(value, step)

    def _value(self, row: Mapping[str, Any]) -> float | None:
        value = to_number(lookup(row, self._metric))
        if value is None:
            self._notices.once(
                f"unreported:{self._metric}",
                f"A report without `{self._metric}` does not reach Optuna, which"
                " takes the objective only.",
            )
        return value

    def _signals(self, row: Mapping[str, Any]) -> dict[str, Any]:
        mine = {self._metric, *KEYS, *_PARAMETERS}
        return {str(k): v for k, v in row.items() if str(k) not in mine}

    def _store(self, record: StopRecord) -> None:
        metadata = record.metadata()
        for key in (DETAIL, STEP, REASON):
            try:
                self._trial.set_user_attr(key, metadata[key])
            except Exception as error:  # noqa: BLE001 - the cut stands without it
                self._notices.once(
                    "storage",
                    f"The reason of trial {self.trial_id} could not be stored"
                    f" ({error!r}). A GuardPruner tries again and keeps a copy.",
                )
                return
