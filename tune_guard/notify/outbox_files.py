"""The files in which alerts wait: written by one process, read by the next."""

from __future__ import annotations

import fcntl
import os
import secrets
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from tune_guard.notify.alert import Alert
from tune_guard.strict_json import from_json

SUFFIX = ".jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One alert as it lies on disk.

    Args:
        marks: The services that have not taken it yet.

        why: Why they did not, by service, where that is known.
    """

    id: int
    alert: Alert
    marks: tuple[str, ...]
    why: dict[str, str]


def left_behind(folder: Path) -> Iterator[tuple[Path, bool, list[Entry]]]:
    """Return what lies undelivered on disk, file by file, changing nothing.

    Yields:
        The file, whether its process is alive, and its entries.
    """
    for path in files_in(folder):
        with Claimed(path) as claimed:
            alive = claimed.content is None
        try:
            content = path.read_text(encoding="utf-8", errors="replace")
            yield path, alive, parse(content)
        except OSError:
            continue


def parse(content: str) -> list[Entry]:
    """Read a file. A line that was torn, or written by hand, is passed over."""
    alerts: dict[int, tuple[Alert, list[str]]] = {}
    until: dict[str, int] = {}
    why: dict[str, str] = {}
    for text in content.splitlines():
        line = from_json(text)
        if not isinstance(line, dict):
            continue
        try:
            if "alert" in line:
                marks = [str(mark) for mark in line["for"]]
                alerts[int(line["id"])] = (Alert.restored(line["alert"]), marks)
            elif "until" in line:
                until[str(line["to"])] = int(line["until"])
            elif "why" in line:
                why[str(line["to"])] = str(line["why"])
        except (KeyError, OverflowError, TypeError, ValueError):
            continue
    entries = []
    for number, (alert, marks) in alerts.items():
        left = tuple(mark for mark in marks if until.get(mark, 0) < number)
        if left:
            entries.append(Entry(id=number, alert=alert, marks=left, why=why))
    return entries


class Claimed:
    """Another process's file: its content while this one holds it, None if it lives."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: int | None = None
        self.content: str | None = None

    def __enter__(self) -> Self:
        try:
            self._file = os.open(self._path, os.O_RDWR)
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(self._file).st_nlink:
                raw = self._path.read_bytes()
                self.content = raw.decode(errors="replace")
        except OSError:
            self.content = None
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            os.close(self._file)


def files_in(folder: Path) -> list[Path]:
    """Return the files of all processes, those of dead ones too."""
    try:
        return sorted(folder.glob(f"*{SUFFIX}"))
    except OSError:
        return []


def make_folder(folder: Path) -> None:
    """Make a folder that only its user can look into."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def own_file(folder: Path) -> tuple[Path, int]:
    """Make a file of this process and lock it."""
    make_folder(folder)
    name = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}{SUFFIX}"
    path = folder / name
    while True:
        flags = os.O_CREAT | os.O_APPEND | os.O_WRONLY | os.O_NOFOLLOW
        file = os.open(path, flags, 0o600)
        fcntl.flock(file, fcntl.LOCK_EX)
        if os.fstat(file).st_nlink:
            return path, file
        # Between the two calls above another process took it for a dead one's.
        os.close(file)


def replace(path: Path, content: str) -> None:
    """Put new content in a file's place, whole or not at all."""
    fresh = path.with_suffix(".tmp")
    fresh.touch(mode=0o600)
    fresh.chmod(0o600)  # a process that died may have left it
    fresh.write_text(content, encoding="utf-8")
    fresh.replace(path)
