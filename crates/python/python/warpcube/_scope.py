"""Variables of Python as tables."""

from __future__ import annotations

import sys
from typing import Any


class Scope:
    """The variables that a statement may name: those of a frame, then those of its module."""

    def __init__(self, depth: int) -> None:
        frame = sys._getframe(depth + 1)
        self._places = [frame.f_locals]
        if frame.f_globals is not frame.f_locals:
            self._places.append(frame.f_globals)

    def __call__(self, name: str) -> Any | None:
        """The table of a name, or None. A statement's names without quotes are lower case."""
        for variables in self._places:
            for key in [name, *(key for key in list(variables) if key != name and key.lower() == name)]:
                table = table_of(variables.get(key))
                if table is not None:
                    return table
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
        return value.collect()
    if module == "pyarrow" and hasattr(value, "to_reader") and not hasattr(value, "__arrow_c_stream__"):
        return value.to_reader()
    if module == "pyarrow" and kind.__name__ in ("Dataset", "FileSystemDataset", "InMemoryDataset", "UnionDataset"):
        return value.scanner().to_reader()
    if isinstance(value, type):
        return None
    is_table = hasattr(value, "__arrow_c_stream__") or hasattr(value, "__arrow_c_array__")
    return value if is_table and not _is_column(module, kind.__name__) else None


def _is_column(module: str, name: str) -> bool:
    """Whether an object with an Arrow stream or array is one column and no table."""
    return (module, name) in {("pyarrow", "ChunkedArray"), ("polars", "Series"), ("pandas", "Series")} or (
        module == "pyarrow" and name.endswith("Array")
    )
