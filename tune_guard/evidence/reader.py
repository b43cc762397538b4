"""Bundles read back and verified. Nothing in them is ever unpickled."""

from __future__ import annotations

import hashlib
import posixpath
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, BinaryIO, Protocol, cast

import fsspec

from tune_guard.evidence.bundle import MANIFEST, SCHEMA
from tune_guard.evidence.coding import observation_of
from tune_guard.evidence.parts import OBSERVATIONS, RECORD, REPORTS, RULES
from tune_guard.evidence.settings import FOLDER
from tune_guard.exceptions import SourceError, hide_password
from tune_guard.observation import Observation
from tune_guard.record import StopRecord
from tune_guard.strict_json import from_json

_PIECE_BYTES = 2**20
_MOST_JSON_BYTES = 2**26
_MOST_BUNDLES = 10_000


class Files(Protocol):
    """The files of one bundle, wherever they lie."""

    def names(self) -> list[str]:
        """Return the names of all files."""

    def open(self, name: str) -> BinaryIO:
        """Open a file for reading.

        Raises:
            OSError: If it cannot be read; an archive may raise anything.
        """


class _FolderFiles:
    """The plain files of a folder: no links out of it, no devices, no pipes."""

    def __init__(self, filesystem: Any, path: str) -> None:
        self._filesystem, self._path = filesystem, path

    def names(self) -> list[str]:
        found = self._filesystem.ls(self._path, detail=True)
        plain = (e for e in found if e["type"] == "file" and not e.get("islink"))
        names = (posixpath.basename(e["name"]) for e in plain)
        return sorted(name for name in names if not name.startswith("."))

    def open(self, name: str) -> BinaryIO:
        if name not in self.names():
            msg = f"{name!r} is no file of a bundle"
            raise OSError(msg)
        opened: BinaryIO = self._filesystem.open(f"{self._path}/{name}", "rb")
        return opened


class _ZipFiles:
    def __init__(self, opened: BinaryIO) -> None:
        self._archive = zipfile.ZipFile(opened)

    def names(self) -> list[str]:
        return sorted(n for n in self._archive.namelist() if "/" not in n)

    def open(self, name: str) -> BinaryIO:
        opened: Any = self._archive.open(name)
        return cast("BinaryIO", opened)


@dataclass(frozen=True, slots=True)
class Check:
    """What became of one file of a bundle.

    Args:
        file: Its name.

        size_bytes: Its size as written, or None when it was not.

        problem: What is wrong with it, or why it was left out; empty if nothing.

        left_out: Whether it was never written.
    """

    file: str
    size_bytes: int | None = None
    problem: str = ""
    left_out: bool = False


class StoredBundle:
    """One bundle, read piece by piece.

    Args:
        name: Its folder or archive, as it was found.

        files: Its files.
    """

    def __init__(self, name: str, files: Files) -> None:
        self.name = name
        self._files = files

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """The manifest; empty when there is none that can be read."""
        found = self.json(MANIFEST)
        return found if isinstance(found, dict) else {}

    def bytes_of(self, file: str) -> bytes | None:
        """Return a file's content; None when it is missing or larger than 64 MiB."""
        try:
            with self._files.open(file) as opened:
                data = opened.read(_MOST_JSON_BYTES + 1)
        except Exception:  # noqa: BLE001 - a damaged archive may raise anything
            return None
        return data if len(data) <= _MOST_JSON_BYTES else None

    def json(self, file: str) -> Any:
        """Return the JSON value in a file; None when there is none."""
        data = self.bytes_of(file)
        return None if data is None else from_json(data.decode(errors="replace"))

    def record(self) -> StopRecord | None:
        """Return the record, in full where it is there; None without one."""
        found = self.json(RECORD)
        if not isinstance(found, dict):
            return None
        record = StopRecord.from_metadata(found)
        whole = found.get("record")
        if record is None or not isinstance(whole, dict):
            return record
        keys = {key: found[key] for key in found if key != "record"}
        keys["tune_guard/detail"] = whole
        return StopRecord.from_metadata(keys) or record

    def rules(self) -> dict[str, Any]:
        """Return the numbers and states of the rules; empty without any."""
        found = self.json(RULES)
        return found if isinstance(found, dict) else {}

    def observations(self, stream: str = REPORTS) -> Iterator[Observation]:
        """Yield the stored observations of one stream; damaged lines are left out."""
        data = self.bytes_of(OBSERVATIONS) or b""
        for text in data.decode(errors="replace").splitlines():
            stored = from_json(text)
            if isinstance(stored, dict) and stored.get("stream") == stream:
                try:
                    yield observation_of(stored)
                except (TypeError, ValueError):
                    continue

    def checks(self) -> list[Check]:
        """Compare every file with the manifest."""
        listed = self.manifest.get("files")
        listed = listed if isinstance(listed, list) else []
        entries = {str(e.get("file")): e for e in listed if isinstance(e, dict)}
        found = [self._check(name, entry) for name, entry in entries.items()]
        known = {check.file for check in found} | {MANIFEST}
        unlisted = [name for name in self._files.names() if name not in known]
        found += [
            Check(name, None, "the manifest does not know it") for name in unlisted
        ]
        left_out = self.manifest.get("left_out")
        for name, why in (left_out if isinstance(left_out, dict) else {}).items():
            found.append(Check(str(name), None, str(why), left_out=True))
        return found

    def _check(self, name: str, entry: dict[str, Any]) -> Check:
        size = entry.get("bytes")
        found = hashlib.sha256()
        read = 0
        try:
            with self._files.open(name) as opened:
                while piece := opened.read(_PIECE_BYTES):
                    found.update(piece)
                    read += len(piece)
        except Exception as error:  # noqa: BLE001 - a damaged archive may raise anything
            return Check(name, None, f"cannot be read: {error}")
        if found.hexdigest() != entry.get("sha256"):
            return Check(name, read, f"damaged: {read} bytes read, {size} written")
        return Check(name, read)

    def problems(self) -> list[str]:
        """Return what is wrong with the bundle, one sentence each."""
        schema = self.manifest.get("schema")
        if schema != SCHEMA:
            what = "No manifest can be read." if not self.manifest else ""
            return [what or f"The manifest has schema {schema}, not {SCHEMA}."]
        wrong = [check for check in self.checks() if check.problem]
        return [f"{c.file}: {c.problem}" for c in wrong if not c.left_out]


