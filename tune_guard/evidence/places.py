"""Where bundles go: a folder, or a folder in any file system of pyarrow."""

from __future__ import annotations

import contextlib
import io
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tune_guard.evidence.bundle import Stream
from tune_guard.record import StopRecord

_RENAMING = ("local", "file", "subtree")
"""Parts of the type names of file systems in which renaming is one step."""


class Folder:
    """A folder of this machine, which only its user can look into.

    A file is written beside its place and renamed into it. It is not forced to
    the disk: a process that is killed loses nothing by that.

    Args:
        path: The folder; made when the first file comes.

        name: How a record calls it; the path when left out.
    """

    rewrites = True

    def __init__(self, path: Path, name: str = "") -> None:
        self.path = path
        self.name = name or str(path)

    def put(self, file: str, write: Callable[[Stream], None]) -> None:
        """Store a file whole or not at all.

        Raises:
            OSError: If the folder does not take it.
        """
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = self.path / f".{file}.tmp"
        try:
            with open(draft, "wb", opener=_private) as stream:
                write(stream)
            draft.replace(self.path / file)
        except BaseException:
            with contextlib.suppress(OSError):
                draft.unlink()
            raise

    def finish(self) -> None:
        """Do nothing: every file is in its place."""


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


class Storage:
    """A folder in a file system of pyarrow, such as that of a Ray experiment.

    An object store publishes an object when its stream is closed, also after an
    error: there a file is put together in memory first.

    Args:
        filesystem: The ``pyarrow.fs.FileSystem``.

        path: Path of the folder in it.

        name: How a record calls it.
    """

    def __init__(self, filesystem: Any, path: str, name: str) -> None:
        self._filesystem = filesystem
        self.path = path
        self.name = name
        self.rewrites = any(kind in filesystem.type_name for kind in _RENAMING)

    def put(self, file: str, write: Callable[[Stream], None]) -> None:
        """Store a file whole or not at all.

        Raises:
            OSError: If the file system does not take it.
        """
        path = f"{self.path}/{file}"
        if self.rewrites:
            self._put_by_renaming(path, f"{self.path}/.{file}.tmp", write)
            return
        whole = io.BytesIO()
        write(whole)
        with self._filesystem.open_output_stream(path) as stream:
            stream.write(whole.getbuffer())

    def _put_by_renaming(
        self, path: str, draft: str, write: Callable[[Stream], None]
    ) -> None:
        self._filesystem.create_dir(self.path, recursive=True)
        try:
            with self._filesystem.open_output_stream(draft) as stream:
                write(stream)
            self._filesystem.move(draft, path)
        except BaseException:
            with contextlib.suppress(Exception):
                self._filesystem.delete_file(draft)
            raise

    def finish(self) -> None:
        """Do nothing: every file is in its place."""


def bundle_name(record: StopRecord, trial: str = "") -> str:
    """Return a name for a bundle's folder: what it is about, and when.

    Example:
        >>> bundle_name(StopRecord(reason="plateau", time="2026-01-31T23:59:59+00:00"))
        '20260131T235959-plateau'
    """
    when = re.sub(r"[-:]|[+].*", "", record.time)
    parts = [f"trial_{trial}" if trial else "", when, record.reason]
    return re.sub(r"[^\w.-]", "_", "-".join(filter(None, parts)))[:120]
