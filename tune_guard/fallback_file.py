"""A file of this user alone, for a record that its storage has refused."""

from __future__ import annotations

import os
from pathlib import Path


def append(path: Path, text: str) -> None:
    """Append to a file that only this user reads; its folder is made if need be.

    It is one write: several workers may append at once.

    Raises:
        OSError: If the place refuses it.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = os.open(path, os.O_APPEND | os.O_CREAT | os.O_WRONLY, 0o600)
    try:
        os.write(file, text.encode())
    finally:
        os.close(file)
