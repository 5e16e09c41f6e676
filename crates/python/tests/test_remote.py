"""Connections to a server: the relations of a database in the process."""

import os
import pathlib
import signal
import subprocess
import sys
import textwrap
import threading
import time

import pandas
import polars
import pyarrow
import pyarrow.parquet
import pytest
from test_sql import VALUES

import warpcube
from warpcube import dbapi

QUERIES = [
    "SELECT value AS n, value / 2 AS h, 'x' || value AS t FROM range(3) ORDER BY n",
    "SELECT DATE '2024-01-02' AS d, TIMESTAMP '2024-01-02 03:04:05.5' AS t, TIMESTAMPTZ '2024-07-01 12:00:00+02' AS z",
    "SELECT 1.5::DECIMAL(10, 2) AS d, 1.5::FLOAT AS f, 1::UTINYINT AS u, true AS b, X'00ff' AS x, NULL AS n",
    "SELECT [1, NULL] AS l, {'a': 1, 'b': 'x'} AS s, MAP {'a': 1} AS m, TIME '01:02:03' AS t",
    "SELECT INTERVAL '1 month 2 days' AS i",
    "SELECT [{'a': DATE '2024-01-01'}] AS l, arrow_cast('x', 'Dictionary(Int32, Utf8)') AS d",
    "SELECT 1 AS a, 2 AS a",
    "SELECT 1 AS a WHERE false",
]


@pytest.mark.parametrize("query", QUERIES)
def test_queries_give_what_they_give_in_the_process(db, remote, query):
    here, there = db.sql(query), remote.sql(query)
    assert (there.columns, there.types, there.query) == (here.columns, here.types, here.query)
    for _ in range(2):
        assert there.fetchall() == here.fetchall()
    assert there.arrow().equals(here.arrow().cast(there.arrow().schema))
    if len(set(here.columns)) == len(here.columns):
        # Polars reads no intervals.
        assert "INTERVAL" in query or there.pl().equals(here.pl())
        pandas.testing.assert_frame_equal(there.df(), here.df())
    assert list(there) == list(here) and there.reader().read_all().num_rows == here.arrow().num_rows


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_values_come_back_as_they_went(remote, value):
    (back,) = remote.sql("SELECT ?", [value]).fetchone()
    assert back == value and type(back) is type(value)


def test_parameters_have_places_or_names(remote):
    assert remote.sql("SELECT $2 - $1, '?' -- ?", [10, 3]).fetchall() == [(-7, "?")]
    assert remote.sql("SELECT $a || $b || $a", {"a": "x", "b": "y'"}).fetchall() == [("xy'x",)]
    assert remote.sql("SELECT ?", [2**100]).fetchall() == [(2**100,)]
    for query, params in [("SELECT ?", []), ("SELECT ?", [1, 2]), ("SELECT $a", {"b": 1}), ("SELECT $a", [1])]:
        with pytest.raises(warpcube.Error):
            remote.sql(query, params)
    with pytest.raises(TypeError):
        remote.sql("SELECT ?", [object()])


def test_statements_with_effects_run_once_at_the_call(remote):
    remote.sql("CREATE OR REPLACE TABLE once (a INT)")
    told = remote.sql("INSERT INTO once VALUES (?), (2)", [1])
    returned = remote.sql("UPDATE once SET a = a + 10 RETURNING a")
    for _ in range(2):
        assert told.arrow().to_pylist() == [{"count": 2}]
        assert sorted(returned.arrow().column("a").to_pylist()) == [11, 12]
    assert remote.sql("FROM once ORDER BY a").fetchall() == [(11,), (12,)]
    count = remote.sql("SELECT count(*) FROM once")
    remote.cursor().sql("DELETE FROM once")
    assert count.fetchall() == [(0,)]


def test_rows_come_one_by_one_and_before_the_end(remote):
    rows = remote.sql("SELECT * FROM range(5)")
    assert (rows.fetchone(), rows.fetchmany(2)) == ((0,), [(1,), (2,)])
    assert (rows.fetchall(), rows.fetchone()) == ([(3,), (4,)], None)
    assert remote.sql("SELECT value, repeat('x', 1000) FROM range(100000000)").fetchone()[0] == 0


def test_errors_are_those_of_a_database(db, remote):
    by_zero = "SELECT 1 / (a - 1) FROM (VALUES (1)) t(a)"
    for query in ["SELEC 1", "FROM nowhere", "SELECT nope", "FROM '/nowhere.parquet'", by_zero]:
        errors = []
        for connection in (db, remote):
            with pytest.raises(warpcube.Error) as error:
                connection.sql(query).fetchall()
            errors.append((type(error.value), error.value.code, str(error.value).split("\n")[0], error.value.sql))
        assert errors[0] == errors[1]
    with pytest.raises(warpcube.Error, match="SRV-007"):
        remote.sql("SELECT 1; SELECT 2")


def test_what_a_server_has_not_is_refused_by_name(server, remote):
    frame = pandas.DataFrame({"n": [1]})
    with pytest.raises(warpcube.NotSupportedError, match="'frame'"):
        remote.sql("FROM frame")
    for refused in [
        lambda: remote.register("frame", frame),
        lambda: remote.unregister("frame"),
        lambda: remote.cube("plan.cube"),
        lambda: remote.create_cube("plan.yaml", "plan.cube"),
        lambda: warpcube.connect(server.flight, token=server.token, timeout="1s"),
        lambda: warpcube.connect("https://localhost", token=server.token),
    ]:
        with pytest.raises(warpcube.NotSupportedError):
            refused()
    with pytest.raises(warpcube.InterfaceError, match="token"):
        warpcube.connect(server.flight)
    with pytest.raises(warpcube.InterfaceError, match="server"):
        warpcube.connect(token="x")
    with pytest.raises(warpcube.Error, match="SRV-005"):
        warpcube.connect(server.flight, token="wrong")
    with pytest.raises(warpcube.OperationalError):
        warpcube.connect("grpc://127.0.0.1:1", token="x")
    remote.close()
    with pytest.raises(warpcube.InterfaceError):
        remote.sql("SELECT 1")


