"""Optuna's artifact store as a place: a bundle is one zip file of a trial."""

from __future__ import annotations

import shutil
import tempfile
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tune_guard.evidence.bundle import Place, Stream
from tune_guard.evidence.places import Folder
from tune_guard.evidence.settings import Evidence
from tune_guard.notices import Notices
from tune_guard.record import FALLBACK_FOLDER

PREFIX = "artifact:"
"""How a record calls a bundle that lies in an artifact store, before its id."""


class Artifact:
    """A trial's place in an artifact store.

    The files are written into a folder first. When all are there, one zip file of
    them goes to the store, from which optuna-dashboard offers it. A store that
    refuses costs a warning: the folder stays, below the working directory.

    Args:
        store: The artifact store.

        trial: The trial, running or frozen.

        storage: The storage of a frozen trial; None for a running one.

        name: Name of the bundle.

        notices: Where a store that refuses is named.
    """

    rewrites = True

    def __init__(
        self, store: Any, trial: Any, storage: Any, name: str, notices: Notices
    ) -> None:
        self._store, self._trial, self._storage = store, trial, storage
        self._notices = notices
        self._scratch = Path(tempfile.mkdtemp(prefix="tune_guard-"))
        self._folder = Folder(self._scratch / name)
        self.name = self._folder.name

    def put(self, file: str, write: Callable[[Stream], None]) -> None:
        """Store a file whole or not at all.

        Raises:
            OSError: If the temporary folder does not take it.
        """
        self._folder.put(file, write)

    def finish(self) -> None:
        """Hand the bundle to the store; keep it here if that refuses it."""
        try:
            self.name = PREFIX + self._upload()
            shutil.rmtree(self._scratch, ignore_errors=True)
        except Exception as error:  # noqa: BLE001 - a store may raise anything
            self._keep_here(error)

    def _upload(self) -> str:
        from optuna.artifacts import upload_artifact

        folder = self._folder.path
        archive = folder.with_name(f"tune_guard-{folder.name}.zip")
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as to:
            for file in sorted(folder.iterdir()):
                to.write(file, file.name)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that artifacts are an experimental part
            return str(
                upload_artifact(
                    artifact_store=self._store,
                    file_path=str(archive),
                    study_or_trial=self._trial,
                    storage=self._storage,
                )
            )

    def _keep_here(self, error: Exception) -> None:
        path = self._folder.path
        try:
            home = Path.cwd() / FALLBACK_FOLDER / "evidence"
            home.mkdir(mode=0o700, parents=True, exist_ok=True)
            path = Path(shutil.move(path, home / path.name))
            shutil.rmtree(self._scratch, ignore_errors=True)
        except OSError:
            pass
        self.name = str(path)
        self._notices.once(
            "artifacts",
            f"The artifact store refused a bundle of evidence ({error!r}); it lies in"
            f" {path}. The trials themselves are cut as they should.",
        )


def place_for_optuna(
    evidence: Evidence, trial: Any, storage: Any, name: str, notices: Notices
) -> Place | None:
    """Return the artifact store or the folder that evidence names, or None."""
    if evidence.artifact_store is not None:
        return Artifact(evidence.artifact_store, trial, storage, name, notices)
    if evidence.folder is not None:
        return Folder(Path(evidence.folder) / name)
    return None
