"""Statements, parameters, values and errors."""

import datetime
import decimal
import enum
import threading
import time
import uuid
import zoneinfo

import numpy
import pandas
import pytest

import warpcube


def test_queries_run_when_they_are_read_and_each_time_anew(db):
    db.sql("CREATE TABLE t AS VALUES (1), (2)")
    count = db.sql("SELECT count(*) AS n, sum(column1) AS s FROM t")
    assert (count.columns, count.types) == (["n", "s"], ["BIGINT", "BIGINT"])
    db.sql("INSERT INTO t VALUES (3)")
    assert count.arrow().to_pylist() == [{"n": 3, "s": 6}]
    db.sql("INSERT INTO t VALUES (4)")
    assert count.fetchall() == [(4, 10)] and count.fetchall() == []
    assert list(count) == [(4, 10)]


def test_statements_with_effects_run_once_at_the_call(db):
    db.sql("CREATE TABLE t (a INT)")
    told = db.sql("INSERT INTO t VALUES (1), (2)")
    returned = db.sql("UPDATE t SET a = a + 10 RETURNING a")
    written = db.sql("WITH n AS (SELECT 5 AS a) INSERT INTO t SELECT a FROM n")
    for _ in range(2):
        assert told.arrow().to_pylist() == [{"count": 2}]
        assert sorted(returned.arrow().column("a").to_pylist()) == [11, 12]
        assert written.arrow().to_pylist() == [{"count": 1}]
    assert db.sql("FROM t ORDER BY a").fetchall() == [(5,), (11,), (12,)]


def test_comments_and_names_make_no_statement_one_with_effects(db):
    db.sql("CREATE TABLE t (a INT)")
    count = db.sql('-- insert\nWITH "into" AS (FROM t) SELECT count(*) FROM "into"')
    added = db.sql("/* SELECT */ PREPARE p AS INSERT INTO t VALUES (1)"), db.sql("EXECUTE p")
    assert (added[1].fetchall(), count.fetchall()) == ([(1,)], [(1,)])
    db.sql("SELECT a INTO u FROM t")
    assert db.sql("TABLE u").fetchall() == [(1,)]


def test_several_statements_give_the_last_ones_rows(db):
    rows = db.sql("CREATE TABLE t AS VALUES (1); INSERT INTO t VALUES (2); -- and\nSELECT sum(column1) FROM t;")
    assert rows.fetchall() == [(3,)]
    with pytest.raises(warpcube.InterfaceError):
        db.sql("  -- nothing")


def test_rows_come_one_by_one(db):
    rows = db.sql("SELECT * FROM range(5)")
    assert (rows.fetchone(), rows.fetchmany(2)) == ((0,), [(1,), (2,)])
    assert (rows.fetchall(), rows.fetchone()) == ([(3,), (4,)], None)


VALUES = [
    True,
    -7,
    2**62,
    1.5,
    -0.1,
    float("inf"),
    "it's -- $1 ?",
    "",
    b"\x00\xff",
    decimal.Decimal("-12.340"),
    decimal.Decimal("0.000001"),
    datetime.date(2024, 2, 29),
    datetime.datetime(2024, 2, 29, 12, 30, 1, 250),
    datetime.datetime(2024, 2, 29, 12, 30, tzinfo=datetime.timezone.utc),
    datetime.time(23, 59, 59, 999999),
    datetime.timedelta(days=-2, seconds=30, microseconds=5),
    [1, None, 3],
    [["a"], []],
    {"a": 1, "b": "x"},
    None,
]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_values_come_back_as_they_went(db, value):
    (back,) = db.sql("SELECT ?", [value]).fetchone()
    assert back == value and type(back) is type(value)


def test_parameters_stand_for_constants(db):
    assert db.sql("SELECT $2 - $1, '?', \"?\" FROM (SELECT 1 AS \"?\") -- ?", [10, 3]).fetchall() == [(-7, "?", 1)]
    assert db.sql("SELECT $a || $b || $a", {"a": "x", "b": "y'"}).fetchall() == [("xy'x",)]
    assert db.sql("SELECT 5 -?", [-1]).fetchall() == [(6,)]
    assert db.sql("SELECT ?::UUID::VARCHAR", [uuid.UUID(int=5)]).fetchone() == (str(uuid.UUID(int=5)),)
    for query, params in [("SELECT ?", []), ("SELECT ?", [1, 2]), ("SELECT $a", {"b": 1}), ("SELECT $a", [1])]:
        with pytest.raises(warpcube.ProgrammingError):
            db.sql(query, params)
    assert db.sql("CREATE TABLE z (a INT); SELECT ?", [4]).fetchall() == [(4,)]


