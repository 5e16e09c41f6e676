"""Values of Python as constants of SQL."""

from __future__ import annotations

import datetime
import decimal
import math
import uuid
from typing import Any

from ._engine import native as _native
from ._errors import ProgrammingError


def literal(value: Any) -> str:
    """The constant of a value; parentheses keep it whole wherever it stands."""
    if value is None or _is_missing(value):
        return "NULL"
    if type(value).__module__.partition(".")[0] == "numpy" and hasattr(value, "item"):
        item = value.item()
        # Python has no times of nanoseconds: these are their number.
        if isinstance(item, int) and type(value).__name__ in ("datetime64", "timedelta64"):
            return _of_nanoseconds(value)
        value = item
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    # A subclass may have a text of its own.
    if isinstance(value, int):
        text = int.__repr__(value)
        return text if value >= 0 else f"({text})"
    if isinstance(value, float):
        if math.isfinite(value):
            return f"CAST('{float.__repr__(value)}' AS DOUBLE)"
        return f"CAST('{'NaN' if math.isnan(value) else 'Infinity' if value > 0 else '-Infinity'}' AS DOUBLE)"
    if isinstance(value, decimal.Decimal):
        return _decimal(value)
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return f"X'{bytes(value).hex()}'"
    if isinstance(value, datetime.datetime):
        if value.tzinfo is not None:
            return f"TIMESTAMPTZ '{value.astimezone(datetime.timezone.utc).isoformat(' ')}'"
        kind = "TIMESTAMP_NS" if getattr(value, "nanosecond", 0) else "TIMESTAMP"
        return f"CAST('{value.isoformat(' ')}' AS {kind})"
    if isinstance(value, datetime.date):
        return f"DATE '{value.isoformat()}'"
    if isinstance(value, datetime.time):
        if value.tzinfo is not None:
            raise TypeError("a time of day with a zone cannot be a parameter of a statement")
        return f"TIME '{value.isoformat()}'"
    if isinstance(value, datetime.timedelta):
        return f"INTERVAL '{value.days} days {value.seconds} seconds {value.microseconds} microseconds'"
    if isinstance(value, uuid.UUID):
        return f"CAST('{value}' AS UUID)"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(literal(item) for item in value) + "]"
    if isinstance(value, dict):
        fields = (f"{_text(str(name))}: {literal(item)}" for name, item in value.items())
        return "{" + ", ".join(fields) + "}"
    raise TypeError(f"a value of {type(value).__name__} cannot be a parameter of a statement")


def literals(values: Any) -> list[str] | dict[str, str]:
    """The constants of parameters: of a list by their places, of a dict by their names."""
    if isinstance(values, dict):
        return {str(name): literal(value) for name, value in values.items()}
    if isinstance(values, (list, tuple)):
        return [literal(value) for value in values]
    raise TypeError("parameters are a list, a tuple or a dict")


def bind(statement: str, values: Any) -> str:
    """The statement with constants in place of its parameters."""
    try:
        return _native.bind(statement, literals(values))
    except ValueError as error:
        raise ProgrammingError(str(error)) from None


def _is_missing(value: Any) -> bool:
    """Whether a value is pandas' NaT or NA, or numpy's NaT."""
    name = type(value).__name__
    return name in ("NaTType", "NAType") or name in ("datetime64", "timedelta64") and str(value) == "NaT"


def _of_nanoseconds(value: Any) -> str:
    if type(value).__name__ == "datetime64":
        return f"CAST('{value}' AS TIMESTAMP_NS)"
    seconds, rest = divmod(abs(int(value.astype("timedelta64[ns]").item())), 10**9)
    sign = "-" if value.item() < 0 else ""
    return f"INTERVAL '{sign}{seconds}.{rest:09} seconds'"


def _text(value: str) -> str:
    return "'" + str.__str__(value).replace("'", "''") + "'"


def _decimal(value: decimal.Decimal) -> str:
    if not value.is_finite():
        raise TypeError(f"{value} is no decimal of SQL")
    text = f"{value:f}"
    digits = len(text.lstrip("-").replace(".", "").lstrip("0"))
    scale = len(text.partition(".")[2])
    # A number without a point would be an integer.
    return f"CAST('{text}' AS DECIMAL({max(digits, scale, 1)}, {scale}))"
