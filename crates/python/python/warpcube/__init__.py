"""Warpcube: GPU-native OLAP in process.

>>> import warpcube
>>> warpcube.sql("SELECT 40 + 2 AS answer").fetchall()
[(42,)]
"""

import atexit

from . import _native
from ._connection import Connection, connect, register, sql, unregister
from ._errors import (
    CancelledError,
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
from ._relation import Relation

__version__: str = _native.__version__
__all__ = [
    "CancelledError",
    "Connection",
    "DataError",
    "DatabaseError",
    "Error",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "NotSupportedError",
    "OperationalError",
    "ProgrammingError",
    "Relation",
    "Warning",
    "connect",
    "register",
    "sql",
    "unregister",
]

atexit.register(_native.shut_down)