def test_parameters_are_never_more_than_values(db):
    class Color(int, enum.Enum):
        red = 1

    class Sly(int):
        def __str__(self):
            return "1) or (1 = 1"

    class Share(float, enum.Enum):
        half = 0.5

    for value in [Color.red, Sly(1), numpy.int64(1)]:
        assert db.sql("SELECT a FROM (VALUES (1), (2)) t(a) WHERE (a = ?)", [value]).fetchall() == [(1,)]
    assert db.sql("SELECT ?", [Share.half]).fetchall() == [(0.5,)]
    with pytest.raises(TypeError):
        db.sql("SELECT ?", [datetime.time(10, tzinfo=datetime.timezone.utc)])


def test_decimals_and_times_of_other_libraries(db):
    decimals = [decimal.Decimal(text) for text in ("3", "-3", "1E2", "0.50", "0")]
    halves = db.sql("SELECT ?/2, ?/2, ?/8, ?/2, ?/2", decimals).fetchone()
    assert [float(half) for half in halves] == [1.5, -1.5, 12.5, 0.25, 0]
    nanoseconds = numpy.datetime64("2024-01-01T00:00:00.123456789")
    assert db.sql("SELECT ?::VARCHAR", [nanoseconds]).fetchone() == ("2024-01-01 00:00:00.123456789",)
    assert db.sql("SELECT ?", [numpy.timedelta64(-1500, "us")]).fetchone() == (datetime.timedelta(microseconds=-1500),)
    assert db.sql("SELECT ?", [pandas.Timestamp("2024-01-01 10:00")]).fetchone() == (datetime.datetime(2024, 1, 1, 10),)
    missing = [pandas.NaT, pandas.NA, numpy.datetime64("NaT")]
    assert db.sql("SELECT ?, ?, ?", missing).fetchone() == (None, None, None)
    old = datetime.datetime(1800, 1, 1, tzinfo=zoneinfo.ZoneInfo("Europe/Berlin"))
    assert db.sql("SELECT ?", [old]).fetchone() == (old,)


def test_a_statement_that_fails_goes_on_failing_until_it_runs_anew(db):
    rows = db.sql("SELECT 10 / x FROM (VALUES (1), (0)) t(x)")
    for _ in range(2):
        with pytest.raises(warpcube.DataError):
            rows.fetchall()
    db.sql("CREATE TABLE t AS VALUES (0)")
    rows = db.sql("SELECT 10 / column1 FROM t")
    with pytest.raises(warpcube.DataError):
        rows.fetchall()
    db.sql("UPDATE t SET column1 = 5")
    assert rows.fetchall() == [(2,)]


def test_statements_with_effects_do_not_run_again(db, tmp_path):
    db.sql("CREATE TABLE t (a INT)")
    rows = db.sql("INSERT INTO t VALUES (1), (2) RETURNING a")
    with pytest.raises(warpcube.InterfaceError):
        rows.explain(analyze=True)
    rows.to_parquet(tmp_path / "a.parquet")
    assert db.sql(f"SELECT sum(a) FROM '{tmp_path}/a.parquet'").fetchall() == [(3,)]
    db.sql("SELECT 5 AS a INTO made")
    assert db.sql("SELECT (SELECT count(*) FROM t), a FROM made").fetchall() == [(2, 5)]
    with pytest.raises(TypeError):
        db.sql("SELECT ?", [object()])


def test_other_types_become_objects(db):
    row = db.sql(
        """SELECT MAP {'a': 1}, INTERVAL '1 month 2 days', TIMESTAMPTZ '2024-07-01 12:00:00+02', 1.5::FLOAT,
           1::UTINYINT, 12345678901234567890.5, [{'a': DATE '2024-01-01'}],
           arrow_cast('x', 'Dictionary(Int32, Utf8)')"""
    ).fetchone()
    assert row == (
        {"a": 1},
        datetime.timedelta(days=32),
        datetime.datetime(2024, 7, 1, 10, tzinfo=datetime.timezone.utc),
        1.5,
        1,
        decimal.Decimal("12345678901234567890.5"),
        [{"a": datetime.date(2024, 1, 1)}],
        "x",
    )


def test_instants_have_the_sessions_zone(db):
    db.sql("SET TIME ZONE 'Europe/Berlin'")
    (instant,) = db.sql("SELECT TIMESTAMPTZ '2024-07-01 12:00:00+00'").fetchone()
    assert (instant.hour, str(instant.tzinfo)) == (14, "Europe/Berlin")


def test_errors_are_classes_with_code_and_place(db):
    with pytest.raises(warpcube.ProgrammingError) as error:
        db.sql("SELECT\n  nam FROM (SELECT 1 AS name)")
    assert (error.value.code, error.value.position) == ("SQL-003", (2, 3))
    assert "did you mean 'name'" in str(error.value)
    assert str(error.value).endswith("line 2:   nam FROM (SELECT 1 AS name)\n          ^")
    for query, kind in [
        ("SELEC 1", warpcube.ProgrammingError),
        ("FROM nowhere", warpcube.ProgrammingError),
        ("SELECT 1 / (a - 1) FROM (VALUES (1)) AS t(a)", warpcube.DataError),
        ("FROM '/nowhere.parquet'", warpcube.OperationalError),
        ("SET warpcube.devise = 'cpu'", warpcube.ProgrammingError),
    ]:
        with pytest.raises(kind):
            db.sql(query).fetchall()
    with pytest.raises(warpcube.ProgrammingError):
        warpcube.connect(devise="cpu")


