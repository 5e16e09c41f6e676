"""Tables of the comparison: Parquet files with the values that engines get wrong.

All tables have columns of one catalogue, so that any two can be joined and united. The files differ in what their
writer decides: several row groups, several files in a folder, dictionary pages or plain ones, statistics of all
columns, of some or of none, values too long for a bound, and `sorting_columns`, which tell an order inside a row group
and no more.
"""

import datetime as dt
import decimal
import math
import os

import pyarrow as pa
import pyarrow.parquet as pq

D = decimal.Decimal
UTC = dt.timezone.utc

WORDS = ["", " ", "a", "A", "ab", "abc", "abd", "b", "B", "ba", "banana", "Zebra", "x_y", "100%", "é", "éa", "Ünï"]
WORDS += ["日本", "日本語", "🦀", "🦀 crab", "it''s", "0", "12", "-7", "NULL", "null", "a,b", "tab\there"]
WORDS += ["longer than twelve bytes", "longer than twelve bytez"]
COLOURS = ["red", "green", "blue", "", "größe"]
EIGHTHS = [0.0, -0.0, 0.125, -0.125, 0.5, 1.0, -1.0, 1.5, 2.25, -2.25, 3.0, 10.0, 99.875, -1000.5, 65536.0]
SPECIAL = [math.nan, math.inf, -math.inf]
EXTREMES = [1.7976931348623157e308, -1.7976931348623157e308, 5e-324, 2.2250738585072014e-308]
EXTREMES += [1e300, -1e-300, 0.1, 1 / 3]
PRICES = ["0.00", "0.01", "-0.01", "4.07", "4.70", "1.10", "19.99", "100.00", "-19.99"]
PRICES += ["9999999999.99", "-9999999999.99"]
SMALL = ["0.000", "0.001", "-0.001", "1.500", "2.500", "99.999", "-99.999", "12.345"]
WIDE = [
    "0",
    "1",
    "-1",
    "9999999999999999999999999999.9999999999",
    "-9999999999999999999999999999.9999999999",
    "0.0000000001",
    "12345678901234567890.1234567890",
]
# fmt: off
DATES = ["2020-01-01", "2020-02-29", "2019-12-31", "2021-06-15", "1970-01-01", "1969-12-31", "1900-03-01", "2038-01-19"]
EDGE_DATES = ["0001-01-01", "9999-12-31", "1582-10-15"]
MOMENTS = ["2020-01-01 00:00:00", "2020-02-29 23:59:59.999999", "2021-03-28 01:30:00", "2021-03-28 02:30:00",
           "2021-10-31 01:30:00", "2021-10-31 00:30:00", "1970-01-01 00:00:00", "1969-12-31 23:59:59.5",
           "2021-06-15 12:34:56.789", "1999-12-31 23:00:00"]
TIMES = ["00:00:00", "23:59:59.999999", "12:00:00", "01:02:03.456", "10:00:00"]


# How often the column `z` is 0, by the rows' numbers in `id`; it is never NULL.
ZERO_EVERY = 50

# The catalogue: name, Arrow type, and the kind that expressions know.
COLUMNS = [
    ("id", pa.int32(), "int"), ("k", pa.int32(), "int"), ("n", pa.int64(), "int"), ("g", pa.int16(), "int"),
    ("i8", pa.int8(), "wide"), ("i16", pa.int16(), "wide"), ("i32", pa.int32(), "wide"), ("i64", pa.int64(), "wide"),
    ("u8", pa.uint8(), "wide"), ("u16", pa.uint16(), "wide"), ("u32", pa.uint32(), "wide"),
    ("u64", pa.uint64(), "wide"), ("d", pa.float64(), "float"), ("f", pa.float32(), "float"),
    ("x", pa.float64(), "extreme"), ("p", pa.decimal128(12, 2), "decimal"), ("q", pa.decimal128(5, 3), "decimal"),
    ("w", pa.decimal128(38, 10), "huge"), ("s", pa.string(), "text"), ("c", pa.string(), "text"),
    ("b", pa.bool_(), "bool"), ("dt", pa.date32(), "date"), ("ts", pa.timestamp("us"), "timestamp"),
    ("tz", pa.timestamp("us", "UTC"), "instant"), ("tm", pa.time64("us"), "time"), ("v", pa.int32(), "int"),
    ("z", pa.int32(), "int"),
]
# fmt: on


def width(arrow_type):
    """Least and largest value of an integer type."""
    bits = arrow_type.bit_width
    if pa.types.is_signed_integer(arrow_type):
        return -(1 << bits - 1), (1 << bits - 1) - 1
    return 0, (1 << bits) - 1


def moment(text):
    """A timestamp without a zone."""
    return dt.datetime.fromisoformat(text)


