"""What is to be delivered, kept on disk until it is: one file a process."""

from __future__ import annotations

import hashlib
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from tune_guard.notices import Notices
from tune_guard.notify.alert import Alert
from tune_guard.notify.digest import readable
from tune_guard.notify.outbox_files import (
    Claimed,
    files_in,
    make_folder,
    own_file,
    parse,
    replace,
)
from tune_guard.record import now_utc
from tune_guard.strict_json import to_json

MOST_IN_MEMORY = 50_000
"""Alerts that wait for one service in memory; more wait on disk alone."""

MOST_BYTES = 64 * 1024 * 1024
"""Size that the file of one process may have."""

CLAIM_HOLDS_S = 12 * 3600.0
"""A claim is for one run of a sweep. Its next run, a day later, has its own."""


@dataclass(slots=True)
class _Queue:
    """What waits for one service, the oldest first."""

    items: deque[tuple[int, Alert]] = field(default_factory=deque)
    more_on_disk: bool = False


class Outbox:
    """Keeps alerts from the moment they are made until each service took them.

    Each is appended to a file of this process before it is sent. The file is
    locked while the process lives; what a dead process left is taken over by the
    next one that sends to the same services. Where the disk does not work,
    alerts wait in memory alone, and that is said once.

    Args:
        folder: Where the files lie. Made when it is first needed.

        marks: The services that this process sends to.

        notices: Where trouble is named, once.
    """

    def __init__(self, folder: Path, marks: Iterable[str], notices: Notices) -> None:
        self.folder = folder
        self._queues = {mark: _Queue() for mark in marks}
        self._notices = notices
        self._file: int | None = None
        self._path: Path | None = None
        self._bytes = 0
        self._last_id = 0
        self._broken = False
        self._lock = threading.Lock()
        _open_boxes.add(self)

    def add(self, alert: Alert, marks: Sequence[str] | None = None) -> None:
        """Keep an alert for all services, or for those named. Never raises."""
        with self._lock:
            wanted = list(self._queues) if marks is None else list(marks)
            self._last_id += 1
            line = {"id": self._last_id, "for": wanted, "alert": alert.stored()}
            self._append(line)
            for mark in wanted:
                queue = self._queues[mark]
                full = len(queue.items) >= MOST_IN_MEMORY
                queue.more_on_disk |= full and not self._broken
                if not queue.more_on_disk and not full:
                    queue.items.append((self._last_id, alert))

    def waiting(self, mark: str, most: int) -> list[Alert]:
        """Return what waits for a service, the oldest first."""
        with self._lock:
            items = islice(self._queues[mark].items, most)
            return [alert for _, alert in items]

    def settle(self, mark: str, count: int) -> None:
        """Take out the first so many alerts: the service took them."""
        with self._lock:
            items = self._queues[mark].items
            last = 0
            for _ in range(count):
                last, _alert = items.popleft()
            if any(q.items or q.more_on_disk for q in self._queues.values()):
                self._append({"to": mark, "until": last})
            else:
                self._clear()

    def note(self, mark: str, why: str) -> None:
        """Write down why a service did not take what waits for it."""
        with self._lock:
            self._append({"to": mark, "why": why, "at": now_utc()})

    def adopt(self) -> int:
        """Take over what dead processes left for the services of this one.

        Returns:
            How many alerts that were.
        """
        count = 0
        for path in files_in(self.folder):
            if path != self._path:
                with Claimed(path) as claimed:
                    if claimed.content is not None:
                        count += self._take_over(path, claimed.content)
        return count

    def _take_over(self, path: Path, content: str) -> int:
        left, count = [], 0
        for entry in parse(content):
            mine = [mark for mark in entry.marks if mark in self._queues]
            others = [mark for mark in entry.marks if mark not in self._queues]
            if mine:
                self.add(readable(entry.alert), mine)
                count += 1
            if others:
                alert = entry.alert.stored()
                left.append({"id": entry.id, "for": others, "alert": alert})
        if self._broken:
            return count
        if left:
            replace(path, "".join(to_json(line) + "\n" for line in left))
        else:
            path.unlink(missing_ok=True)
        return count

    def claim(self, what: str) -> bool:
        """Return whether no process of this user said this lately; then it is said."""
        name = hashlib.sha256(what.encode(errors="replace")).hexdigest()[:32]
        path = self.folder / "said" / name
        try:
            make_folder(path.parent)
            try:
                os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            except FileExistsError:
                if time.time() - path.stat().st_mtime < CLAIM_HOLDS_S:
                    return False
                path.touch()
        except OSError:
            return True
        return True

    def close(self) -> None:
        """Give the file up: to nobody when nothing waits, else to the next process."""
        with self._lock:
            if self._file is not None:
                os.close(self._file)
                if self._bytes == 0 and self._path is not None:
                    self._path.unlink(missing_ok=True)
            self._file, self._broken = None, True

    def _append(self, line: dict[str, Any]) -> None:
        """Write one line, in one piece, to the file of this process."""
        if self._broken:
            return
        data = (to_json(line) + "\n").encode(errors="replace")
        try:
            if self._bytes + len(data) > MOST_BYTES:
                msg = f"it has grown to {MOST_BYTES} bytes"
                raise OSError(msg)  # noqa: TRY301 - handled like a full disk
            if self._file is None:
                self._path, self._file = own_file(self.folder)
            os.write(self._file, data)
            self._bytes += len(data)
        except OSError as error:
            self._broken = True
            self._notices.once(
                "outbox",
                f"Alerts cannot be kept in {self.folder} ({error}): those that are not"
                " delivered when this process ends are lost. Set TUNE_GUARD_STATE to"
                " a folder that can be written to.",
            )

    def _clear(self) -> None:
        if self._file is not None and not self._broken:
            os.ftruncate(self._file, 0)
            self._bytes = 0

    def _drop_inherited(self) -> None:
        if self._file is not None:
            os.close(self._file)
        self._file, self._broken = None, True


_open_boxes: weakref.WeakSet[Outbox] = weakref.WeakSet()


def _after_fork() -> None:
    """Close the parent's files: a child that held them would keep their locks."""
    for box in list(_open_boxes):
        box._drop_inherited()  # noqa: SLF001 - of this module's own class


os.register_at_fork(after_in_child=_after_fork)
