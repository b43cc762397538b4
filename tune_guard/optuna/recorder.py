"""Store a trial's record in Optuna, whatever state the storage is in."""

from __future__ import annotations

import functools
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optuna.exceptions import UpdateFinishedTrialError

from tune_guard import fallback_file
from tune_guard.optuna import _engine
from tune_guard.optuna.notes import write_note
from tune_guard.record import (
    DETAIL,
    FALLBACK_FOLDER,
    FALLBACK_SUFFIX,
    REASON,
    STALE,
    STEP,
    StopRecord,
)
from tune_guard.strict_json import to_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from optuna.study import Study
    from optuna.trial import FrozenTrial

    from tune_guard.notices import Notices

WRITTEN = (DETAIL, STEP, REASON)
"""The attributes of a cut. Status and blame lie in the detail: each attribute
costs a transaction, and a column in Optuna's dashboard."""

PAUSES_S = (0.05, 0.1, 0.2, 0.4, 0.8)
"""Waits before each new try of a storage that refuses, over all of a record."""

BUDGET_S = 3.0
"""No new try is begun later than this after the first one."""

_HOPELESS = (UpdateFinishedTrialError, TypeError, KeyError)


class Recorder:
    """Writes records as user attributes of the trial, the reason last.

    A storage that refuses is tried again for up to ``BUDGET_S`` seconds in all.
    Then the record goes, as a line of JSON, into a local file: beside the
    storage's own where that is a local one (``study.db.tune_guard.jsonl``), else
    into ``.tune_guard/optuna.jsonl`` of the working or else the home directory.

    Args:
        notices: Where trouble is named, once.
    """

    def __init__(self, notices: Notices) -> None:
        self._notices = notices

    def store(self, study: Study, trial: FrozenTrial, record: StopRecord) -> bool:
        """Store a record. Never raises.

        Returns:
            Whether the storage took all of it.
        """
        metadata = record.metadata()
        return self._write(study, trial, {key: metadata[key] for key in WRITTEN})

    def store_with_study(
        self, study: Study, trial: FrozenTrial, record: StopRecord
    ) -> None:
        """Store the record of a trial that takes no attributes any more. Never raises.

        It becomes an attribute of the study, one for each such trial.
        """
        metadata = record.metadata()
        key = f"{STALE}{trial.number}"
        refused = _Tries().run(lambda: study.set_user_attr(key, metadata))
        if refused is not None:
            self._fall_back(study, trial, metadata, refused)

    def clear(self, study: Study, trial: FrozenTrial) -> None:
        """Replace a record that is not this trial's own, the reason first.

        Optuna copies a failed trial's attributes to its retry.
        """
        metadata = StopRecord(trial=str(trial.number)).metadata()
        self._write(study, trial, {key: metadata[key] for key in reversed(WRITTEN)})

    def mark_infeasible(self, study: Study, trial: FrozenTrial) -> None:
        """Tell the TPE sampler that the parameters are bad. Never raises."""
        try:
            _engine.write_constraint(study, trial)
        except Exception as error:  # noqa: BLE001 - the cut stands without it
            self._notices.once(
                "constraint",
                f"A cut trial could not be marked as infeasible ({error!r}): the"
                " sampler may take a late failure for a good trial.",
            )

    def note(self, study: Study, trial: FrozenTrial, record: StopRecord) -> None:
        """Write the reason into the trial's note for the dashboard. Never raises."""
        refused = None
        if _engine.trial_id_of(trial) >= 0:
            refused = _Tries().run(lambda: write_note(study, trial, record))
        if refused is not None:
            self._notices.once(
                "note",
                f"The note of trial {trial.number} could not be written ({refused!r});"
                " its reason is stored all the same.",
            )

    def _write(
        self, study: Study, trial: FrozenTrial, attributes: dict[str, Any]
    ) -> bool:
        tries = _Tries()
        refused: Exception | None = None
        for key, value in attributes.items():
            # The worker's own copy is right even where the storage is not.
            trial.user_attrs[key] = value
            if refused is None and _engine.trial_id_of(trial) >= 0:
                write = functools.partial(
                    _engine.write_attribute, study, trial, key, value
                )
                refused = tries.run(write)
        if refused is not None:
            self._fall_back(study, trial, attributes, refused)
        return refused is None

    def _fall_back(
        self,
        study: Study,
        trial: FrozenTrial,
        attributes: dict[str, Any],
        refused: Exception,
    ) -> None:
        place = {"storage": _engine.address(study), "study": study.study_name}
        line = to_json({**place, "trial": trial.number, **attributes})
        path = _append(study, line + "\n")
        where = f"It is kept in {path}" if path else "It could not be kept elsewhere"
        self._notices.once(
            "storage",
            f"The storage refused the record of trial {trial.number} ({refused!r})."
            f" {where}; the verdict stands: {attributes.get(REASON) or 'none'}.",
        )


class _Tries:
    """The tries that one record has in all, with growing waits between them."""

    def __init__(self) -> None:
        self._pauses = iter(PAUSES_S)
        self._start = time.monotonic()

    def run(self, write: Callable[[], None]) -> Exception | None:
        """Call ``write`` until it works; return what stood against it to the end."""
        while True:
            try:
                write()
            except _HOPELESS as error:
                return error
            except Exception as error:  # noqa: BLE001 - any database's errors
                pause = next(self._pauses, BUDGET_S)
                if time.monotonic() - self._start + pause >= BUDGET_S:
                    return error
                time.sleep(pause)
            else:
                return None


def _append(study: Study, line: str) -> Path | None:
    """Append a line to the first place that takes it; None when none does."""
    for place in (_beside, _in_working_directory, _in_home):
        try:
            path = place(study)
            if path is not None:
                fallback_file.append(path, line)
                return path
        except (OSError, RuntimeError):
            continue
    return None


def _beside(study: Study) -> Path | None:
    local = _engine.local_file(study)
    return None if local is None else Path(f"{local}{FALLBACK_SUFFIX}")


def _in_working_directory(_: Study) -> Path:
    return Path.cwd() / FALLBACK_FOLDER / "optuna.jsonl"


def _in_home(_: Study) -> Path:
    return Path.home() / FALLBACK_FOLDER / "optuna.jsonl"