def test_connections_of_one_database(db):
    other = db.cursor()
    db.sql("CREATE TABLE shared AS VALUES (1)")
    db.sql("CREATE TEMP TABLE own AS VALUES (1)")
    assert other.sql("FROM shared").fetchall() == [(1,)]
    with pytest.raises(warpcube.ProgrammingError):
        other.sql("FROM own")
    other.close()
    with pytest.raises(warpcube.InterfaceError):
        other.sql("SELECT 1")


def test_a_catalog_is_kept(tmp_path):
    with warpcube.connect(tmp_path / "kept", device="cpu") as db:
        db.sql("CREATE VIEW v AS SELECT 42 AS a")
    with warpcube.connect(tmp_path / "kept", device="cpu") as db:
        assert db.sql("FROM v").fetchall() == [(42,)]


def test_many_threads_use_one_database(db):
    db.sql("CREATE TABLE t AS SELECT value AS a FROM range(10000)")
    wrong = []

    def ask(number, connection):
        for step in range(10):
            got = connection.sql("SELECT sum(a) FROM t WHERE a % ? = 0", [number + step + 1]).fetchall()
            if got != [(sum(range(0, 10000, number + step + 1)),)]:
                wrong.append((number, step, got))

    connections = [db if number % 2 else db.cursor() for number in range(32)]
    threads = [threading.Thread(target=ask, args=each) for each in enumerate(connections)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert wrong == []


def test_results_are_shown(db):
    rows = db.sql("SELECT value AS n, '<b>' AS t FROM range(60) ORDER BY n")
    assert "│  n ┆ t   │" in repr(rows) and repr(rows).endswith("(the first 50 rows; there are more)")
    page = rows._repr_html_()
    assert page.count("<tr>") == 51 and "&lt;b&gt;" in page and "there are more" in page
    assert "CPU  aggregate" in db.sql("SELECT sum(value) FROM range(10)").explain()
    assert repr(db.sql("CREATE TABLE t (a INT)")) == "(no rows)"


def test_results_are_written(db, tmp_path):
    rows = db.sql("SELECT value AS n FROM range(5) -- a comment")
    rows.to_parquet(tmp_path / "it's.parquet")
    rows.to_csv(tmp_path / "n.csv")
    assert db.sql(f"SELECT sum(n) FROM '{tmp_path}/it''s.parquet'").fetchall() == [(10,)]
    assert (tmp_path / "n.csv").read_text().split() == ["n", "0", "1", "2", "3", "4"]


def test_the_log_has_each_query_once_and_no_values_of_parameters(db):
    asked = db.sql("SELECT ? AS a", ["hidden"])
    assert asked.fetchall() == [("hidden",)]
    asked.explain()
    with pytest.raises(warpcube.Error):
        db.sql("SELECT nope")
    log = db.sql("SELECT query, rows, error, session FROM query_log() WHERE query LIKE 'SELECT %' ORDER BY id")
    assert log.fetchall() == [("SELECT ? AS a", 1, None, None), ("SELECT nope", 0, "SQL-003", None)]
    assert db.sql("SELECT count(*) FROM query_log() WHERE query LIKE '%hid' || 'den%'").fetchall() == [(0,)]


@pytest.mark.parametrize(
    "endless",
    [
        "SELECT sum(value) FROM generate_series(1, 100000000000)",
        # An operator that is in the midst of a batch of billions of rows looks at no switch.
        "SELECT count(*) FROM generate_series(1, 20000) a, generate_series(1, 100000) b WHERE a.value * b.value % 7 = 3",
    ],
)
def test_a_query_is_killed_from_another_connection(db, endless):
    errors = []

    def ask():
        try:
            db.sql(endless).fetchall()
        except warpcube.Error as error:
            errors.append(error)

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    other = db.cursor()
    until = time.monotonic() + 60
    while asking.is_alive() and time.monotonic() < until:
        listed = other.sql("SHOW QUERIES").fetchall()
        for number in [number for number, _, query, state, *_ in listed if query == endless and state == "running"]:
            try:
                other.sql(f"KILL {number}")
            except warpcube.Error as error:
                # It was planned under that number, and runs under another.
                assert str(error).startswith("SQL-017"), error
        asking.join(0.05)
    assert [str(error).split(" ")[0] for error in errors] == ["SQL-016"]
    with pytest.raises(warpcube.Error, match="SQL-017"):
        other.sql("KILL 1000000")
