"""PEP 249."""

import pytest

from warpcube import dbapi


@pytest.fixture
def cursor():
    with dbapi.connect(device="cpu") as connection, connection.cursor() as cursor:
        yield cursor


def test_a_cursor_reads_rows(cursor):
    cursor.execute("SELECT value AS n, 'x' AS t FROM range(4) WHERE value >= ?", [1])
    assert [column[:2] for column in cursor.description] == [("n", "BIGINT"), ("t", "VARCHAR")]
    assert cursor.description[0][1] == dbapi.NUMBER and cursor.description[1][1] == dbapi.STRING
    assert cursor.description[0][1] != dbapi.STRING
    assert (cursor.fetchone(), cursor.fetchmany(), cursor.fetchall()) == ((1, "x"), [(2, "x")], [(3, "x")])
    assert cursor.fetchone() is None and cursor.fetchall() == []
    assert list(cursor.execute("VALUES (1), (2)")) == [(1,), (2,)]


def test_a_cursor_writes_rows(cursor):
    cursor.execute("CREATE TABLE t (a INT, b VARCHAR)")
    assert (cursor.description, cursor.rowcount) == (None, -1)
    cursor.executemany("INSERT INTO t VALUES (?, ?)", [(1, "x"), (2, None)])
    assert (cursor.description, cursor.rowcount) == (None, 2)
    with pytest.raises(dbapi.InterfaceError):
        cursor.fetchone()
    cursor.execute("DELETE FROM t WHERE a = $a", {"a": 1})
    assert cursor.rowcount == 1
    cursor.connection.commit()
    assert cursor.execute("FROM t").fetchall() == [(2, None)]


def test_what_is_closed_refuses(cursor):
    with pytest.raises(dbapi.ProgrammingError):
        cursor.execute("SELEC")
    cursor.close()
    with pytest.raises(dbapi.InterfaceError):
        cursor.execute("SELECT 1")
    cursor.connection.close()
    with pytest.raises(cursor.connection.InterfaceError):
        cursor.connection.commit()


def test_constructors_and_names_of_the_module():
    assert (dbapi.apilevel, dbapi.threadsafety, dbapi.paramstyle) == ("2.0", 2, "qmark")
    assert dbapi.Date(2024, 1, 2).isoformat() == "2024-01-02" and dbapi.Binary(b"x") == b"x"
    assert issubclass(dbapi.DataError, dbapi.DatabaseError) and issubclass(dbapi.DatabaseError, dbapi.Error)
