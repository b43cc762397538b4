"""A page that a command writes: whole, or not at all."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def write_page(path: Path, html: str) -> None:
    """Write a page beside its place first, so that none is ever half written.

    Args:
        path: The file to write, in a directory that exists.

        html: The whole page.

    Raises:
        SourceError: If it cannot be written. Nothing stays beside its place.
    """
    from tune_guard.cli.console import talk
    from tune_guard.exceptions import SourceError

    if path.is_dir():
        msg = f"{path} cannot be written: it is a directory. Name a file in it."
        raise SourceError(msg)
    unfinished = path.with_name(path.name + ".part")
    try:
        unfinished.write_text(html, encoding="utf-8")
        unfinished.replace(path)
    except OSError as error:
        msg = f"{path} cannot be written: {error.strerror}."
        raise SourceError(msg) from error
    finally:
        _remove(unfinished)
    talk(f"{path} written ({path.stat().st_size / 1e6:.1f} MB).")


def _remove(unfinished: Path) -> None:
    """Remove what a full disk left; where nothing can be written, nothing is there."""
    with contextlib.suppress(OSError):
        unfinished.unlink(missing_ok=True)
