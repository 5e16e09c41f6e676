"""DuckDB on all cores beside the queries of `warpcube bench`, which runs this program with `--rival duckdb`.

The request is a JSON object on the standard input: `tables`, a name with its Parquet file or folder each; `cases`, a
name (`case`) with its query (`sql`) each; `runs`, how often a query is timed warm, or null. The tables are first copied
into DuckDB's own tables in memory, once and untimed by the queries; where `runs` is null they are views of the files.
Each answer is a JSON line: the first has DuckDB's `version`, its `threads` and the milliseconds of copying (`load_ms`),
each further one a `case` with its number of `rows`, the `sums` of its columns, the first run behind copying
(`first_ms`) and the median of the warm ones (`warm_ms`). The sum of a text column is that of its characters, that of
other columns without numbers null. A run is timed from the query's text to all rows of its answer in DuckDB's memory;
no row becomes a Python object.
"""

import glob
import json
import math
import os
import statistics
import sys
import time

import duckdb

# Types whose values are summed up.
NUMBERS = {
    "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT",
    "DECIMAL", "FLOAT", "DOUBLE",
}


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


def timed(call):
    """What a call gives, and its milliseconds."""
    start = time.perf_counter()
    given = call()
    return given, (time.perf_counter() - start) * 1e3


def load(connection, tables):
    """Copies Parquet files into tables of DuckDB's own."""
    for table, path in tables.items():
        files = sorted(glob.glob(os.path.join(glob.escape(path), "*.parquet"))) if os.path.isdir(path) else [path]
        connection.execute(f"CREATE TABLE {quoted(table)} AS SELECT * FROM read_parquet(?)", [files])


def view(connection, tables):
    """Names Parquet files, or all in a folder."""
    for table, path in tables.items():
        files = os.path.join(glob.escape(path), "*.parquet") if os.path.isdir(path) else path
        literal = "'" + files.replace("'", "''") + "'"
        connection.execute(f"CREATE VIEW {quoted(table)} AS SELECT * FROM read_parquet({literal})")


def sums(answer):
    """The sum of each column of an answer."""
    def summed(place, kind):
        if str(kind) == "VARCHAR":
            return f"sum(length(c{place}))"
        return f"sum(c{place}::DOUBLE)" if str(kind).split("(")[0] in NUMBERS else "NULL"

    kinds = answer.types
    names = ", ".join(f"c{place}" for place in range(len(kinds)))
    of = ", ".join(summed(place, kind) for place, kind in enumerate(kinds))
    row = answer.query("answer", f"SELECT {of} FROM (SELECT * FROM answer) AS a({names})").fetchall()[0]
    values = [math.nan if value is None else float(value) for value in row]
    return [value if math.isfinite(value) else None for value in values]


def main():
    request = json.load(sys.stdin)
    threads = len(os.sched_getaffinity(0))
    connection = duckdb.connect(":memory:", config={"threads": threads})
    # Progress would be written between the lines of the answer.
    connection.execute("SET enable_progress_bar = false")
    copies = request["runs"] is not None
    _, load_ms = timed(lambda: (load if copies else view)(connection, request["tables"]))
    load_ms = load_ms if copies else None
    print(json.dumps({"version": duckdb.__version__, "threads": threads, "load_ms": load_ms}), flush=True)
    for case in request["cases"]:
        run = lambda: connection.sql(case["sql"]).materialize()
        answer, first_ms = timed(run)
        line = {"case": case["case"], "rows": len(answer), "sums": sums(answer), "first_ms": first_ms}
        del answer
        if copies:
            line["warm_ms"] = statistics.median_low([timed(run)[1] for _ in range(request["runs"])])
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    try:
        main()
    except duckdb.Error as error:
        sys.exit(f"DuckDB: {error}")
