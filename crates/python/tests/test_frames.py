"""Data frames and Arrow tables as tables, and results as such."""

import datetime
import decimal
import threading

import duckdb
import pandas
import polars
import pyarrow
import pyarrow.dataset
import pyarrow.parquet
import pytest

import warpcube

ROWS = [{"a": 1, "b": "x"}, {"a": 2, "b": None}, {"a": 3, "b": "z"}]
ROWS_OF_ARROW = pyarrow.Table.from_pylist(ROWS)


class Once:
    """An object with nothing but an Arrow stream."""

    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


MAKERS = {
    "pandas": lambda: pandas.DataFrame(ROWS, index=[7, 8, 9]),
    "polars": lambda: polars.DataFrame(ROWS),
    "polars lazy": lambda: polars.DataFrame(ROWS).lazy(),
    "pyarrow": lambda: ROWS_OF_ARROW,
    "record batch": lambda: ROWS_OF_ARROW.to_batches()[0],
    "reader": lambda: ROWS_OF_ARROW.to_reader(),
    "dataset": lambda: pyarrow.dataset.dataset(ROWS_OF_ARROW),
    "capsule": lambda: Once(ROWS_OF_ARROW),
    "duckdb": lambda: duckdb.sql("VALUES (1, 'x'), (2, NULL), (3, 'z')").project("col0 AS a, col1 AS b"),
}


@pytest.mark.parametrize("kind", MAKERS)
def test_variables_are_tables(db, kind):
    frame = MAKERS[kind]()
    found = db.sql("SELECT a, b FROM frame ORDER BY a")
    del frame
    for _ in range(2):
        assert found.arrow().to_pylist() == ROWS
    with pytest.raises(warpcube.ProgrammingError):
        db.sql("FROM frame")


def test_names_are_looked_for_in_order(db, tmp_path, monkeypatch):
    assert db.sql("SELECT count(*) FROM Rows_Of_Arrow").fetchall() == [(3,)], "of the module, by another case"
    frame = pandas.DataFrame({"n": [1]})
    assert db.sql("FROM frame").fetchall() == [(1,)]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "frame").mkdir()
    assert db.sql("FROM frame").fetchall() == [(1,)], "a folder of the name is no table then"
    db.sql("CREATE TABLE frame AS VALUES (2)")
    assert db.sql("FROM frame").fetchall() == [(2,)], "tables of the catalog come first"
    db.sql("DROP TABLE frame")
    frame = pandas.DataFrame({"n": [3]})
    assert db.sql("FROM frame").fetchall() == [(3,)], "plans do not outlive the frame they were made for"
    number = 5
    with pytest.raises(warpcube.ProgrammingError):
        db.sql("FROM number")
    assert number == 5


def test_columns_have_names_in_any_case(db):
    frame = pandas.DataFrame({"VendorID": [1, 2, 2], "Customer Name": ["a", "b", "c"], "Date": [3, 4, 5]})
    found = db.sql('SELECT vendorid, max(date) AS date, min("Customer Name") AS who FROM frame GROUP BY VendorId')
    assert found.columns == ["VendorID", "date", "who"]
    assert sorted(found.fetchall()) == [(1, 3, "a"), (2, 5, "b")]
    assert db.sql("SELECT count(*) FROM frame WHERE VendorID = $1", [2]).fetchall() == [(2,)]
    assert len(frame) == 3


def test_names_that_differ_by_case_alone(db):
    frame, FRAME = pandas.DataFrame({"n": [1]}), pandas.DataFrame({"n": [2]})  # noqa: N806
    assert (db.sql("FROM frame").fetchall(), db.sql("FROM FRAME").fetchall()) == ([(1,)], [(2,)])
    with pytest.raises(warpcube.Error, match="by case alone"):
        db.sql("FROM Frame")
    assert len(frame) == len(FRAME)


def test_frames_with_types_that_streams_have_not(db):
    frame = polars.DataFrame({"a": [1, 2], "n": [None, None], "l": [[None], []]})
    assert db.sql("SELECT a, n, l FROM frame ORDER BY a").fetchall() == [(1, None, [None]), (2, None, [])]
    frame = polars.DataFrame({"a": []})
    assert db.sql("SELECT count(*) FROM frame").fetchall() == [(0,)]
    frame = db.sql("SELECT NULL AS n").pl()
    assert db.sql("SELECT n FROM frame").fetchall() == [(None,)]
    frame = polars.DataFrame({"a": polars.Series([2**80], dtype=polars.Int128)})
    assert db.sql("SELECT a + 1 FROM frame").fetchall() == [(2**80 + 1,)]


def test_relations_are_tables_of_others(db):
    first = db.sql("SELECT value AS n FROM range(10)")
    second = db.sql("SELECT n * 2 AS m FROM first WHERE n > 6")
    assert db.sql("SELECT sum(m) FROM second JOIN first ON m = n + 5").fetchall() == [(14,)]
    assert warpcube.sql("SELECT sum(m) FROM second").fetchall() == [(48,)], "of another database"


