"""DuckDB on all cores beside the queries of `warpcube bench`, which runs this program with `--rival duckdb`.

The request is a JSON object on the standard input: `tables`, a name with its Parquet file or folder each; `cases`, a
name (`case`) with its query (`sql`) each; `runs`, how often a query is timed warm. The tables are first copied into
DuckDB's own tables in memory, once and untimed by the queries. Each answer is a JSON line: the first has DuckDB's
`version`, its `threads` and the milliseconds of copying (`load_ms`), each further one a `case` with its number of
`rows`, the first run behind copying (`first_ms`) and the median of the warm ones (`warm_ms`). A run is timed from the
query's text to all rows of its answer in DuckDB's memory; no row becomes a Python object.
"""

import glob
import json
import os
import statistics
import sys
import time

import duckdb


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


def main():
    request = json.load(sys.stdin)
    threads = len(os.sched_getaffinity(0))
    connection = duckdb.connect(":memory:", config={"threads": threads})
    # Progress would be written between the lines of the answer.
    connection.execute("SET enable_progress_bar = false")
    _, load_ms = timed(lambda: load(connection, request["tables"]))
    print(json.dumps({"version": duckdb.__version__, "threads": threads, "load_ms": load_ms}), flush=True)
    for case in request["cases"]:
        run = lambda: connection.sql(case["sql"]).materialize()
        answer, first_ms = timed(run)
        rows = len(answer)
        del answer
        warm_ms = statistics.median_low([timed(run)[1] for _ in range(request["runs"])])
        line = {"case": case["case"], "rows": rows, "first_ms": first_ms, "warm_ms": warm_ms}
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    try:
        main()
    except duckdb.Error as error:
        sys.exit(f"DuckDB: {error}")
