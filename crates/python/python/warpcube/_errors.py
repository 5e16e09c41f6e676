"""Errors of statements, as classes of PEP 249."""

from __future__ import annotations


class Warning(Exception):  # noqa: A001 (the name is PEP 249's)
    """What is worth a word, and no error."""


class Error(Exception):
    """An error of Warpcube.

    Attributes:
        code: the code of the error, as ``SQL-002``; docs/errors.md tells what to do.
        position: line and column of the statement that it is about, from 1, or None.
        sql: the statement, or None.
    """

    code: str | None = None
    position: tuple[int, int] | None = None
    sql: str | None = None


class InterfaceError(Error):
    """A wrong use of this module."""


class DatabaseError(Error):
    """An error of the database."""


class DataError(DatabaseError):
    """A value that a statement cannot compute with."""


class OperationalError(DatabaseError):
    """Files, memory, time or the device are not as a statement needs them."""


class IntegrityError(DatabaseError):
    """A row that breaks a key or a check."""


class InternalError(DatabaseError):
    """A defect of Warpcube."""


class ProgrammingError(DatabaseError):
    """A statement that makes no sense: its syntax, its names or its types."""


class NotSupportedError(DatabaseError):
    """A statement that Warpcube does not do."""


class CancelledError(OperationalError):
    """A statement that was cancelled."""


_BY_CODE = {
    "SQL-001": ProgrammingError,
    "SQL-002": ProgrammingError,
    "SQL-003": ProgrammingError,
    "SQL-004": ProgrammingError,
    "SQL-005": NotSupportedError,
    "SQL-006": DataError,
    "SQL-007": CancelledError,
    "SQL-010": InternalError,
    "SQL-012": ProgrammingError,
    "SQL-015": ProgrammingError,
    "SQL-016": CancelledError,
}
_BY_KIND = {"SQL": OperationalError, "FILE": OperationalError, "CUBE": ProgrammingError, "CFG": ProgrammingError}


def of(text: str, sql: str, position: tuple[int, int] | None) -> Error:
    """The error of a text that begins with its code; the line that it is about stands below."""
    code = text.split(" ", 1)[0]
    kind = _BY_CODE.get(code) or _BY_KIND.get(code.split("-")[0], DatabaseError)
    shown = text
    if position is not None:
        line, column = position
        written = sql.split("\n")[line - 1].rstrip()
        shown += f"\n\nline {line}: {written}\n{' ' * (len(f'line {line}: ') + column - 1)}^"
    error = kind(shown)
    error.code, error.position, error.sql = code, position, sql or None
    return error
