"""Values of Python and of Arrow, for connections to a server: as parameters, as tuples and as text."""

from __future__ import annotations

import datetime
import decimal
import uuid
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow

_TYPE_NAME = b"ARROW:FLIGHT:SQL:TYPE_NAME"
_CELL_MAX = 60
"""Characters of a cell of a text that are shown."""
_MONTH_DAYS = 30
"""Days of a month, as intervals are compared."""


def batch(params: Any) -> pyarrow.RecordBatch:
    """Values of parameters as a batch of one row, whose columns have the names of a dict."""
    import pyarrow

    if isinstance(params, dict):
        names, values = [f"${name}" for name in params], list(params.values())
    elif isinstance(params, (list, tuple)):
        names, values = [str(place + 1) for place in range(len(params))], list(params)
    else:
        raise TypeError("parameters are a list, a tuple or a dict")
    return pyarrow.RecordBatch.from_arrays([_array(value) for value in values], names)


def _array(value: Any) -> pyarrow.Array:
    import pyarrow

    if type(value).__module__.partition(".")[0] == "numpy" and hasattr(value, "item"):
        value = value.item()
    if isinstance(value, uuid.UUID):
        value = str(value)
    if isinstance(value, (datetime.time, datetime.datetime)) and value.tzinfo is not None:
        if isinstance(value, datetime.time):
            raise TypeError("a time of day with a zone cannot be a parameter of a statement")
        value = value.astimezone(datetime.timezone.utc)
        return pyarrow.array([value], pyarrow.timestamp("us", "UTC"))
    # A subclass may have a text of its own.
    for kind in (bool, int, float, str):
        if isinstance(value, kind):
            value = kind(value)
            break
    if isinstance(value, decimal.Decimal) and not value.is_finite():
        raise TypeError(f"{value} is no decimal of SQL")
    try:
        return pyarrow.array([value])
    except OverflowError:
        return pyarrow.array([decimal.Decimal(value)])
    except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError, pyarrow.ArrowNotImplementedError) as error:
        raise TypeError(f"a value of {type(value).__name__} cannot be a parameter of a statement: {error}") from None


def sql_type(field: pyarrow.Field) -> str:
    """The SQL type of a column, as the server names it."""
    name = (field.metadata or {}).get(_TYPE_NAME)
    return name.decode() if name else str(field.type)


def is_count(schema: pyarrow.Schema) -> bool:
    """Whether rows with these columns tell how many rows a statement has written."""
    return schema.names == ["count"] and str(schema.field(0).type) == "uint64"


def tuples(table: pyarrow.Table) -> list[tuple]:
    """The rows as tuples of Python's values."""
    columns = [_objects(column) for column in table.columns]
    return list(zip(*columns)) if columns else []


def _objects(column: pyarrow.ChunkedArray) -> list[Any]:
    import pyarrow
    from pyarrow import types

    kind = column.type
    # Python has no times of nanoseconds.
    if types.is_timestamp(kind):
        column = column.cast(pyarrow.timestamp("us", kind.tz), safe=False)
    elif types.is_duration(kind):
        column = column.cast(pyarrow.duration("us"), safe=False)
    elif types.is_time64(kind):
        column = column.cast(pyarrow.time64("us"), safe=False)
    convert = _converter(kind)
    values = column.to_pylist()
    return values if convert is None else [None if value is None else convert(value) for value in values]


def _converter(kind: pyarrow.DataType) -> Any | None:
    """What makes of PyArrow's value one as a database in the process gives it; None where it is one."""
    from pyarrow import types

    if types.is_interval(kind):
        return lambda value: datetime.timedelta(
            value.months * _MONTH_DAYS + value.days, 0, value.nanoseconds // 1000
        )
    if types.is_map(kind):
        return lambda entries: {_of(kind.key_type)(key): _of(kind.item_type)(value) for key, value in entries}
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        inner = _converter(kind.value_type)
        return inner and (lambda values: [None if value is None else inner(value) for value in values])
    if types.is_struct(kind):
        fields = {kind.field(place).name: _of(kind.field(place).type) for place in range(kind.num_fields)}
        return lambda value: {name: fields[name](item) for name, item in value.items()}
    if types.is_dictionary(kind):
        return _converter(kind.value_type)
    return None


def _of(kind: pyarrow.DataType) -> Any:
    convert = _converter(kind)
    return (lambda value: value) if convert is None else (lambda value: None if value is None else convert(value))


def text(table: pyarrow.Table, width: int | None) -> str:
    """The rows as a table of text. A cell is cut where its line would be longer than ``width`` characters."""
    names = table.column_names
    rows = [["NULL" if cell is None else str(cell) for cell in row] for row in tuples(table)]
    if len(names) == 1 and width is None:
        # The plan of EXPLAIN.
        return "\n".join(row[0] for row in rows)
    cells = [[cell.replace("\n", " ") for cell in row] for row in [names, *rows]]
    most = _CELL_MAX if width is None else max(3, width // max(1, len(names)) - 3)
    sizes = [min(most, max(len(row[at]) for row in cells)) for at in range(len(names))]
    is_number = [_is_number(field.type) for field in table.schema]

    def line(row: list[str], align: bool) -> str:
        shown = []
        for cell, size, right in zip(row, sizes, is_number):
            cell = cell if len(cell) <= size else cell[: size - 1] + "…"
            shown.append(cell.rjust(size) if right and align else cell.ljust(size))
        return "│ " + " ┆ ".join(shown) + " │"

    rule = "╞═" + "═╪═".join("═" * size for size in sizes) + "═╡"
    return "\n".join([line(cells[0], True), rule, *(line(row, True) for row in cells[1:])])


def _is_number(kind: pyarrow.DataType) -> bool:
    from pyarrow import types

    return types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)
