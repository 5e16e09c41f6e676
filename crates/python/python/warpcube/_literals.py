"""Values of Python as constants of SQL."""

from __future__ import annotations

import datetime
import decimal
import math
import uuid
from typing import Any


def literal(value: Any) -> str:
    """The constant of a value; parentheses keep it whole wherever it stands."""
    if value is None:
        return "NULL"
    if hasattr(value, "item") and type(value).__module__.partition(".")[0] == "numpy":
        value = value.item()
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int):
        return str(value) if value >= 0 else f"({value})"
    if isinstance(value, float):
        if math.isfinite(value):
            return f"CAST('{value!r}' AS DOUBLE)"
        return f"CAST('{'NaN' if math.isnan(value) else 'Infinity' if value > 0 else '-Infinity'}' AS DOUBLE)"
    if isinstance(value, decimal.Decimal):
        return _decimal(value)
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return f"X'{bytes(value).hex()}'"
    if isinstance(value, datetime.datetime):
        kind = "TIMESTAMP" if value.tzinfo is None else "TIMESTAMPTZ"
        return f"{kind} '{value.isoformat(' ')}'"
    if isinstance(value, datetime.date):
        return f"DATE '{value.isoformat()}'"
    if isinstance(value, datetime.time):
        return f"TIME '{value.replace(tzinfo=None).isoformat()}'"
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


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _decimal(value: decimal.Decimal) -> str:
    if not value.is_finite():
        raise TypeError(f"{value} is no decimal of SQL")
    text = f"{value:f}"
    return text if not value.is_signed() else f"({text})"
