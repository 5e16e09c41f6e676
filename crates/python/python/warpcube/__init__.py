"""Warpcube: GPU-native OLAP in process.

>>> import warpcube
>>> warpcube.sql("SELECT 40 + 2 AS answer").fetchall()
[(42,)]
"""

import atexit

from . import _engine
from ._connection import Connection, connect, cube, register, sql, unregister
from ._cube import CrossTab, Cube
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

__version__: str = _engine.VERSION
__all__ = [
    "CancelledError",
    "Connection",
    "CrossTab",
    "Cube",
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
    "cube",
    "register",
    "sql",
    "unregister",
]

if _engine.IS_THERE:
    atexit.register(_engine.native.shut_down)
