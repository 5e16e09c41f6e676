"""Databases and connections in this process."""

from __future__ import annotations

import importlib.util
import os
from typing import Any

from ._cube import Cube
from ._engine import native as _native
from ._errors import InterfaceError
from ._literals import bind
from ._relation import Relation
from ._scope import Scope, table_of


class Connection:
    """A connection to a database in this process, with settings, prepared statements and temporary tables of its own.

    A connection may be used by several threads at the same time; :meth:`cursor` gives another one to the same database.
    """

    def __init__(self, native: _native.Connection) -> None:
        self._native: _native.Connection | None = native

    def sql(self, query: str, params: Any = None) -> Relation:
        """Runs SQL.

        A query is planned, and runs when rows of the result are asked for, each time anew. Any other statement runs
        now, once, and its result has the rows that it gave. Of several statements all but the last run now, too.

        Data frames, Arrow tables and other objects with an Arrow stream are tables by the names of their variables,
        where neither a table nor a view has that name.

        Args:
            query: one or more statements.
            params: values for ``?`` and ``$1``, as a list, or for ``$name``, as a dict; of several statements, of the
                last one.
        """
        return self._sql(query, params, 1)

    def _sql(self, query: str, params: Any, depth: int) -> Relation:
        self._open()
        statements = _native.split(query)
        if not statements:
            raise InterfaceError("there is no statement in the text")
        bound = list(statements)
        if params is not None:
            bound[-1] = bind(statements[-1], params)
        scope = Scope(query, depth + 1)
        try:
            for statement, text in zip(bound, statements):
                relation = Relation(self._open().statement(statement, scope, text))
            return relation
        finally:
            scope.forget()

    def _statement(self, text: str, params: Any, scope: Scope | None) -> Any:
        """One statement, as PEP 249 has it."""
        bound = text if params is None else bind(text, params)
        return self._open().statement(bound, scope, text)

    def register(self, name: str, table: Any) -> None:
        """Makes a temporary table of this connection of a data frame, an Arrow table or another object with an Arrow
        stream, without a copy of its rows where Arrow allows. SQL reads the name without quotes in lower case."""
        found = table_of(table)
        if found is None:
            raise TypeError(f"an object of {type(table).__name__} is no table: it gives no Arrow stream")
        self._open().register(name.lower(), found)

    def unregister(self, name: str) -> None:
        """Drops a table that was registered."""
        if not self._open().unregister(name.lower()):
            raise InterfaceError(f"no table '{name}' was registered here")

    def cube(self, folder: str | os.PathLike[str]) -> Cube:
        """The cube in a folder."""
        return Cube(self._open().cube(os.fspath(folder)))

    def create_cube(self, definition: str | os.PathLike[str], folder: str | os.PathLike[str]) -> Cube:
        """Makes the cube of a definition, a file of YAML, in a new folder. SQL of the definition names what statements
        of this connection may name, save variables of Python."""
        native = self._open()
        native.create_cube(os.fspath(definition), os.fspath(folder))
        return Cube(native.cube(os.fspath(folder)))

    def cursor(self) -> Connection:
        """Another connection to the same database."""
        return Connection(self._open().connect())

    def close(self) -> None:
        """Ends this connection. The database is closed with its last connection."""
        self._native = None

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open(self) -> _native.Connection:
        if self._native is None:
            raise InterfaceError("the connection is closed")
        return self._native


def connect(path: str | os.PathLike[str] | None = None, *, token: str | None = None, **settings: Any) -> Connection:
    """Opens a database, or connects to a server.

    Args:
        path: the folder of a catalog that is kept: its views and tables over files. Without one the database is gone
            with its last connection. ``grpc://HOST:PORT`` is a server that ``warpcube serve`` runs.
        token: the token of the server.
        settings: settings by their names, ``connect(device="cpu")`` for ``warpcube.device``; those of DataFusion by a
            dict, ``**{"datafusion.execution.batch_size": 1024}``.
    """
    if isinstance(path, str) and "://" in path:
        from ._remote import RemoteConnection

        return RemoteConnection(path, token, settings)
    if token is not None:
        raise InterfaceError("a token is for a server, as connect('grpc://127.0.0.1:8433', token=…)")
    _find_compiler()
    return Connection(_native.Connection(None if path is None else os.fspath(path), _named(settings)))


def _named(settings: dict[str, Any]) -> dict[str, str]:
    """Settings by their full names."""
    return {name if "." in name else f"warpcube.{name}": _setting(value) for name, value in settings.items()}


def _find_compiler() -> None:
    """Names the library that compiles kernels for GPUs, if it is among this interpreter's packages and no other is
    named: ``warpcube[cuda13]`` brings it."""
    if os.environ.get("WARPCUBE_NVRTC"):
        return
    packages = importlib.util.find_spec("nvidia")
    for place in packages.submodule_search_locations or () if packages else ():
        for library in ("cu13/lib/libnvrtc.so.13", "cuda_nvrtc/lib/libnvrtc.so.13", "cuda_nvrtc/lib/libnvrtc.so.12"):
            path = os.path.join(place, library)
            if os.path.exists(path):
                os.environ["WARPCUBE_NVRTC"] = path
                return


def _setting(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


_default: Connection | None = None


def default() -> Connection:
    """The connection of the module's own functions, opened at first use."""
    global _default
    if _default is None:
        _default = connect()
    return _default


def sql(query: str, params: Any = None) -> Relation:
    """Runs SQL on the module's own connection: see :meth:`Connection.sql`."""
    return default()._sql(query, params, 1)


def register(name: str, table: Any) -> None:
    """Makes a temporary table of the module's own connection: see :meth:`Connection.register`."""
    default().register(name, table)


def unregister(name: str) -> None:
    """Drops a table that was registered."""
    default().unregister(name)


def cube(folder: str | os.PathLike[str]) -> Cube:
    """The cube in a folder."""
    return default().cube(folder)
