"""Evidence of trials that the pruner cuts: what their monitor saw."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tune_guard.evidence.artifacts import place_for_optuna
from tune_guard.evidence.parts import REPORTS, json_part, trial_parts, write_wanted
from tune_guard.evidence.places import bundle_name
from tune_guard.evidence.rng import rng_states
from tune_guard.optuna import _engine

if TYPE_CHECKING:
    from optuna.study import Study
    from optuna.trial import FrozenTrial

    from tune_guard.evidence.settings import Evidence
    from tune_guard.monitor import Monitor
    from tune_guard.notices import Notices
    from tune_guard.record import StopRecord


def keep(  # noqa: PLR0917 - what it is about, then how
    study: Study,
    trial: FrozenTrial,
    record: StopRecord,
    monitor: Monitor,
    evidence: Evidence,
    notices: Notices,
) -> str:
    """Write the bundle of a trial that is about to be cut.

    Returns:
        How the record calls it; empty where none was wanted or could be written.
    """
    name = f"trial_{trial.number}-{bundle_name(record)}"
    storage = _engine.storage_of(study)
    place = place_for_optuna(evidence, trial, storage, name, notices)
    if place is None:
        return ""
    parts = trial_parts(record, monitor.verdict, {REPORTS: monitor})
    parts.append(json_part("rng", "rng.json", rng_states))
    bundle = write_wanted(place, parts, record, evidence)
    if not bundle.name:
        notices.once(
            "evidence",
            f"The evidence of trial {trial.number} could not be written"
            f" ({bundle.refusal}); its record is kept as ever.",
        )
    return bundle.name
