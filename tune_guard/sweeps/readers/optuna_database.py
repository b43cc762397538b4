"""Open the database of an Optuna study without changing it, however old it is.

A SQLite file is copied, a server's database is read where it is. What has an old
schema is copied table by table into a SQLite file, and that is upgraded.
"""

from __future__ import annotations

import contextlib
import pathlib
import sqlite3
import tempfile
import urllib.parse
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from optuna.storages import RDBStorage

from tune_guard.exceptions import SourceError
from tune_guard.sweeps.readers.sqlite_tables import drop_what_computes

if TYPE_CHECKING:
    from collections.abc import Iterator

_NEEDED = frozenset({"studies", "trials", "version_info"})
_DRIVERS = {
    "postgresql": ("psycopg2-binary", "psycopg2"),
    "mysql": ("PyMySQL", "pymysql"),
    "mariadb": ("PyMySQL", "pymysql"),
}
"""Package and name of the driver that a URL may name after a plus."""


@contextlib.contextmanager
def open_copy(path: pathlib.Path) -> Iterator[RDBStorage]:
    """Copy a SQLite file, with what a running writer has committed, and open it.

    Raises:
        SourceError: If it cannot be read, or is no storage.
    """
    with tempfile.TemporaryDirectory(prefix="tune_guard-") as folder:
        copy = pathlib.Path(folder, "copy.db")
        _backup(path, copy)
        with _opened(f"sqlite:///{copy}", str(path), folder) as storage:
            yield storage


@contextlib.contextmanager
def open_server(url: str, shown: str) -> Iterator[RDBStorage]:
    """Open the database of a server.

    Args:
        url: SQLAlchemy's URL of it.

        shown: The same, without its password.

    Raises:
        SourceError: If it cannot be reached, or is no storage.
    """
    with (
        tempfile.TemporaryDirectory(prefix="tune_guard-") as folder,
        _opened(url, shown, folder) as storage,
    ):
        yield storage


def _backup(path: pathlib.Path, copy: pathlib.Path) -> None:
    place = urllib.parse.quote(str(path.absolute()))
    errors = []
    # A file in write-ahead mode on read-only media opens only as immutable.
    for option in ("mode=ro", "mode=ro&immutable=1"):
        try:
            with (
                contextlib.closing(
                    sqlite3.connect(f"file:{place}?{option}", uri=True)
                ) as original,
                contextlib.closing(sqlite3.connect(copy)) as target,
            ):
                original.backup(target)
                drop_what_computes(target)
        except sqlite3.Error as error:
            errors.append(str(error))
        else:
            return
    msg = f"{path} cannot be read as a SQLite file: {errors[0]}"
    raise SourceError(msg)


@contextlib.contextmanager
def _opened(url: str, shown: str, folder: str) -> Iterator[RDBStorage]:
    """Open a database where it is, or an upgraded copy of it in ``folder``."""
    try:
        with _engine(url) as engine:
            current = _is_current(engine, url, shown)
            if not current:
                url = f"sqlite:///{pathlib.Path(folder, 'upgraded.db')}"
                _copy_tables(engine, url)
    except ModuleNotFoundError as error:
        msg = f"{shown} cannot be read: {error}. {_driver_for(url)}"
        raise SourceError(msg) from error
    except (sa.exc.SQLAlchemyError, ImportError) as error:
        msg = f"{shown} cannot be read: {first_line(error)}"
        raise SourceError(msg) from error
    with _storage(url, shown) as storage:
        if not current:
            _upgrade(storage, shown)
        yield storage


def _driver_for(url: str) -> str:
    """Say which package drives a database; SQLAlchemy's own choice has changed."""
    kind = url.partition(":")[0].partition("+")[0]
    package, driver = _DRIVERS.get(kind, ("", ""))
    if not package:
        return f"Install a driver of SQLAlchemy for {kind}."
    return f"pip install {package}, and write {kind}+{driver}://..."


@contextlib.contextmanager
def _engine(url: str) -> Iterator[sa.Engine]:
    engine = sa.create_engine(url)
    try:
        yield engine
    finally:
        engine.dispose()


def _is_current(engine: sa.Engine, url: str, shown: str) -> bool:
    """Tell whether the schema is the installed Optuna's.

    Optuna stamps a database that has no version yet. Such a one is old, and is
    never opened where it is.
    """
    tables = sa.inspect(engine).get_table_names()
    if not set(tables) >= _NEEDED:
        msg = f"{shown} is a database, but it holds no Optuna study."
        raise SourceError(msg)
    if "alembic_version" not in tables:
        return False
    with _storage(url, shown) as storage:
        return storage.get_current_version() == storage.get_head_version()


@contextlib.contextmanager
def _storage(url: str, shown: str) -> Iterator[RDBStorage]:
    """Open a database as it is: no table is made and no schema is checked.

    Were the tables made up front, the upgrade of a schema before 2.4 would fail.
    """
    try:
        storage = RDBStorage(
            url, skip_compatibility_check=True, skip_table_creation=True
        )
    except Exception as error:
        msg = f"{shown} cannot be opened by the installed Optuna: {first_line(error)}"
        raise SourceError(msg) from error
    try:
        yield storage
    finally:
        storage.remove_session()
        storage.engine.dispose()


def _upgrade(storage: RDBStorage, shown: str) -> None:
    """Upgrade a private copy to the schema of the installed Optuna."""
    version = storage.get_current_version()
    if version not in storage.get_all_versions():
        msg = (
            f"{shown} has the schema {version}, which the installed Optuna does not"
            " know. Install a newer one: pip install -U optuna"
        )
        raise SourceError(msg)
    try:
        storage.upgrade()
    except Exception as error:
        msg = (
            f"{shown} has the old schema {version}, and a copy of it could not be"
            f" upgraded: {first_line(error)}"
        )
        raise SourceError(msg) from error


def _copy_tables(engine: sa.Engine, copy: str) -> None:
    """Copy all tables into a new SQLite file, row by row, without constraints.

    The checks that SQLAlchemy wrote before 1.4 make Optuna's own upgrade fail.
    """
    found = sa.MetaData()
    found.reflect(engine)
    plain = sa.MetaData()
    for table in found.sorted_tables:
        columns = [
            sa.Column(
                column.name, _plain_type(column.type), primary_key=column.primary_key
            )
            for column in table.columns
        ]
        sa.Table(table.name, plain, *columns)
    with _engine(copy) as target, engine.connect() as source, target.begin() as sink:
        plain.create_all(sink)
        for table in found.sorted_tables:
            rows = source.execute(table.select()).mappings()
            for chunk in rows.partitions(1000):
                sink.execute(plain.tables[table.name].insert(), [*map(dict, chunk)])


def _plain_type(kind: sa.types.TypeEngine[Any]) -> sa.types.TypeEngine[Any]:
    """Return a type that SQLite has; a server's enumerations become texts."""
    if isinstance(kind, sa.Enum):
        return sa.String()
    return kind.as_generic(allow_nulltype=True)


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, or its class."""
    return str(error).strip().partition("\n")[0] or type(error).__name__
