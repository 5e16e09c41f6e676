"""PEP 249: ``import warpcube.dbapi as db; db.connect().cursor().execute("SELECT ?", [1]).fetchall()``.

Statements take effect at once, and there are no transactions of several: :meth:`Connection.commit` does nothing, and
there is no ``rollback``.
"""

from __future__ import annotations

import datetime
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from . import _connection
from ._errors import (
    DatabaseError,
    DataError,
    Error,
    IntegrityError,
    InterfaceError,
    InternalError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    Warning,
)

__all__ = [
    "BINARY",
    "Binary",
    "Connection",
    "Cursor",
    "DATETIME",
    "DataError",
    "DatabaseError",
    "Date",
    "DateFromTicks",
    "Error",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "NUMBER",
    "NotSupportedError",
    "OperationalError",
    "ProgrammingError",
    "ROWID",
    "STRING",
    "Time",
    "TimeFromTicks",
    "Timestamp",
    "TimestampFromTicks",
    "Warning",
    "apilevel",
    "connect",
    "paramstyle",
    "threadsafety",
]

apilevel = "2.0"
threadsafety = 2
paramstyle = "qmark"

Binary = bytes
Date = datetime.date
Time = datetime.time
Timestamp = datetime.datetime


def DateFromTicks(ticks: float) -> datetime.date:  # noqa: N802 (the name is PEP 249's)
    """The local date of seconds since 1970."""
    return Date(*time.localtime(ticks)[:3])


def TimeFromTicks(ticks: float) -> datetime.time:  # noqa: N802
    """The local time of day of seconds since 1970."""
    return Time(*time.localtime(ticks)[3:6])


def TimestampFromTicks(ticks: float) -> datetime.datetime:  # noqa: N802
    """The local timestamp of seconds since 1970."""
    return Timestamp(*time.localtime(ticks)[:6])


class _Kind:
    """SQL types that are one kind to PEP 249."""

    def __init__(self, *names: str) -> None:
        self._names = names

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and other.partition("(")[0] in self._names

    def __hash__(self) -> int:
        return hash(self._names)


STRING = _Kind("VARCHAR", "TEXT", "UUID", "JSON")
BINARY = _Kind("BYTEA", "BLOB")
NUMBER = _Kind(
    "TINYINT",
    "SMALLINT",
    "INT",
    "INTEGER",
    "BIGINT",
    "TINYINT UNSIGNED",
    "SMALLINT UNSIGNED",
    "INT UNSIGNED",
    "BIGINT UNSIGNED",
    "FLOAT",
    "REAL",
    "DOUBLE",
    "DECIMAL",
)
DATETIME = _Kind("DATE", "TIME", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE", "INTERVAL")
ROWID = _Kind()


def connect(path: str | os.PathLike[str] | None = None, **settings: Any) -> Connection:
    """Opens a database, or connects to a server: see :func:`warpcube.connect`."""
    return Connection(_connection.connect(path, **settings))


class Connection:
    """A connection to a database."""

    Warning, Error, InterfaceError, DatabaseError = Warning, Error, InterfaceError, DatabaseError
    DataError, OperationalError, IntegrityError = DataError, OperationalError, IntegrityError
    InternalError, ProgrammingError, NotSupportedError = InternalError, ProgrammingError, NotSupportedError

    def __init__(self, connection: _connection.Connection) -> None:
        self._connection = connection

    def cursor(self) -> Cursor:
        """A cursor; cursors of one connection share its settings and temporary tables."""
        self._connection._open()
        return Cursor(self)

    def commit(self) -> None:
        """Nothing: a statement's changes are in place at its end."""
        self._connection._open()

    def close(self) -> None:
        """Ends the connection."""
        self._connection.close()

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Cursor:
    """The result of the last statement, which is read row by row."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.arraysize = 1
        self.description: list[tuple] | None = None
        self.rowcount = -1
        self._rows: Any | None = None
        self._is_closed = False

    def execute(self, operation: str, parameters: Sequence[Any] | dict[str, Any] | None = None) -> Cursor:
        """Runs a statement with values for ``?``, ``$1`` or ``$name``."""
        self._open()
        self.description, self.rowcount, self._rows = None, -1, None
        statement = self.connection._connection._statement(operation, parameters or None, None)
        if statement.columns:
            self.description = [(name, kind, None, None, None, None, None) for name, kind in statement.columns]
            self._rows = statement.rows()
        if statement.counts:
            self.rowcount = statement.rows().fetch(1)[0][0]
            self.description, self._rows = None, None
        return self

    def executemany(self, operation: str, seq_of_parameters: Iterable[Sequence[Any] | dict[str, Any]]) -> Cursor:
        """Runs a statement once for each of these parameters."""
        count = 0
        for parameters in seq_of_parameters:
            self.execute(operation, parameters)
            if self._rows is not None:
                raise ProgrammingError("executemany() is for statements without rows")
            count += max(self.rowcount, 0)
        self.rowcount = count
        return self

    def fetchone(self) -> tuple | None:
        """The next row, or None."""
        rows = self._reading().fetch(1)
        return rows[0] if rows else None

    def fetchmany(self, size: int | None = None) -> list[tuple]:
        """The next ``size`` rows, or as many as there are."""
        return self._reading().fetch(self.arraysize if size is None else size)

    def fetchall(self) -> list[tuple]:
        """All rows that are left."""
        return self._reading().fetch()

    def __iter__(self) -> Iterator[tuple]:
        while (row := self.fetchone()) is not None:
            yield row

    def close(self) -> None:
        """Ends the cursor; a statement that runs is cancelled."""
        self._rows, self._is_closed = None, True

    def setinputsizes(self, sizes: Sequence[Any]) -> None:
        """Nothing."""

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Nothing."""

    def __enter__(self) -> Cursor:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open(self) -> None:
        if self._is_closed:
            raise InterfaceError("the cursor is closed")
        self.connection._connection._open()

    def _reading(self) -> Any:
        self._open()
        if self._rows is None:
            raise InterfaceError("the last statement gave no rows")
        return self._rows
