"""Variables of Python as tables."""

from __future__ import annotations

import re
import sys
from typing import Any

from ._errors import InterfaceError


class Scope:
    """The variables that a statement may name: those of a frame, then those of its module."""

    def __init__(self, query: str, depth: int) -> None:
        self._words = set(re.findall(r"\w+", query))
        frame = sys._getframe(depth + 1)
        self._places = [frame.f_locals]
        if frame.f_globals is not frame.f_locals:
            self._places.append(frame.f_globals)

    def __call__(self, name: str) -> Any | None:
        """The table of a name, or None. A statement's names without quotes come in lower case; of variables that differ
        by case alone, that is meant which the text of the statement has."""
        for variables in self._places:
            keys = [key for key in list(variables) if key == name or key.lower() == name]
            tables = {key: table for key in keys if (table := table_of(variables[key])) is not None}
            written = [key for key in tables if key in self._words] or list(tables)
            if len(written) > 1:
                raise InterfaceError(f"{' and '.join(written)} are variables that differ by case alone; rename one")
            if written:
                return tables[written[0]]
        return None

    def forget(self) -> None:
        """Lets the variables go: a statement that is planned has found its tables."""
        self._places = []


def table_of(value: Any) -> Any | None:
    """The object with the Arrow stream that a value is or has, or None for a value that is no table."""
    kind = type(value)
    module = kind.__module__.partition(".")[0]
    if module == "pandas" and kind.__name__ == "DataFrame":
        import pyarrow

        return pyarrow.Table.from_pandas(value, preserve_index=False)
    if module == "polars" and kind.__name__ == "LazyFrame":
        return table_of(value.collect())
    if module == "polars" and kind.__name__ == "DataFrame":
        return _of_polars(value)
    if module == "pyarrow" and hasattr(value, "to_reader") and not hasattr(value, "__arrow_c_stream__"):
        return value.to_reader()
    if module == "pyarrow" and kind.__name__ in ("Dataset", "FileSystemDataset", "InMemoryDataset", "UnionDataset"):
        return value.scanner().to_reader()
    if isinstance(value, type):
        return None
    is_table = hasattr(value, "__arrow_c_stream__") or hasattr(value, "__arrow_c_array__")
    return value if is_table and not _is_column(module, kind.__name__) else None


def _of_polars(frame: Any) -> Any:
    """The frame with types that Arrow's streams have."""
    import polars

    types = frame.schema.dtypes()
    if any(kind in (polars.Int128, polars.UInt128) for kind in types if hasattr(polars, "UInt128")):
        frame = frame.with_columns(polars.col(polars.Int128, polars.UInt128).cast(polars.Decimal(38, 0)))
    # Columns of NULLs alone come with a buffer that Arrow's form of them does not have.
    return frame.to_arrow() if any("Null" in str(kind) for kind in types) else frame


def _is_column(module: str, name: str) -> bool:
    """Whether an object with an Arrow stream or array is one column and no table."""
    return (module, name) in {("pyarrow", "ChunkedArray"), ("polars", "Series"), ("pandas", "Series")} or (
        module == "pyarrow" and name.endswith("Array")
    )
