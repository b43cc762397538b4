"""A file that a command writes: whole, or not at all."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from tune_guard.exceptions import SourceError

_KB = 1000


def check_place(path: Path) -> None:
    """Refuse a file that cannot lie there, before long work is done for it.

    Raises:
        SourceError: If it is a directory, lies in none or in one that is closed, or
            has a name that is too long.
    """
    try:
        if path.is_dir():
            msg = f"{path} cannot be written: it is a directory. Name a file in it."
            raise SourceError(msg)
        if not path.parent.is_dir():
            msg = f"{path} cannot be written: there is no directory {path.parent}."
            raise SourceError(msg)
    except OSError as error:
        raise _refusal(path, error) from error


def write_whole(path: Path, text: str) -> None:
    """Write a file beside its place first, so that none is ever half written.

    A link, a pipe or a device (``/dev/stdout``) stays what it is.

    Args:
        path: The file to write, in a directory that exists.

        text: All of it. What is no valid text, as in the names of some files,
            becomes a question mark.

    Raises:
        SourceError: If it cannot be written. Nothing stays beside its place.
    """
    from tune_guard.cli.console import talk

    check_place(path)
    content = text.encode(errors="replace")
    try:
        if path.is_symlink() or (path.exists() and not path.is_file()):
            path.write_bytes(content)
        else:
            _replace(path, content)
    except OSError as error:
        raise _refusal(path, error) from error
    talk(f"{path} written ({_size(len(content))}).")


def _replace(path: Path, content: bytes) -> None:
    """Put a new file in the place, with the mode of the one before."""
    # In a directory of its own no other file is in its way, and the umask holds.
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".tune-guard-") as folder:
        unfinished = Path(folder, "unfinished")
        unfinished.write_bytes(content)
        if path.exists():
            shutil.copymode(path, unfinished)
        unfinished.replace(path)


def _size(length: int) -> str:
    return f"{length / _KB:,.0f} kB" if length >= _KB else f"{length} bytes"


def _refusal(path: Path, error: OSError) -> SourceError:
    return SourceError(f"{path} cannot be written: {error.strerror}.")
