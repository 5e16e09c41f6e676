"""Connections to a server, by Arrow Flight SQL. They need PyArrow and no shared object of Warpcube's."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

from . import _flight_values
from ._connection import Connection
from ._cube import Cube
from ._errors import InterfaceError, NotSupportedError, OperationalError, ProgrammingError, of
from ._relation import Relation
from ._scope import Scope

_T = TypeVar("_T")
_TICK = 0.05
"""Seconds after which a thread that waits looks for Ctrl-C."""
_ERROR = re.compile(r"\b([A-Z]{2,5}-\d{3} .*?)(?:\. gRPC client debug context:|\. Client context:|$)", re.DOTALL)
_TYPE = "type.googleapis.com/arrow.flight.protocol.sql."


def _field(number: int, value: bytes) -> bytes:
    """A field of protobuf that has bytes."""
    head, length = bytes([number << 3 | 2]), len(value)
    while length > 0x7F:
        head += bytes([length & 0x7F | 0x80])
        length >>= 7
    return head + bytes([length]) + value


def _command(name: str, value: bytes) -> bytes:
    """A command of Flight SQL whose first field has this value."""
    return _field(1, (_TYPE + name).encode()) + _field(2, _field(1, value))


def _fields(message: bytes) -> dict[int, bytes]:
    """The fields with bytes of a message of protobuf."""
    found, at = {}, 0
    while at < len(message):
        number, length, shift = message[at] >> 3, 0, 0
        while True:
            at += 1
            length |= (message[at] & 0x7F) << shift
            shift += 7
            if message[at] < 0x80:
                break
        found[number] = message[at + 1 : at + 1 + length]
        at += 1 + length
    return found


class RemoteConnection(Connection):
    """A connection to a server. Each statement is a session of its own there: settings and temporary tables end with
    it. What is not there, variables as tables and cubes beside SQL, is refused by name."""

    def __init__(self, url: str, token: str | None, settings: dict[str, Any]) -> None:
        try:
            import pyarrow.flight as flight
        except ImportError as error:
            raise InterfaceError("a server is asked by PyArrow: pip install pyarrow") from error
        if not url.startswith("grpc://"):
            raise NotSupportedError(f"'{url}' is no server: give 'grpc://HOST:PORT'")
        if token is None:
            raise InterfaceError("a server asks for its token: connect(url, token=…), with the text of its file")
        if settings:
            names = ", ".join(sorted(settings))
            raise NotSupportedError(f"{names}: settings are the server's, given to warpcube serve or by SET GLOBAL")
        super().__init__(None)
        self._url, self._token = url, token
        self._flight = flight.FlightClient(url.replace("grpc://", "grpc+tcp://", 1))
        self._options = flight.FlightCallOptions(headers=[(b"authorization", f"Bearer {token}".encode())])
        # A wrong address or token is told here.
        self._statement("SELECT 1", None, None)

    def _sql(self, query: str, params: Any, depth: int) -> Relation:
        self._open()
        return RemoteRelation(self._statement(query, params, Scope(query, depth + 1)))

    def _statement(self, text: str, params: Any, scope: Scope | None) -> Statement:
        self._open()
        try:
            return Statement(self, text, params)
        except ProgrammingError as error:
            name = re.search("'([^']*)'", str(error)) if error.code == "SQL-002" else None
            if name and scope is not None and scope(name[1]) is not None:
                raise NotSupportedError(f"variables of Python are no tables of a server: '{name[1]}'") from error
            raise
        finally:
            if scope is not None:
                scope.forget()

    def _open(self) -> Any:
        if self._flight is None:
            raise InterfaceError("the connection is closed")
        return self

    def cursor(self) -> Connection:
        """Another connection to the same server."""
        self._open()
        return RemoteConnection(self._url, self._token, {})

    def close(self) -> None:
        """Ends this connection."""
        if self._flight is not None:
            self._flight.close()
        self._flight = None

    def register(self, name: str, table: Any) -> None:
        """Refused: a table of one session ends with its statement on a server."""
        _refuse(f"register('{name}', …)", "tables of a session; adbc_ingest of ADBC makes lasting ones")

    def unregister(self, name: str) -> None:
        """Refused, as :meth:`register` is."""
        _refuse(f"unregister('{name}')", "tables of a session")

    def cube(self, folder: str | os.PathLike[str]) -> Cube:
        """Refused: on a server cubes are asked by SQL."""
        _refuse(f"cube('{os.fspath(folder)}')", f"cubes but in SQL, as SELECT … FROM '{os.fspath(folder)}'")

    def create_cube(self, definition: str | os.PathLike[str], folder: str | os.PathLike[str]) -> Cube:
        """Refused: cubes are made where their folders are."""
        _refuse(f"create_cube(…, '{os.fspath(folder)}')", "cubes but in SQL")

    def _call(self, work: Callable[[], _T], sql: str, cancel: Callable[[], Any] = lambda: None) -> _T:
        """Does work that waits for the server. Ctrl-C cancels it; errors are those of a database in the process."""
        import pyarrow.flight

        try:
            return _waiting(work, cancel)
        except (pyarrow.ArrowException, pyarrow.flight.FlightError) as error:
            raise _told(error, sql) from None


def _refuse(what: str, why: str) -> NoReturn:
    raise NotSupportedError(f"{what}: a connection to a server has no {why}")


def _told(error: Exception, sql: str) -> Exception:
    """The error that the server tells."""
    told = _ERROR.search(str(error))
    return of(told[1], sql, None) if told else OperationalError(str(error))


def _waiting(work: Callable[[], _T], cancel: Callable[[], Any]) -> _T:
    """Does work, on another thread where this one has to look for Ctrl-C."""
    if threading.current_thread() is not threading.main_thread():
        return work()
    done: list[Any] = []

    def run() -> None:
        try:
            done.append(work())
        except BaseException as error:  # noqa: BLE001 (it is raised by the thread that waits)
            done.append(_Failed(error))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        while thread.is_alive():
            thread.join(_TICK)
    except BaseException:
        cancel()
        raise
    if isinstance(done[0], _Failed):
        raise done[0].error
    return done[0]


class _Failed:
    def __init__(self, error: BaseException) -> None:
        self.error = error


class Statement:
    """A statement of a server: a query with a ticket for its rows, or another one with the rows that it gave."""

    def __init__(self, connection: RemoteConnection, sql: str, params: Any) -> None:
        self.sql = self.text = sql
        self._connection, self._params = connection, params
        self._info = connection._call(self._planned, sql)
        schema = self._info.schema
        self._kept = None
        if schema is None or not schema.names:
            rows = Rows(self, self._reader())
            self._kept = rows.table()
            schema = self._kept.schema
        self._schema = schema

    def _planned(self) -> Any:
        import pyarrow.flight as flight

        client, options = self._connection._open()._flight, self._connection._options
        if self._params is None:
            command = _command("CommandStatementQuery", self.sql.encode())
            return client.get_flight_info(flight.FlightDescriptor.for_command(command), options)
        values = _flight_values.batch(self._params)
        create = _command("ActionCreatePreparedStatementRequest", self.sql.encode())
        made = list(client.do_action(flight.Action("CreatePreparedStatement", create), options))
        handle = _fields(_fields(made[0].body.to_pybytes())[2])[1]
        try:
            descriptor = flight.FlightDescriptor.for_command(_command("CommandPreparedStatementQuery", handle))
            writer, _ = client.do_put(descriptor, values.schema, options)
            writer.write_batch(values)
            writer.close()
            # The ticket has the values.
            return client.get_flight_info(descriptor, options)
        finally:
            close = _command("ActionClosePreparedStatementRequest", handle)
            list(client.do_action(flight.Action("ClosePreparedStatement", close), options))

    def _reader(self) -> Any:
        ticket = self._info.endpoints[0].ticket
        client, options = self._connection._open()._flight, self._connection._options
        return self._connection._call(lambda: client.do_get(ticket, options), self.sql, self._cancel)

    def _cancel(self) -> None:
        import pyarrow
        import pyarrow.flight as flight

        try:
            action = flight.Action("CancelFlightInfo", _field(1, self._info.serialize()))
            list(self._connection._open()._flight.do_action(action, self._connection._options))
        except (pyarrow.ArrowException, flight.FlightError):
            # It has ended meanwhile.
            pass

    @property
    def columns(self) -> list[tuple[str, str]]:
        """Names and SQL types of the columns."""
        return [(field.name, _flight_values.sql_type(field)) for field in self._schema]

    @property
    def is_done(self) -> bool:
        """Whether the statement has run, and its rows are kept."""
        return self._kept is not None

    @property
    def counts(self) -> bool:
        """Whether the only row of a statement that has run tells how many rows were written."""
        return self._kept is not None and _flight_values.is_count(self._kept.schema)

    def derive(self, sql: str, text: str, find: Any = None) -> Statement:
        """Another statement with the same parameters."""
        return Statement(self._connection, sql, self._params)

    def rows(self, progress: Any = None) -> Rows:
        """Its rows, as they come."""
        return Rows(self, self._reader() if self._kept is None else self._kept.to_reader())


class Rows:
    """Rows, which are read once."""

    def __init__(self, statement: Statement, reader: Any) -> None:
        self._statement = statement
        self._reader = reader
        self._ready: list[Any] = []

    def _next(self) -> Any | None:
        """The next batch that has rows."""
        import pyarrow

        def read() -> Any | None:
            try:
                if isinstance(self._reader, pyarrow.RecordBatchReader):
                    return self._reader.read_next_batch()
                return self._reader.read_chunk().data
            except StopIteration:
                return None

        while not self._ready:
            batch = self._statement._connection._call(read, self._statement.sql, self._statement._cancel)
            if batch is None or batch.num_rows:
                return batch
        return self._ready.pop()

    def table(self, limit: int | None = None) -> Any:
        """The next ``limit`` rows, or all, as a table of PyArrow."""
        import pyarrow

        batches, left = [], limit
        while (left is None or left > 0) and (batch := self._next()) is not None:
            if left is not None:
                if batch.num_rows > left:
                    self._ready.append(batch.slice(left))
                batch = batch.slice(0, left)
                left -= batch.num_rows
            batches.append(batch)
        return pyarrow.Table.from_batches(batches, self._reader.schema)

    def read(self, limit: int | None = None) -> Rows:
        """The next ``limit`` rows, or all, which are there then."""
        return Rows(self._statement, self.table(limit).to_reader())

    def fetch(self, limit: int | None = None) -> list[tuple]:
        """The next ``limit`` rows as tuples; all without a limit."""
        return _flight_values.tuples(self.table(limit))

    def text(self, width: int | None) -> str:
        """The rows that are left as a table of text, with lines of at most ``width`` characters."""
        return _flight_values.text(self.table(), width)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        import pyarrow

        is_local = isinstance(self._reader, pyarrow.RecordBatchReader)
        return (self._reader if is_local else self._reader.to_reader()).__arrow_c_stream__(requested_schema)


class RemoteRelation(Relation):
    """As :class:`Relation`, of a server. Files are written here, and not where the server is."""

    def _copy(self, path: str | os.PathLike[str], kind: str) -> None:
        import pyarrow.csv
        import pyarrow.parquet

        rows = self._statement.rows()
        schema = rows._reader.schema
        writer = pyarrow.parquet.ParquetWriter if kind == "PARQUET" else pyarrow.csv.CSVWriter
        with writer(os.fspath(path), schema) as file:
            while (batch := rows._next()) is not None:
                file.write_batch(batch)
