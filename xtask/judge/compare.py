"""Results in one form, and whether two are equal.

Numbers compare as numbers whatever their types, NaN equals NaN, dates and timestamps are instants in nanoseconds,
intervals and durations are lengths (a month is 30 days).
Two floats may differ by a relative 1e-9; a float and a decimal (averages, quotients) also by one unit of the decimal's
last place.
"""

import datetime as dt
import decimal
import math
import uuid
from collections import Counter

import pyarrow as pa

NAN = "NaN of a float"
EPOCH = dt.datetime(1970, 1, 1)
NANOSECONDS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
TOLERANCE = 1e-9


DAY = 86_400 * 10**9


def length(value):
    """An interval, by its length in nanoseconds."""
    if isinstance(value, dt.timedelta):
        return "length", value // dt.timedelta(microseconds=1) * 1000
    return "length", (value.months * 30 + value.days) * DAY + value.nanoseconds


class Instant:
    """A date or a timestamp in nanoseconds since 1970; equal to nothing else."""

    __slots__ = ("of",)

    def __init__(self, of):
        self.of = of

    def __eq__(self, other):
        return isinstance(other, Instant) and self.of == other.of

    def __hash__(self):
        return hash(("instant", self.of))

    def __repr__(self):
        try:
            return str(EPOCH + dt.timedelta(microseconds=self.of / 1000))
        except OverflowError:
            return f"{self.of} ns"


def of_duckdb(value):
    """A value of DuckDB's Python client in the common form."""
    if isinstance(value, float):
        return NAN if math.isnan(value) else value
    if isinstance(value, dt.datetime):
        value = value.astimezone(dt.timezone.utc).replace(tzinfo=None) if value.tzinfo else value
        return Instant((value - EPOCH) // dt.timedelta(microseconds=1) * 1000)
    if isinstance(value, dt.date):
        return Instant((value - EPOCH.date()).days * DAY)
    if isinstance(value, dt.time):
        micros = ((value.hour * 60 + value.minute) * 60 + value.second) * 10**6 + value.microsecond
        return ("time", micros * 1000)
    if isinstance(value, list):
        return tuple(of_duckdb(item) for item in value)
    if isinstance(value, dict):
        return tuple((name, of_duckdb(item)) for name, item in value.items())
    if isinstance(value, uuid.UUID):
        return str(value)
    return length(value) if isinstance(value, dt.timedelta) else value


def of_arrow(column):
    """Values of an Arrow column in the common form."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        column = column.cast(kind.value_type)
        kind = kind.value_type
    if pa.types.is_timestamp(kind) or pa.types.is_time(kind):
        raw = column.cast(pa.int64() if pa.types.is_timestamp(kind) or pa.types.is_time64(kind) else pa.int32())
        scaled = [None if v is None else v * NANOSECONDS[kind.unit] for v in raw.to_pylist()]
        wrap = Instant if pa.types.is_timestamp(kind) else lambda v: ("time", v)
        return [None if v is None else wrap(v) for v in scaled]
    if pa.types.is_date32(kind):
        return [None if v is None else Instant(v * DAY) for v in column.cast(pa.int32()).to_pylist()]
    if pa.types.is_interval(kind):
        return [None if v is None else length(v) for v in column.to_pylist()]
    if pa.types.is_duration(kind):
        raw = column.cast(pa.int64()).to_pylist()
        return [None if v is None else ("length", v * NANOSECONDS[kind.unit]) for v in raw]
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return [None if items.as_py() is None else tuple(of_arrow(items.values)) for items in column]
    if pa.types.is_struct(kind):
        members = [
            of_arrow(
                column.combine_chunks().field(place) if isinstance(column, pa.ChunkedArray) else column.field(place)
            )
            for place in range(kind.num_fields)
        ]
        names = [field.name for field in kind]
        rows = zip(*members) if members else [() for _ in column]
        return [tuple(zip(names, row)) if there.as_py() is not None else None for row, there in zip(rows, column)]
    if pa.types.is_floating(kind):
        return [NAN if v is not None and math.isnan(v) else v for v in column.to_pylist()]
    return column.to_pylist()


def alike(ours, theirs):
    """Whether two values are equal."""
    if ours is None or theirs is None:
        return ours is theirs
    if isinstance(ours, tuple) and isinstance(theirs, tuple):
        return rows_alike(ours, theirs)
    numbers = (int, float, decimal.Decimal)
    if not isinstance(ours, numbers) or not isinstance(theirs, numbers):
        return type(ours) is type(theirs) and ours == theirs
    if isinstance(ours, bool) != isinstance(theirs, bool):
        return False
    if ours == theirs:
        return True
    if not isinstance(ours, float) and not isinstance(theirs, float):
        return False
    one, other = float(ours), float(theirs)
    if math.isinf(one) or math.isinf(other):
        return one == other
    places = [-value.as_tuple().exponent for value in (ours, theirs) if isinstance(value, decimal.Decimal)]
    slack = max((10.0**-place for place in places), default=0.0)
    return abs(one - other) <= max(TOLERANCE * max(abs(one), abs(other)), slack)


def rows_alike(ours, theirs):
    """Whether two rows are equal."""
    return len(ours) == len(theirs) and all(alike(one, other) for one, other in zip(ours, theirs))


def difference(ours, theirs, ordered):
    """Rows of ours and of theirs that the other lacks, as a pair of lists; none if results are equal."""
    if ordered:
        pairs = [(one, other) for one, other in zip(ours, theirs) if not rows_alike(one, other)]
        left = [one for one, _ in pairs] + ours[len(theirs) :]
        right = [other for _, other in pairs] + theirs[len(ours) :]
        return (left, right) if left or right else None
    one, other = Counter(map(keyed, ours)), Counter(map(keyed, theirs))
    left, right = list((one - other).elements()), list((other - one).elements())
    left, right = [row for row, _ in left], [row for row, _ in right]
    unmatched = []
    for row in left:
        match = next((index for index, candidate in enumerate(right) if rows_alike(row, candidate)), None)
        if match is None:
            unmatched.append(row)
        else:
            right.pop(match)
    return (unmatched, right) if unmatched or right else None


def keyed(row):
    """A row with what keeps true and 1 apart, as Python does not."""
    return row, tuple(isinstance(value, bool) for value in row)
