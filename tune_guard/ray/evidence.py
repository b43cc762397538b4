"""Evidence of trials that the driver cuts: what their monitor saw."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyarrow.fs import FileSelector

from tune_guard.evidence.bundle import Place
from tune_guard.evidence.parts import REPORTS, trial_parts, write_wanted
from tune_guard.evidence.places import Folder, Storage, bundle_name
from tune_guard.evidence.settings import FOLDER, Evidence
from tune_guard.ray.record_file import is_denied

if TYPE_CHECKING:
    from ray.tune.experiment import Trial

    from tune_guard.monitor import Monitor
    from tune_guard.notices import Notices
    from tune_guard.record import StopRecord

MOST_S = 2.0
"""Seconds that the driver, on which every trial waits, may spend on a bundle."""


def keep(
    evidence: Evidence,
    trial: Trial,
    record: StopRecord,
    monitor: Monitor,
    notices: Notices,
) -> str:
    """Write the bundle of a trial that is about to be cut. Never raises.

    It goes into the trial's directory in storage, and where that refuses it into
    the local one, which Ray copies to storage as soon as it can; not so where
    access was denied.

    Returns:
        How the record calls it; empty where none could be written.
    """
    parts = trial_parts(record, monitor.verdict, {REPORTS: monitor})
    most_s = min(MOST_S, evidence.most_s)
    refusal = ""
    for place in _places(evidence, trial, bundle_name(record)):
        if is_denied(refusal):
            break
        bundle = write_wanted(place, parts, record, evidence, most_s=most_s)
        if bundle.name:
            return bundle.name
        refusal = bundle.refusal
    notices.once(
        "evidence",
        f"The evidence of trial {trial.trial_id} could not be written ({refusal}); its"
        " record is kept as ever.",
    )
    return ""


def _places(evidence: Evidence, trial: Trial, name: str) -> list[Place]:
    """Return where a bundle may go, the best first."""
    if evidence.folder is not None:
        return [Folder(Path(evidence.folder) / f"trial_{trial.trial_id}-{name}")]
    inside, storage = f"{FOLDER}/{name}", trial.storage
    filesystem: Any = storage.storage_filesystem if storage else None
    local = Folder(Path(str(trial.local_path)) / inside, inside)
    return [Storage(filesystem, f"{trial.path}/{inside}", inside), local]


def newest_evidence(trial: Trial, reason: str) -> str:
    """Return the newest bundle that a trial's worker wrote for a reason, or empty.

    Never raises: a storage that does not answer costs the name only.
    """
    try:
        storage: Any = trial.storage
        folder = f"{trial.path}/{FOLDER}"
        selector = FileSelector(folder, allow_not_found=True)
        found = storage.storage_filesystem.get_file_info(selector)
        names = [info.base_name for info in found]
    except Exception:  # noqa: BLE001 - a storage may raise anything
        return ""
    names = sorted(name for name in names if name.endswith(f"-{reason}"))
    return f"{FOLDER}/{names[-1]}" if names else ""
