"""A file that a command writes: whole, or not at all."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from tune_guard.exceptions import SourceError

if TYPE_CHECKING:
    from pathlib import Path


def check_place(path: Path) -> None:
    """Refuse a file that cannot lie there, before long work is done for it.

    Raises:
        SourceError: If it is a directory, or lies in none.
    """
    if path.is_dir():
        msg = f"{path} cannot be written: it is a directory. Name a file in it."
        raise SourceError(msg)
    if not path.parent.is_dir():
        msg = f"{path} cannot be written: there is no directory {path.parent}."
        raise SourceError(msg)


def write_whole(path: Path, text: str) -> None:
    """Write a file beside its place first, so that none is ever half written.

    A link, a pipe or a device (``/dev/stdout``) stays what it is.

    Args:
        path: The file to write, in a directory that exists.

        text: All of it.

    Raises:
        SourceError: If it cannot be written. Nothing stays beside its place.
    """
    from tune_guard.cli.console import talk

    check_place(path)
    try:
        if path.is_symlink() or (path.exists() and not path.is_file()):
            path.write_text(text, encoding="utf-8")
        else:
            _replace(path, text)
    except OSError as error:
        msg = f"{path} cannot be written: {error.strerror}."
        raise SourceError(msg) from error
    talk(f"{path} written ({len(text.encode()) / 1e3:,.0f} kB).")


def _replace(path: Path, text: str) -> None:
    unfinished = path.with_name(path.name + ".part")
    try:
        unfinished.write_text(text, encoding="utf-8")
        unfinished.replace(path)
    finally:
        # What a full disk left; where nothing can be written, nothing is there.
        with contextlib.suppress(OSError):
            unfinished.unlink(missing_ok=True)
