"""Ray from inside a worker: a Tune function, or a loop of Ray Train.

The only module of the worker that touches what Ray does not document.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from tune_guard.evidence.bundle import Place
from tune_guard.evidence.places import Storage
from tune_guard.evidence.settings import FOLDER, Evidence
from tune_guard.record import StopRecord
from tune_guard.row_stamp import to_row
from tune_guard.verdict import Blame
from tune_guard.worker.sessions import Session, fault

DONE = "done"


def find() -> Session | None:
    """Return the session of Ray that this process runs in, or None."""
    if "ray" not in sys.modules:
        return None
    try:
        if _in_tune():
            return TuneSession()
        return TrainSession() if _in_train() else None
    except Exception:  # noqa: BLE001 - another version of Ray, or a part of it is missing
        return None


def in_actor() -> bool:
    """Whether this process is a worker of Ray: its driver tells of its trials."""
    if "ray" not in sys.modules:
        return False
    try:
        import ray

        return (
            ray.is_initialized()
            and ray.get_runtime_context().get_actor_id() is not None
        )
    except Exception:  # noqa: BLE001 - another version of Ray, or a part of it is missing
        return False


def _in_tune() -> bool:
    """Whether Ray Tune runs this as a trial.

    The public way answers too, but warns wherever the answer is no.
    """
    try:
        from ray.tune.trainable.trainable_fn_utils import _in_tune_session
    except ImportError:
        from ray import tune

        return bool(tune.get_context().get_trial_id())
    return bool(_in_tune_session())


def _in_train() -> bool:
    import ray.train

    try:
        return ray.train.get_context().get_world_rank() is not None
    except RuntimeError:  # "cannot be used outside of a training function"
        return False


class TuneSession:
    """A function that Ray Tune runs as a trial."""

    first_step = 1

    def __init__(self) -> None:
        from ray import tune

        self.trial_id = str(tune.get_context().get_trial_id() or "")

    def send(self, row: Mapping[str, Any], step: int, **extra: Any) -> None:  # noqa: ARG002
        """Report a row. Ray counts its steps by itself."""
        from ray import tune

        tune.report(dict(row), **_given(extra))

    def end(
        self,
        record: StopRecord,
        row: Mapping[str, Any],
        step: int | None,  # noqa: ARG002
    ) -> None:
        """Report the reason and end the trial: Ray does not return from it.

        Raises:
            HardwareFault: If the machine is to blame: ``max_failures`` retries it.
        """
        if record.blame is Blame.INFRASTRUCTURE:
            raise fault(record)
        from ray import tune

        tune.report({**row, **to_row(record), DONE: True})

    def place(self, evidence: Evidence, name: str) -> Place | None:  # noqa: ARG002
        """Return a folder in the trial's directory, in the experiment's storage."""
        from ray import tune

        storage = tune.get_context().get_storage()
        inside = f"{FOLDER}/{name}"
        path = f"{storage.trial_fs_path}/{inside}"
        return Storage(storage.storage_filesystem, path, inside)


class TrainSession:
    """A loop that Ray Train runs on each worker."""

    first_step = 1
    trial_id = ""

    def send(self, row: Mapping[str, Any], step: int, **extra: Any) -> None:  # noqa: ARG002
        """Report a row; every rank must."""
        import ray.train

        ray.train.report(dict(row), **_given(extra))

    def end(
        self,
        record: StopRecord,
        row: Mapping[str, Any],
        step: int | None,  # noqa: ARG002
    ) -> None:
        """Report the reason; the loop ends by the verdict, on every rank.

        Raises:
            HardwareFault: If the machine is to blame: the failure policy retries.
        """
        if record.blame is Blame.INFRASTRUCTURE:
            raise fault(record)
        import ray.train

        ray.train.report({**row, **to_row(record)})

    def place(self, evidence: Evidence, name: str) -> Place | None:  # noqa: ARG002
        """Return a folder in the directory of Ray Train's run."""
        import ray.train

        storage: Any = ray.train.get_context().get_storage()
        path = f"{storage.experiment_fs_path}/{FOLDER}/{name}"
        return Storage(storage.storage_filesystem, path, path)


def _given(extra: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in extra.items() if value is not None}
