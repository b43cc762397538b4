"""What of a SQLite file is data: tables, and nothing that computes when it is read."""

from __future__ import annotations

import sqlite3

_COMPUTED = (2, 3)
"""What ``table_xinfo`` says of a generated column."""


def plain_tables(database: sqlite3.Connection) -> set[str]:
    """Return the names of the tables that hold what was written to them.

    Views and virtual tables are none: they have no page of their own.

    Raises:
        sqlite3.Error: If a table computes a column. A short expression can stand for
            gigabytes, and neither Optuna nor MLflow has one.
    """
    found = database.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0"
    )
    names = {str(row[0]) for row in found.fetchall()}
    for name in names:
        columns = database.execute(f'PRAGMA table_xinfo("{_quoted(name)}")').fetchall()
        if any(column[-1] in _COMPUTED for column in columns):
            msg = f"the table {name} computes a column"
            raise sqlite3.DatabaseError(msg)
    return names


def drop_what_computes(database: sqlite3.Connection) -> None:
    """Leave plain tables only: others run what whoever wrote them wanted.

    Args:
        database: A private copy.

    Raises:
        sqlite3.Error: If a table computes a column.
    """
    found = database.execute(
        "SELECT type, name FROM sqlite_master"
        " WHERE type IN ('view', 'trigger') OR (type = 'table' AND rootpage = 0)"
    )
    for kind, name in found.fetchall():
        database.execute(f'DROP {kind} IF EXISTS "{_quoted(name)}"')
    plain_tables(database)
    database.commit()


def _quoted(name: object) -> str:
    return str(name).replace('"', '""')