def test_frames_can_become_tables_and_are_not_written(db):
    frame = polars.DataFrame({"n": [1, 2]})
    db.sql("CREATE TABLE kept AS SELECT * FROM frame")
    db.sql("CREATE TABLE frame AS SELECT n + 1 AS n FROM frame")
    pairs = db.sql("SELECT frame.n, kept.n FROM frame, kept ORDER BY 1, 2").fetchall()
    assert pairs == [(2, 1), (2, 2), (3, 1), (3, 2)]
    other = polars.DataFrame({"n": [1, 2]})
    with pytest.raises(warpcube.NotSupportedError):
        db.sql("CREATE VIEW v AS SELECT * FROM other")
    writes = ["INSERT INTO other VALUES (3)", "DELETE FROM other", "UPDATE other SET n = 5", "TRUNCATE other"]
    alters = ["ALTER TABLE other ADD COLUMN x INT", "ALTER TABLE other RENAME TO another"]
    for write in writes + alters:
        with pytest.raises(warpcube.NotSupportedError, match="no table"):
            db.sql(write)
    with pytest.raises(warpcube.Error):
        db.sql("DROP TABLE other")
    assert [row[0] for row in db.sql("SHOW TABLES").fetchall() if "other" in str(row)] == []
    assert db.sql("FROM other").fetchall() == [(1,), (2,)] and other["n"].to_list() == [1, 2]


def test_frames_are_registered(db):
    db.register("Sales", pandas.DataFrame({"n": [1, 2]}))
    assert db.sql("SELECT sum(n) FROM Sales").fetchall() == [(3,)]
    db.register("sales", ROWS_OF_ARROW)
    assert db.sql("SELECT sum(a) FROM sales").fetchall() == [(6,)]
    with pytest.raises(warpcube.ProgrammingError):
        db.cursor().sql("FROM sales")
    db.unregister("sales")
    with pytest.raises(warpcube.ProgrammingError):
        db.sql("FROM sales")
    with pytest.raises(warpcube.InterfaceError):
        db.unregister("sales")
    with pytest.raises(TypeError):
        db.register("n", 5)


def test_results_are_frames(db):
    rows = db.sql("SELECT value AS n, value / 2 AS h, 'x' || value AS t FROM range(3) ORDER BY n")
    assert rows.df().to_dict("list") == {"n": [0, 1, 2], "h": [0, 0, 1], "t": ["x0", "x1", "x2"]}
    assert rows.pl().to_dict(as_series=False) == rows.arrow().to_pydict() == rows.df().to_dict("list")
    assert polars.DataFrame(rows).shape == pyarrow.table(rows).shape == (3, 3)
    assert duckdb.sql("SELECT sum(n) FROM rows").fetchall() == [(3,)]


TYPES = pyarrow.table(
    {
        "bool": [True, None],
        "i8": pyarrow.array([-1, None], pyarrow.int8()),
        "u64": pyarrow.array([2**64 - 1, None], pyarrow.uint64()),
        "f16": pyarrow.array([1.5, None], pyarrow.float16()),
        "f32": pyarrow.array([0.5, None], pyarrow.float32()),
        "dec": pyarrow.array([decimal.Decimal("1.25"), None], pyarrow.decimal128(10, 2)),
        "text": pyarrow.array(["ä", None], pyarrow.large_string()),
        "view": pyarrow.array(["a longer text than twelve", None], pyarrow.string_view()),
        "dict": pyarrow.array(["x", None]).dictionary_encode(),
        "bytes": pyarrow.array([b"\x00", None], pyarrow.binary(1)),
        "date": pyarrow.array([datetime.date(2024, 1, 2), None], pyarrow.date64()),
        "ms": pyarrow.array([datetime.datetime(2024, 1, 2, 3), None], pyarrow.timestamp("ms")),
        "zone": pyarrow.array([datetime.datetime(2024, 1, 2, 3), None], pyarrow.timestamp("us", "UTC")),
        "time": pyarrow.array([datetime.time(1, 2, 3), None], pyarrow.time32("s")),
        "list": pyarrow.array([[1, None], None], pyarrow.large_list(pyarrow.int16())),
        "struct": pyarrow.array([{"a": 1}, None], pyarrow.struct({"a": pyarrow.int64()})),
        "null": pyarrow.nulls(2),
    }
)


@pytest.mark.parametrize("name", TYPES.column_names)
def test_types_of_arrow_come_through(db, name):
    column = TYPES.select([name])
    plain = column.to_pydict()[name]
    assert db.sql(f'SELECT "{name}" FROM column').arrow().to_pydict()[name] == plain
    counted = db.sql(f'SELECT "{name}", count(*) FROM column GROUP BY ALL ORDER BY 1 NULLS LAST').fetchall()
    assert len(counted) == (1 if name == "null" else 2) and counted[-1][0] is None
    if name not in ("null", "zone"):
        assert counted[0][0] == plain[0]


def test_streams_give_first_rows_before_the_end(db):
    rows = db.sql("SELECT value, repeat('x', 1000) FROM range(100000000)")
    reader = rows.reader()
    assert reader.read_next_batch().num_rows > 0
    reader.close()


def test_rows_are_not_copied_on_their_way_out(db):
    values = pyarrow.array(range(100_000))
    rows = pyarrow.table({"n": values})
    out = db.sql("SELECT n FROM rows").arrow().column("n").chunk(0)
    within = range(values.buffers()[1].address, values.buffers()[1].address + values.buffers()[1].size)
    assert out.buffers()[1].address in within


def test_frames_in_threads(db):
    wrong = []

    def ask(number):
        frame = pandas.DataFrame({"n": [number] * 100})
        for _ in range(5):
            if db.sql("SELECT sum(n) FROM frame").fetchall() != [(number * 100,)]:
                wrong.append(number)
        assert len(frame) == 100

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(16)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert wrong == []
