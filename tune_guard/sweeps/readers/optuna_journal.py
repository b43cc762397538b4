"""Read an Optuna journal, from a file or from Redis, and never write to it."""

from __future__ import annotations

import json
import urllib.parse
from typing import TYPE_CHECKING, Any

from optuna.storages import JournalStorage
from optuna.storages.journal import BaseJournalBackend

from tune_guard.exceptions import SourceError
from tune_guard.sweeps.sweep import Problem

if TYPE_CHECKING:
    import pathlib
    from collections.abc import Iterable, Iterator

_OPERATION = "op_code"
_CHUNK = 1000


class _Log(BaseJournalBackend):
    """A journal that was read already; it takes no further entries."""

    def __init__(self, entries: list[dict[str, Any]]) -> None:
        self._entries = entries

    def read_logs(self, log_number_from: int) -> Iterator[dict[str, Any]]:
        """Yield the entries from a number on."""
        yield from self._entries[log_number_from:]

    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        """Refuse: a sweep that is read is never changed."""
        msg = f"This journal is only read: {len(logs)} entries were refused."
        raise RuntimeError(msg)


def open_file(path: pathlib.Path, problems: list[Problem]) -> JournalStorage:
    """Open a journal file.

    Raises:
        SourceError: If the file is no journal.
    """
    with path.open("rb") as lines:
        return _storage(lines, str(path), problems)


def open_redis(url: str, shown: str, problems: list[Problem]) -> JournalStorage:
    """Open a Redis journal. ``?prefix=`` is the prefix of its keys.

    Raises:
        SourceError: If there is no journal, or Redis cannot be reached.
    """
    try:
        import redis
    except ImportError as error:
        msg = "Reading a Redis journal needs the Redis client: pip install redis"
        raise SourceError(msg) from error
    prefix = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(url).query)).get(
        "prefix", ""
    )
    client = redis.Redis.from_url(url.partition("?")[0])
    try:
        last = client.get(f"{prefix}:log_number")
        if last is None:
            msg = f"{shown} holds no Optuna journal under the prefix {prefix!r}."
            raise SourceError(msg)
        return _storage(_redis_entries(client, prefix, int(last)), shown, problems)
    except redis.RedisError as error:
        msg = f"{shown} cannot be read: {error}"
        raise SourceError(msg) from error
    finally:
        client.close()


def _redis_entries(client: Any, prefix: str, last: int) -> Iterator[bytes]:
    for start in range(0, last + 1, _CHUNK):
        numbers = range(start, min(start + _CHUNK, last + 1))
        yield from (
            entry or b""
            for entry in client.mget([f"{prefix}:log:{n}" for n in numbers])
        )


def _storage(
    lines: Iterable[bytes], file: str, problems: list[Problem]
) -> JournalStorage:
    entries: list[dict[str, Any]] = []
    broken: list[int] = []
    for number, line in enumerate(lines, start=1):
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            entry = None
        if isinstance(entry, dict) and _OPERATION in entry:
            entries.append(entry)
        else:
            broken.append(number)
        if not entries and number >= _CHUNK:
            break
    if not entries:
        msg = (
            f"{file} is none of these: SQLite file, journal of Optuna, export of W&B"
            " or MLflow."
        )
        raise SourceError(msg)
    problems += [
        Problem(file=file, line=number, what="entry left out: torn or no journal entry")
        for number in broken
    ]
    try:
        return JournalStorage(_Log(entries))
    except Exception as error:
        msg = f"{file} cannot be replayed by the installed Optuna: {error}"
        raise SourceError(msg) from error
