"""A tree of files, local or behind an fsspec URL, read and never written."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tune_guard.exceptions import SourceError, did_you_mean, hide_password

if TYPE_CHECKING:
    import re
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

_SCHEMES = ("sqlite", "postgresql", "mysql", "redis", "s3", "gs", "abfs", "https")
"""What most sources begin with, for whoever has misspelt one."""


@dataclass(frozen=True, slots=True)
class Tree:
    """A directory and everything below it.

    Args:
        fs: The fsspec file system it lies in.

        root: Its path there.
    """

    fs: Any
    root: str

    @classmethod
    def open(cls, source: str) -> Tree:
        """Find the file system of a path or URL.

        Raises:
            SourceError: If the path does not exist, or nothing can open the URL.
        """
        shown = hide_password(source)
        try:
            from fsspec import available_protocols
            from fsspec.core import url_to_fs

            fs, root = url_to_fs(source)
            exists = fs.exists(root)
        except (ImportError, ValueError, OSError) as error:
            msg = f"{shown} cannot be opened: {hide_password(str(error))}"
            scheme, sign, _ = source.partition("://")
            if sign and scheme not in available_protocols():
                msg += f". {did_you_mean(scheme, _SCHEMES)}"
            raise SourceError(msg) from error
        if not exists:
            msg = f"{shown} does not exist. Give a directory, a file or a URL."
            raise SourceError(msg)
        return cls(fs, root.rstrip("/") or "/")

    def files(self) -> list[str]:
        """Return the path of every file in the tree, in order.

        A pipe or a device among them would be read for ever. A link to nothing is
        kept: it can be named as what cannot be read.
        """
        found = self.fs.find(self.root, detail=True)
        return sorted(path for path, info in found.items() if self._is_file(path, info))

    def _is_file(self, path: str, info: Any) -> bool:
        if info.get("type") == "file":
            return True
        return bool(self.fs.isfile(path)) or not self.fs.exists(path)

    def siblings(self, pattern: re.Pattern[str]) -> list[str]:
        """Return the files beside the tree whose name matches."""
        paths = self.fs.ls(posixpath.dirname(self.root), detail=False)
        return [path for path in paths if pattern.fullmatch(posixpath.basename(path))]

    def read(self, path: str) -> bytes:
        """Return the content of a file."""
        content: bytes = self.fs.cat_file(path)
        return content

    def lines(self, path: str) -> AbstractContextManager[Iterator[bytes]]:
        """Open a file to be read line by line."""
        opened: AbstractContextManager[Iterator[bytes]] = self.fs.open(path, "rb")
        return opened

    def relative(self, path: str) -> str:
        """Return a path as seen from the root; empty for the root itself."""
        inside = path.startswith(self.root.rstrip("/") + "/")
        return path[len(self.root.rstrip("/")) + 1 :] if inside else ""

    @property
    def is_local(self) -> bool:
        """Whether its paths are those of this machine."""
        protocols = self.fs.protocol
        protocols = (protocols,) if isinstance(protocols, str) else protocols
        return bool({"file", "local"} & set(protocols))

    def shown(self, path: str) -> str:
        """Return a path as a person can open it."""
        if self.is_local:
            return path
        shown: str = self.fs.unstrip_protocol(path)
        return shown
