"""Read the studies of an Optuna storage of any kind and age, without changing it."""

from __future__ import annotations

import contextlib
import logging
import pathlib
import re
import urllib.parse
import warnings
from typing import TYPE_CHECKING

from tune_guard.exceptions import SourceError, did_you_mean, hide_password
from tune_guard.sweeps.readers.progress import Progress, silent

if TYPE_CHECKING:
    from collections.abc import Iterator

    from optuna.storages import BaseStorage

    from tune_guard.sweeps.sweep import Problem, Sweep

SQLITE_MAGIC = b"SQLite format 3\x00"
_DATABASE_URL = re.compile(r"(sqlite|postgresql|mysql|mariadb|oracle|mssql)(\+\w+)?://")
_STUDY_KEYS = ("study", "study_name")


def is_storage_url(source: str) -> bool:
    """Tell whether a source is the URL of a database or a Redis journal.

    Example:
        >>> is_storage_url("sqlite:///study.db"), is_storage_url("s3://bucket/run")
        (True, False)
    """
    return bool(_DATABASE_URL.match(source)) or _is_redis(source)


def _is_redis(source: str) -> bool:
    return source.startswith(("redis://", "rediss://"))


def split_study(source: str) -> tuple[str, str]:
    """Take ``?study=NAME`` out of a URL or path.

    Example:
        >>> split_study("sqlite:///a.db?study=mnist&timeout=5")
        ('sqlite:///a.db?timeout=5', 'mnist')
    """
    head, _, query = source.partition("?")
    pairs = urllib.parse.parse_qsl(query, keep_blank_values=True)
    chosen = [value for key, value in pairs if key in _STUDY_KEYS]
    if not chosen:
        return source, ""
    rest = [(key, value) for key, value in pairs if key not in _STUDY_KEYS]
    return head + ("?" + urllib.parse.urlencode(rest) if rest else ""), chosen[-1]


def read_optuna_storage(
    source: str, study_name: str = "", progress: Progress = silent
) -> list[Sweep]:
    """Read every study of a storage, or the one that is named.

    Args:
        source: Storage URL, or path of a SQLite or journal file. ``?study=NAME``
            at its end chooses one study.

        study_name: The study to read; empty for all.

        progress: Called as trials are read.

    Raises:
        SourceError: If the storage is missing, cannot be opened, is of an
            unknown schema, is damaged, or has no such study.
    """
    address, named = split_study(source)
    shown = hide_password(address)
    problems: list[Problem] = []
    try:
        with _quiet(), _opened(address, shown, problems) as storage:
            sweeps = _studies(storage, study_name or named, shown, problems, progress)
    except SourceError:
        raise
    except Exception as error:
        # Optuna trusts its storage: damage ends in whatever error comes first.
        why = str(error).strip().partition("\n")[0] or type(error).__name__
        msg = f"{shown} cannot be read: {why}"
        raise SourceError(msg) from error
    if not sweeps:
        msg = f"{shown} holds no study."
        raise SourceError(msg)
    return sweeps


def _studies(
    storage: BaseStorage,
    wanted: str,
    shown: str,
    problems: list[Problem],
    progress: Progress,
) -> list[Sweep]:
    import optuna

    from tune_guard.sweeps.readers.kept_aside import optuna_kept_aside
    from tune_guard.sweeps.readers.optuna_study import read_study

    names = optuna.get_all_study_names(storage)
    if wanted and wanted not in names:
        msg = f"{shown} has no study `{wanted}`. {did_you_mean(wanted, names)}"
        raise SourceError(msg)
    sweeps: list[Sweep] = []
    for name in [wanted] if wanted else names:
        study = optuna.load_study(study_name=name, storage=storage)
        # What the storage had to repair is said once, with its first study.
        repaired = () if sweeps else problems
        aside = optuna_kept_aside(shown, name)
        sweeps.append(read_study(study, shown, repaired, progress, aside))
    return sweeps


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep the migrations' talk, and their change of the logging setup, away.

    Alembic's environment configures logging for the whole process unless the
    root logger has a handler already.
    """
    root, handler = logging.getLogger(), logging.NullHandler()
    root.addHandler(handler)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        root.removeHandler(handler)


@contextlib.contextmanager
def _opened(address: str, shown: str, problems: list[Problem]) -> Iterator[BaseStorage]:
    """Open a storage to be read, by its kind."""
    try:
        from tune_guard.sweeps.readers import optuna_database, optuna_journal
    except ImportError as error:
        msg = (
            f"Reading a study needs Optuna: pip install 'tune-guard[optuna]' ({error})"
        )
        raise SourceError(msg) from error
    if _is_redis(address):
        yield optuna_journal.open_redis(address, shown, problems)
        return
    if _DATABASE_URL.match(address) and not address.startswith("sqlite"):
        with optuna_database.open_server(address, shown) as storage:
            yield storage
        return
    path = _file(address, shown)
    if not is_sqlite(path):
        yield optuna_journal.open_file(path, problems)
        return
    with optuna_database.open_copy(path) as storage:
        yield storage


def is_sqlite(path: pathlib.Path) -> bool:
    """Tell whether a file is a SQLite database."""
    with path.open("rb") as file:
        return file.read(len(SQLITE_MAGIC)) == SQLITE_MAGIC


def _below(path: str | None) -> str:
    return f"/{path}" if path else ""


def _file(address: str, shown: str) -> pathlib.Path:
    """Return the file of a path or SQLite URL, and make sure that it is there.

    SQLite itself would create a missing file, and the study would be empty.
    """
    name = address
    if address.startswith("sqlite"):
        from sqlalchemy.engine import make_url

        url = make_url(address)
        if url.host:
            msg = f"{shown} names a server, and SQLite has none. Write a path after"
            msg += f" three slashes: sqlite:///{url.host}{_below(url.database)}."
            raise SourceError(msg)
        name = url.database or ""
        name = name.removeprefix("file:").partition("?")[0]
    if name in ("", ":memory:"):
        msg = f"{shown} lives in the memory of one process. Give the study itself."
        raise SourceError(msg)
    path = pathlib.Path(name)
    if not path.is_file():
        msg = f"{path} does not exist. Nothing was created; check the path."
        raise SourceError(msg)
    return path