def find_bundles(source: str) -> list[StoredBundle]:
    """Return the bundles of a source, the oldest first.

    Args:
        source: A bundle (a folder or a zip file), a trial's directory, or one
            above it; a path or any URL that fsspec reads.

    Raises:
        SourceError: If there is no bundle in it, or it cannot be read.
    """
    shown = hide_password(str(source))
    try:
        filesystem, path = fsspec.core.url_to_fs(str(source))
        if filesystem.isfile(path):
            return [_archive(shown, filesystem.open(path, "rb"))]
        folders = _folders(filesystem, path.rstrip("/"))
        exists = bool(folders) or filesystem.exists(path)
    except (OSError, ImportError, ValueError) as error:
        msg = f"{shown} cannot be read: {hide_password(str(error))}"
        raise SourceError(msg) from error
    if not exists:
        msg = f"{shown} does not exist. Give a trial's directory, or a bundle."
        raise SourceError(msg)
    if not folders:
        msg = (
            f"{shown} holds no evidence: neither a {MANIFEST} nor a folder {FOLDER}."
            " Give the trial's directory, or a bundle."
        )
        raise SourceError(msg)
    return [StoredBundle(f, _FolderFiles(filesystem, f)) for f in folders]


def find_bundle(source: str) -> StoredBundle:
    """Return the newest bundle of a source.

    Raises:
        SourceError: If there is none.
    """
    return find_bundles(source)[-1]


def _archive(name: str, opened: BinaryIO) -> StoredBundle:
    try:
        return StoredBundle(name, _ZipFiles(opened))
    except Exception as error:
        msg = f"{name} is neither a folder nor a zip file: {error}"
        raise SourceError(msg) from error


def _folders(filesystem: Any, path: str) -> list[str]:
    """Return the folders below a path that are bundles."""
    if any(filesystem.exists(f"{path}/{file}") for file in (MANIFEST, RECORD)):
        return [path]
    found = set()
    for file in filesystem.find(path):
        folder, name = posixpath.split(file)
        inside = posixpath.basename(posixpath.dirname(folder)) == FOLDER
        if name in (MANIFEST, RECORD) and (inside or name == MANIFEST):
            found.add(folder)
    return sorted(found, key=posixpath.basename)[:_MOST_BUNDLES]


def as_json(bundle: StoredBundle) -> dict[str, Any]:
    """Return what is known of a bundle as plain values."""
    manifest = bundle.manifest
    about = {k: v for k, v in manifest.items() if k not in ("files", "left_out")}
    checks = bundle.checks()
    return {
        "bundle": bundle.name,
        **about,
        "files": [
            {"file": c.file, "bytes": c.size_bytes, "problem": c.problem}
            for c in checks
            if not c.left_out
        ],
        "left_out": {c.file: c.problem for c in checks if c.left_out},
        "problems": bundle.problems(),
    }