def value(rng, name, arrow_type, row):
    """One value of a column; None is NULL."""
    if name == "id":
        return row
    if name == "z":
        return rng.choice([1, 2, -3, 7]) if row % ZERO_EVERY else 0
    if name == "v" or rng.random() < 0.12:
        return None
    if name in ("k", "g"):
        return rng.randrange(10) if name == "k" else rng.randrange(-3, 4)
    if name == "n":
        return rng.randrange(-1000, 1001)
    if pa.types.is_integer(arrow_type):
        least, most = width(arrow_type)
        common = [least, least + 1, most, most - 1, 0, 1, min(100, most), max(-1, least)]
        return rng.choice(common + [rng.randint(least, most)])
    if name in ("d", "f"):
        return rng.choice(SPECIAL) if rng.random() < 0.15 else rng.choice(EIGHTHS + [rng.randrange(-800, 800) / 8])
    if name == "x":
        return rng.choice(EXTREMES + SPECIAL + EIGHTHS)
    if name == "p":
        return D(rng.choice(PRICES)) if rng.random() < 0.5 else D(rng.randrange(-200000, 200000)) / 100
    if name in ("q", "w"):
        return D(rng.choice(SMALL if name == "q" else WIDE))
    if name in ("s", "c"):
        return rng.choice(WORDS if name == "s" else COLOURS).replace("''", "'")
    if name == "b":
        return rng.random() < 0.5
    if name == "dt":
        edge = rng.random() < 0.05
        return dt.date.fromisoformat(rng.choice(EDGE_DATES if edge else DATES))
    if name in ("ts", "tz"):
        when = moment(rng.choice(MOMENTS)) + dt.timedelta(seconds=rng.choice([0, 0, 1, 3600]))
        return when.replace(tzinfo=UTC) if name == "tz" else when
    return dt.time.fromisoformat(rng.choice(TIMES))


def column(rng, name, arrow_type, first, rows):
    """A column of an Arrow table."""
    values = [value(rng, name, arrow_type, first + row) for row in range(rows)]
    if name in ("p", "q", "w"):
        values = [None if v is None else v.quantize(D(1).scaleb(-arrow_type.scale), context=WIDEST) for v in values]
    return pa.array(values, arrow_type)


WIDEST = decimal.Context(prec=60)

# Name, rows of each file, rows of a row group, the column that rows are sorted by (pruning finds its bounds narrow).
TABLES = [
    ("t", [300, 150, 200], 64, None),
    ("r", [260], 50, "d"),
    ("m", [120, 80], 40, "n"),
    ("tiny", [25], 25, None),
    ("none", [0], 10, None),
    ("grouped", [160, 90], 40, None),
    ("ranged", [150, 100], 40, None),
    ("worded", [130], 30, None),
    ("long", [200], 40, None),
]
# Tables whose files tell an order, with its column and direction: of the first, rows are sorted in each row group
# alone; of the second, from the first file to the last; of the third, in its one file.
ORDERS = {
    "grouped": ("n", " ASC NULLS LAST"),
    "ranged": ("n", " ASC NULLS LAST"),
    "worded": ("s", " DESC NULLS FIRST"),
}
SORTED = list(ORDERS)
# The table with row groups without bounds of texts, and without statistics of some columns.
UNBOUND = "long"
WITHOUT_STATISTICS = ["k", "d", "dt"]
# A character behind those of all other texts, and how many make a text too long.
LAST, LONG = "\U0001faff", 1300


def sorted_rows(table, name):
    """Rows by the order that their file tells."""
    column, direction = ORDERS[name]
    values = table[column].to_pylist()
    known = sorted((row for row, value in enumerate(values) if value is not None), key=values.__getitem__)
    unknown = [row for row, value in enumerate(values) if value is None]
    known = known[::-1] if "DESC" in direction else known
    return table.take(unknown + known if "NULLS FIRST" in direction else known + unknown)


def in_order(table, name, group):
    """Rows as the table's files hold them."""
    if name == "grouped":
        groups = [sorted_rows(table.slice(first, group), name) for first in range(0, table.num_rows, group)]
        return pa.concat_tables(groups)
    return sorted_rows(table, name) if name in ORDERS else table


def lengthened(table, group):
    """The table with texts in every second row group that are too long for a bound, and sort behind all others."""
    for name in ("s", "c"):
        texts = table[name].to_pylist()
        for row, text in enumerate(texts):
            if row // group % 2 and text is not None and row % 3 == 0:
                texts[row] = LAST * LONG + text
        table = table.set_column(table.schema.get_field_index(name), name, pa.array(texts, pa.string()))
    return table


def options(name, number):
    """What the writer of a file decides."""
    found = {"use_dictionary": number != 1, "write_statistics": number != 2, "write_page_index": number == 0}
    if name == UNBOUND:
        found["write_statistics"] = [column for column, _, _ in COLUMNS if column not in WITHOUT_STATISTICS]
    if name in ORDERS:
        column, direction = ORDERS[name]
        place = next(place for place, (other, _, _) in enumerate(COLUMNS) if other == column)
        order = pq.SortingColumn(place, "DESC" in direction, "NULLS FIRST" in direction)
        found["sorting_columns"] = [order]
    return found


def write(rng, folder):
    """Writes all tables below a folder; gives name and location of each, a folder where there are several files."""
    places = []
    schema = pa.schema([pa.field(column_name, kind) for column_name, kind, _ in COLUMNS])
    for name, files, group, order in TABLES:
        place = os.path.join(folder, name)
        os.makedirs(place, exist_ok=True)
        first, parts = 0 if name != "m" else 100, []
        for rows in files:
            arrays = [column(rng, column_name, kind, first, rows) for column_name, kind, _ in COLUMNS]
            first += rows
            part = pa.table(arrays, schema)
            parts.append(part.sort_by(order) if order else part)
        if name == "ranged":
            whole = sorted_rows(pa.concat_tables(parts), name)
            parts = [whole.slice(0, files[0]), whole.slice(files[0])]
        for number, part in enumerate(parts):
            part = lengthened(part, group) if name == UNBOUND else in_order(part, name, group)
            path = os.path.join(place, f"{number}.parquet")
            pq.write_table(part, path, row_group_size=group, data_page_size=400, **options(name, number))
        places.append((name, place if len(files) > 1 else path))
    return places
