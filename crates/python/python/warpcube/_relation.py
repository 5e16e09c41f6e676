"""The result of a statement."""

from __future__ import annotations

import html
import os
import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ._engine import native as _native
from ._errors import InterfaceError
from ._progress import bar

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

_SHOWN = 50
"""Rows that a notebook or a prompt shows."""


class Relation:
    """A query, which runs whenever its rows are asked for; or the rows that another statement gave when it ran.

    A relation is a table by the name of its variable: ``warpcube.sql("SELECT count(*) FROM relation")``. It has the
    Arrow PyCapsule interface (``__arrow_c_stream__``), by which other libraries read it without a copy as it is
    computed.
    """

    def __init__(self, statement: _native.Statement) -> None:
        self._statement = statement
        self._rows: _native.Rows | None = None

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return [name for name, _ in self._statement.columns]

    @property
    def types(self) -> list[str]:
        """The SQL types of the columns."""
        return [name for _, name in self._statement.columns]

    @property
    def query(self) -> str:
        """The statement."""
        return self._statement.sql

    def arrow(self) -> pyarrow.Table:
        """All rows as a table of PyArrow."""
        import pyarrow

        return pyarrow.table(self._read())

    def reader(self) -> pyarrow.RecordBatchReader:
        """The rows as they come, as a reader of PyArrow. Results larger than memory are read so."""
        import pyarrow

        return pyarrow.RecordBatchReader.from_stream(self._statement.rows())

    def pl(self) -> polars.DataFrame:
        """All rows as a frame of Polars."""
        import polars

        return polars.DataFrame(self._read())

    def df(self) -> pandas.DataFrame:
        """All rows as a frame of pandas."""
        return self.arrow().to_pandas()

    to_arrow, to_polars, to_pandas = arrow, pl, df

    def fetchall(self) -> list[tuple]:
        """All rows that were not fetched yet, as tuples."""
        return self._fetch(None)

    def fetchmany(self, size: int = 1) -> list[tuple]:
        """The next rows, as tuples: as many as there are, and not more than ``size``."""
        return self._fetch(size)

    def fetchone(self) -> tuple | None:
        """The next row, or None behind the last one."""
        rows = self._fetch(1)
        return rows[0] if rows else None

    def __iter__(self) -> Iterator[tuple]:
        rows = self._statement.rows()
        while batch := rows.fetch(1024):
            yield from batch

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        """Writes all rows into a Parquet file, or into a folder of such files where the path has no extension."""
        self._copy(path, "PARQUET")

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Writes all rows into a CSV file with a line of names."""
        self._copy(path, "CSV")

    def show(self, rows: int = _SHOWN) -> None:
        """Prints the first rows as a table."""
        print(self._text(rows))

    def explain(self, analyze: bool = False) -> str:
        """How the query is run, and where; with ``analyze`` it runs, and each step has its time.

        Raises:
            InterfaceError: with ``analyze``, of a statement that is no query: it would run once more.
        """
        if analyze and self._statement.is_done:
            raise InterfaceError("explain(analyze=True) would run the statement once more")
        explain = f"EXPLAIN {'ANALYZE ' if analyze else ''}"
        statement = self._statement.derive(explain + self._statement.sql, explain + self._statement.text)
        return statement.rows().text(None)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._statement.rows().__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return self._text(_SHOWN)

    def _repr_html_(self) -> str:
        rows, has_more = self._first(_SHOWN)
        names = zip(self.columns, self.types)
        head = "".join(f"<th title={html.escape(kind)!r}>{html.escape(name)}</th>" for name, kind in names)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape('NULL' if cell is None else str(cell))}</td>" for cell in row) + "</tr>"
            for row in rows.fetch()
        )
        more = f"<p>the first {_SHOWN} rows; there are more</p>" if has_more else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"

    def _read(self) -> _native.Rows:
        """All rows, which are there."""
        with bar() as progress:
            return self._statement.rows(progress).read()

    def _fetch(self, count: int | None) -> list[tuple]:
        """The next rows; after an error the query begins anew."""
        with bar() as progress:
            if self._rows is None:
                self._rows = self._statement.rows(progress)
            try:
                return self._rows.fetch(count)
            except BaseException:
                self._rows = None
                raise

    def _first(self, count: int) -> tuple[_native.Rows, bool]:
        """The first rows, and whether there are more."""
        with bar() as progress:
            rows = self._statement.rows(progress)
            return rows.read(count), bool(rows.fetch(1))

    def _text(self, count: int) -> str:
        if not self.columns:
            return "(no rows)"
        rows, has_more = self._first(count)
        text = rows.text(shutil.get_terminal_size((120, 24)).columns)
        return f"{text.rstrip()}\n(the first {count} rows; there are more)" if has_more else text.rstrip()

    def _copy(self, path: str | os.PathLike[str], kind: str) -> None:
        place = os.fspath(path).replace("'", "''")
        if self._statement.is_done:
            copy = f"COPY (SELECT * FROM rows) TO '{place}' STORED AS {kind}"
            self._statement.derive(copy, copy, self._of_rows)
        else:
            sql, text = (
                f"COPY ({query}\n) TO '{place}' STORED AS {kind}" for query in (self._statement.sql, self._statement.text)
            )
            self._statement.derive(sql, text)

    def _of_rows(self, name: str) -> _native.Rows | None:
        """The rows that are kept, as a table."""
        return self._statement.rows() if name == "rows" else None