def test_results_are_shown_and_written_here(remote, tmp_path):
    rows = remote.sql("SELECT value AS n, '<b>' AS t FROM range(60) ORDER BY n")
    assert "│  n ┆ t   │" in repr(rows) and repr(rows).endswith("(the first 50 rows; there are more)")
    assert rows._repr_html_().count("<tr>") == 51
    assert "CPU  aggregate" in remote.sql("SELECT sum(value) FROM range(?)", [10]).explain()
    assert "ms" in remote.sql("SELECT sum(value) FROM range(10)").explain(analyze=True)
    rows.to_parquet(tmp_path / "n.parquet")
    rows.to_csv(tmp_path / "n.csv")
    assert pyarrow.parquet.read_table(tmp_path / "n.parquet").column("n").to_pylist() == list(range(60))
    assert polars.read_csv(tmp_path / "n.csv").shape == (60, 2)


def test_rows_are_tables_of_a_database_here(db, remote):
    rows = remote.sql("SELECT value AS n FROM range(10)")
    assert db.sql("SELECT sum(n) FROM rows").fetchall() == [(45,)]
    assert polars.DataFrame(rows).shape == pyarrow.table(rows).shape == (10, 1)


def test_pep_249(server):
    with dbapi.connect(server.flight, token=server.token) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE OR REPLACE TABLE dbapi_t (a INT, b VARCHAR)")
        assert (cursor.description, cursor.rowcount) == (None, -1)
        cursor.executemany("INSERT INTO dbapi_t VALUES (?, ?)", [(1, "x"), (2, None)])
        assert (cursor.description, cursor.rowcount) == (None, 2)
        cursor.execute("SELECT a, b FROM dbapi_t WHERE a >= ? ORDER BY a", [1])
        assert [column[:2] for column in cursor.description] == [("a", "INT"), ("b", "VARCHAR")]
        assert (cursor.fetchone(), cursor.fetchall()) == ((1, "x"), [(2, None)])


def test_threads_share_a_connection(remote):
    wrong = []

    def ask(number):
        for step in range(5):
            if remote.sql("SELECT sum(value) FROM range(?)", [number + step]).fetchall() != [
                (sum(range(number + step)) if number + step else None,)
            ]:
                wrong.append((number, step))

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(16)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert wrong == []


def test_ctrl_c_cancels_on_the_server(server, remote):
    for read in ["fetchall()", "arrow()"]:
        source = f"""
            import os, signal, threading, warpcube
            db = warpcube.connect({server.flight!r}, token={server.token!r})
            rows = db.sql("SELECT sum(value) FROM generate_series(1, 100000000000)")
            threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
            try:
                rows.{read}
            except KeyboardInterrupt:
                print("interrupted")
            print(db.sql("SELECT 1").fetchall())
            """
        program = [sys.executable, "-c", textwrap.dedent(source)]
        done = subprocess.run(program, capture_output=True, text=True, timeout=60)
        assert done.stdout == "interrupted\n[(1,)]\n", (read, done)
        _wait_for_none(remote)


def test_a_process_that_is_killed_leaves_nothing_running(server, remote):
    source = f"""
        import warpcube
        db = warpcube.connect({server.flight!r}, token={server.token!r})
        rows = db.sql("SELECT sum(value) FROM generate_series(1, 100000000000)")
        print("asks", flush=True)
        rows.fetchall()
        """
    asking = subprocess.Popen([sys.executable, "-c", textwrap.dedent(source)], stdout=subprocess.PIPE, text=True)
    assert asking.stdout.readline() == "asks\n"
    time.sleep(0.5)
    os.kill(asking.pid, signal.SIGKILL)
    asking.wait()
    _wait_for_none(remote)


def _wait_for_none(remote):
    """Waits until no statement runs but the one that asks."""
    until = time.monotonic() + 60
    while (left := [row for row in remote.sql("SHOW QUERIES").fetchall() if "generate_series" in row[2]]):
        assert time.monotonic() < until, left
        time.sleep(0.05)


def test_a_server_is_asked_without_the_shared_object(server, tmp_path):
    package = tmp_path / "warpcube"
    package.mkdir()
    for file in pathlib.Path(warpcube.__file__).parent.iterdir():
        if not file.name.startswith(("_native", "__pycache__")):
            (package / file.name).symlink_to(file)
    source = f"""
        import warpcube
        db = warpcube.connect({server.flight!r}, token={server.token!r})
        print(db.sql("SELECT ? + 1", [41]).fetchall())
        for refused in [warpcube.connect, lambda: warpcube.sql("SELECT 1"), lambda: warpcube.connect("folder")]:
            try:
                refused()
            except warpcube.NotSupportedError as error:
                print("not built for this machine" in str(error))
        """
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(source)], capture_output=True, text=True, timeout=60, env=environment
    )
    assert done.stdout == "[(42,)]\nTrue\nTrue\nTrue\n", done
