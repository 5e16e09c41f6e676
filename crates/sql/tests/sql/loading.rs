//! Where columns come from and where fragments run: Parquet files read directly or through DataFusion, what is worth
//! loading, copies on the host.

use std::path::Path;

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::UInt64Type;
use warpcube_sql::{Connection, Database, DatabaseOptions, Place, Summary};

use crate::support::{cpu, emulated, one, rows, run, same_on_device};

/// A session on the emulated device under placement `auto`.
fn auto(settings: &[(&str, &str)]) -> Connection {
    let options = DatabaseOptions::new().with("warpcube.device", "emulated");
    let options = settings.iter().fold(options, |options, (name, value)| options.with(name, value));
    Database::open(options).unwrap().connect()
}

async fn external(session: &Connection, name: &str, path: &Path) {
    let options = "OPTIONS (union_by_name true)";
    let sql = format!("CREATE EXTERNAL TABLE {name} STORED AS PARQUET LOCATION '{}' {options}", path.display());
    session.collect(&sql).await.unwrap();
}

/// Writes the rows of a query as one Parquet file in small row groups.
async fn write(session: &Connection, query: &str, path: &Path, options: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let sql = format!(
        "COPY ({query}) TO '{}' STORED AS PARQUET OPTIONS ('format.max_row_group_size' '1500'{options})",
        path.display()
    );
    session.collect(&sql).await.unwrap();
}

const ROWS: &str = "SELECT value AS k, CAST(value % 7 AS INT) AS i, CAST(value * 3 - 77 AS DECIMAL(8, 2)) AS d8, \
                    CAST(value * 1001 AS DECIMAL(15, 3)) AS d15, CAST(value AS DECIMAL(30, 1)) AS d30, \
                    arrow_cast(CAST(18262 + value % 100 AS INT), 'Date32') AS day, \
                    CASE WHEN value % 11 = 3 THEN NULL ELSE 'group ' || (value % 5) END AS few, \
                    CASE WHEN value % 13 = 5 THEN NULL ELSE 'a text that is long ' || value END AS many, \
                    CAST(value AS DOUBLE) / 4 AS f, value % 2 = 0 AS b, [value] AS list \
                    FROM generate_series(0, 5999)";

/// Queries that together read every column of [`ROWS`].
const QUERIES: [&str; 5] = [
    "SELECT few, count(*), sum(k), sum(i), min(day), max(day) FROM t GROUP BY few",
    "SELECT i, sum(d8), sum(d15), sum(d30), count(many), min(f), max(f) FROM t GROUP BY i",
    "SELECT b, min(many), max(many), min(few), count(few) FROM t WHERE many LIKE '%7%' GROUP BY b",
    "SELECT many, sum(d15) FROM t WHERE day < DATE '2020-01-09' AND few <> 'group 1' GROUP BY many",
    "SELECT count(*) FROM t WHERE few = 'group 4' AND many > 'a text that is long 3'",
];

async fn all_as_on_the_cpu(path: &Path) {
    let (device, cpu) = (emulated(), cpu());
    external(&device, "t", path).await;
    external(&cpu, "t", path).await;
    for sql in QUERIES {
        same_on_device(&device, &cpu, sql).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn columns_of_parquet_files_are_those_that_datafusion_reads() {
    let folder = tempfile::tempdir().unwrap();
    let (session, all) = (cpu(), folder.path().join("all"));
    let plain = ", 'format.dictionary_enabled' 'false'";
    let small = ", 'format.dictionary_page_size_limit' '2000', 'format.compression' 'zstd(3)'";
    write(&session, ROWS, &all.join("a.parquet"), "").await;
    write(&session, ROWS, &all.join("b.parquet"), plain).await;
    // Dictionaries that are given up on the way, and columns in another order.
    write(
        &session,
        &format!("SELECT list, b, f, many, few, day, d30, d15, d8, i, k FROM ({ROWS})"),
        &all.join("c.parquet"),
        small,
    )
    .await;
    for file in ["a", "b", "c"] {
        all_as_on_the_cpu(&all.join(format!("{file}.parquet"))).await;
    }
    all_as_on_the_cpu(&all).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_that_differ_are_read_as_datafusion_reads_them() {
    let folder = tempfile::tempdir().unwrap();
    let (session, all) = (cpu(), folder.path().join("all"));
    write(&session, ROWS, &all.join("a.parquet"), "").await;
    write(&session, &format!("SELECT * EXCEPT (many) FROM ({ROWS})"), &all.join("b.parquet"), "").await;
    all_as_on_the_cpu(&all).await;
    let parts = folder.path().join("parts");
    write(&session, ROWS, &parts.join("p=1/a.parquet"), "").await;
    write(&session, ROWS, &parts.join("p=2/a.parquet"), "").await;
    let (device, cpu) = (emulated(), cpu());
    let sql = format!("CREATE EXTERNAL TABLE t STORED AS PARQUET PARTITIONED BY (p) LOCATION '{}/'", parts.display());
    device.collect(&sql).await.unwrap();
    cpu.collect(&sql).await.unwrap();
    same_on_device(&device, &cpu, "SELECT few, count(*), sum(d15), max(many) FROM t GROUP BY few").await;
}

/// Waits for what comes in the background; whether anything did.
fn settle(session: &Connection) -> bool {
    tokio::task::block_in_place(|| session.database().settle())
}

async fn place_of(session: &Connection, sql: &str) -> (Place, String) {
    let (_, summary) = run(session, sql).await.unwrap();
    let fragment = summary.fragments.last().expect("a fragment").clone();
    (fragment.place, fragment.reason.unwrap_or_default())
}

/// Where a second statement of the same text runs, of which the first is on the CPU; a load begins behind the second.
async fn second_place_of(session: &Connection, sql: &str) -> Place {
    let (place, reason) = place_of(session, sql).await;
    let is_declined = place == Place::Cpu && reason.starts_with("estimated cheaper") && !reason.ends_with("background");
    assert!(is_declined && !settle(session), "{reason}");
    let (place, reason) = place_of(session, sql).await;
    assert!(reason.ends_with(", where it comes in the background"), "{reason}");
    place
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn columns_that_are_not_worth_loading_stay_on_the_cpu_until_they_are_there() {
    let session = auto(&[("warpcube.load_factor", "0")]);
    session.collect("CREATE TABLE t AS VALUES (1, 10), (2, 20)").await.unwrap();
    let sql = "SELECT sum(column2) AS s FROM t WHERE column1 > 1";
    let (place, reason) = place_of(&session, sql).await;
    assert_eq!(place, Place::Cpu);
    assert!(reason.starts_with("estimated cheaper on the CPU: ") && reason.contains(" on the GPU"), "{reason}");
    assert_eq!(place_of(&session, sql).await.0, Place::Cpu, "at factor 0 nothing is loaded in the background");
    assert!(!settle(&session));
    session.collect("LOAD TABLE t").await.unwrap();
    assert_eq!(place_of(&session, sql).await.0, Place::Gpu, "a kept plan knows that the columns came");
    session.collect("EVICT TABLE t").await.unwrap();
    assert_eq!(place_of(&session, sql).await.0, Place::Cpu, "nor does it forget that they left");
}

/// Without a GPU columns come into host memory for what takes long over files, and for nothing else.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn columns_come_into_host_memory_where_they_pay() {
    let session = Database::open(DatabaseOptions::new().with("warpcube.device", "cpu")).unwrap().connect();
    session
        .collect("CREATE TABLE small AS SELECT value AS k, value % 7 AS g FROM generate_series(1, 1000)")
        .await
        .unwrap();
    let of = |table: &str| {
        format!("SELECT g, count(*) AS n, sum(k * 3) AS s, min(k) AS m FROM {table} GROUP BY g ORDER BY g")
    };
    for _ in 0..3 {
        let (place, reason) = place_of(&session, &of("small")).await;
        assert_eq!(
            (place, reason.as_str()),
            (Place::Cpu, "a few milliseconds over files, for which no columns are loaded")
        );
        assert!(!settle(&session));
    }
    let large = "CREATE TABLE large AS SELECT value AS k, value % 7 AS g FROM generate_series(1, 2000000)";
    session.collect(large).await.unwrap();
    let places = |summary: &Summary| summary.fragments.iter().map(|fragment| fragment.place).collect::<Vec<_>>();
    let (found, summary) = run(&session, &of("large")).await.unwrap();
    assert_eq!(places(&summary), [Place::Columns]);
    let notes = session.collect(&format!("EXPLAIN {}", of("large"))).await.unwrap();
    assert!(rows(&notes).iter().any(|row| row.contains("CPU, columns: ")), "{notes:?}");
    session.set("warpcube.placement", "files").unwrap();
    let (expected, summary) = run(&session, &of("large")).await.unwrap();
    assert_eq!((places(&summary), rows(&found)), (vec![], rows(&expected)));
    // What is there serves small statements too.
    session.set("warpcube.placement", "auto").unwrap();
    session.collect("LOAD TABLE small").await.unwrap();
    assert_eq!(place_of(&session, &of("small")).await.0, Place::Columns);
}

/// More rows are matched than tables over other rows were once planned for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_than_a_million_groups_are_matched_in_host_memory() {
    let session = Database::open(DatabaseOptions::new().with("warpcube.device", "cpu")).unwrap().connect();
    let f = "CREATE TABLE f AS SELECT value % 2 AS k, value AS x FROM generate_series(1, 1300000)";
    session.collect(f).await.unwrap();
    session.collect("CREATE TABLE d AS VALUES (0), (1), (2)").await.unwrap();
    let sql = "SELECT d.column1 AS k, count(g.x) AS n, sum(g.x) AS s FROM d \
               LEFT JOIN (SELECT DISTINCT k, x FROM f) g ON g.k = d.column1 GROUP BY d.column1 ORDER BY n, k";
    let mut found = Vec::new();
    for placement in ["columns", "files"] {
        session.set("warpcube.placement", placement).unwrap();
        found.push(rows(&session.collect(sql).await.unwrap()));
    }
    assert_eq!(found[0], found[1]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn columns_in_host_memory_are_not_those_of_another_device() {
    let session = emulated();
    session.collect("CREATE TABLE t AS VALUES (1), (2)").await.unwrap();
    session.set("warpcube.placement", "columns").unwrap();
    let error = session.collect("SELECT sum(column1) FROM t").await.unwrap_err().to_string();
    assert!(error.starts_with("SQL-011 warpcube.placement = 'columns' needs a device"), "{error}");
    assert_eq!(one(&session, "SELECT 1").await.0, "1");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_loaded_for_more_groups_than_pay_to_bring_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    let ids = "SELECT value AS id, value % 7 AS few FROM generate_series(1, 200000)";
    cpu().collect(&format!("COPY ({ids}) TO '{}'", path.display())).await.unwrap();
    let session = auto(&[]);
    let sql = |key: &str| format!("SELECT {key}, count(*) FROM '{}' GROUP BY {key}", path.display());
    let (place, reason) = place_of(&session, &sql("id")).await;
    assert_eq!((place, reason.as_str()), (Place::Cpu, "a result of about 200000 groups, more than pay to bring back"));
    assert_eq!(device_tables(&session).await, []);
    // The number of rows that pass a filter is a guess: no statement waits for a load that may be of no use.
    for (rows, fits) in [("few < 5", false), ("few = 8", true)] {
        let sql = format!("SELECT id, count(*) FROM '{}' WHERE {rows} GROUP BY id", path.display());
        // Columns that were asked for before an eviction are loaded by the first statement behind it.
        let mut statements = 0;
        loop {
            assert_eq!(place_of(&session, &sql).await.0, Place::Cpu);
            statements += 1;
            if settle(&session) {
                break;
            }
        }
        assert_eq!(statements, if fits { 1 } else { 2 });
        let (place, reason) = place_of(&session, &sql).await;
        assert_eq!(place == Place::Gpu, fits, "{reason}");
        assert_eq!(reason.ends_with("groups, more than pay to bring back"), !fits, "{reason}");
        session.collect(&format!("EVICT TABLE '{}'", path.display())).await.unwrap();
    }
    assert_eq!(place_of(&session, &sql("few")).await.0, Place::Gpu);
    // What a load counted tells as much: nothing is compiled and run to find out.
    session.collect(&format!("CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '{}'", path.display())).await.unwrap();
    session.collect("LOAD TABLE t").await.unwrap();
    let (place, reason) = place_of(&session, "SELECT few, id, count(*) FROM t GROUP BY few, id").await;
    assert!(place == Place::Cpu && reason.starts_with("a result of about "), "{reason}");
    let few = "SELECT id, count(*) FROM t WHERE few = 8 GROUP BY id";
    assert_eq!(place_of(&session, few).await.0, Place::Gpu, "its columns are there");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_statement_has_columns_loaded_in_the_background() {
    // The emulated device counts as twice as fast as the CPU, which is not worth a wait at this factor.
    let session = auto(&[("warpcube.load_factor", "0.25")]);
    session.collect("CREATE TABLE t AS VALUES (1, 10), (2, 20)").await.unwrap();
    let sql = "SELECT sum(column2) AS s FROM t WHERE column1 > 1";
    for explain in [format!("EXPLAIN {sql}"), format!("EXPLAIN {sql}")] {
        session.collect(&explain).await.unwrap();
    }
    assert!(!settle(&session), "what is only explained asks for nothing");
    assert_eq!(place_of(&session, "SELECT min(column1) AS s FROM t").await.0, Place::Cpu);
    assert_eq!(second_place_of(&session, sql).await, Place::Cpu);
    assert!(settle(&session), "it begins when the statement is over");
    assert_eq!(device_tables(&session).await.len(), 2);
    assert_eq!(place_of(&session, sql).await.0, Place::Gpu);
    let other = "SELECT max(column1) AS s FROM t";
    assert_eq!(place_of(&session, other).await.0, Place::Gpu, "its columns are there");
    session.collect("INSERT INTO t VALUES (3, 30)").await.unwrap();
    let (place, reason) = place_of(&session, sql).await;
    assert!(
        place == Place::Cpu && reason.starts_with("estimated cheaper"),
        "another version has to come, too: {reason}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_comes_while_a_statement_runs_or_for_one_that_is_cancelled() {
    let session = auto(&[("warpcube.load_factor", "0.25")]);
    session.collect("CREATE TABLE t AS VALUES (1, 10), (2, 20)").await.unwrap();
    let sql = "SELECT sum(column2) AS s FROM t WHERE column1 > 1";
    assert_eq!(place_of(&session, sql).await.0, Place::Cpu);
    for is_cancelled in [true, false] {
        let execution = session.execute(sql).await.unwrap();
        assert!(!settle(&session) && device_tables(&session).await.is_empty(), "it is not over");
        if is_cancelled {
            execution.report.cancel().cancel();
        }
        drop(execution);
        assert_eq!(settle(&session), !is_cancelled);
    }
    assert_eq!(device_tables(&session).await.len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_of_all_formats_come_when_a_statement_is_over() {
    let folder = tempfile::tempdir().unwrap();
    let session = auto(&[("warpcube.load_factor", "0.25")]);
    for format in ["csv", "json", "parquet", "arrow"] {
        let path = folder.path().join(format!("t.{format}"));
        cpu().collect(&format!("COPY (VALUES (1, 10), (2, 20)) TO '{}'", path.display())).await.unwrap();
        let sql = format!("SELECT sum(column2) AS s FROM '{}' WHERE column1 > 1", path.display());
        assert_eq!(second_place_of(&session, &sql).await, Place::Cpu, "{format}");
        assert!(settle(&session), "{format}");
        let (place, reason) = place_of(&session, &sql).await;
        assert_eq!(place, Place::Gpu, "{format}: {reason}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_unfit_for_the_device_is_found_in_the_background() {
    let session = auto(&[("warpcube.load_factor", "0.25"), ("warpcube.dictionary_limit", "2")]);
    session.collect("CREATE TABLE t AS VALUES ('a', 4000), ('b', 5000), ('c', 3000)").await.unwrap();
    let sql = "SELECT sum(s) AS s FROM (SELECT column1, sum(column2) AS s FROM t GROUP BY column1)";
    for _ in 0..2 {
        let (batches, summary) = run(&session, sql).await.unwrap();
        assert_eq!(rows(&batches)[0], "| 12000 |");
        assert!(summary.fragments.iter().all(|fragment| fragment.place == Place::Cpu), "{:?}", summary.fragments);
    }
    assert!(settle(&session));
    // The whole is unfit; then its inner aggregation by itself.
    let (place, reason) = place_of(&session, sql).await;
    assert!(place == Place::Cpu && reason.ends_with(", where it comes in the background"), "{reason}");
    assert!(settle(&session));
    let (place, reason) = place_of(&session, sql).await;
    assert!(place == Place::Cpu && reason.starts_with("COL-001"), "{reason}");
    assert!(!settle(&session), "it is not tried again");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_derived_column_comes_in_the_background() {
    let session = auto(&[("warpcube.load_factor", "0.25"), ("warpcube.dictionary_limit", "2")]);
    session.collect("CREATE TABLE t AS VALUES ('ab', 10), ('bc', 20), ('ad', 30), ('be', 40)").await.unwrap();
    let sql = "SELECT max(left(column1, 1)) AS l FROM t";
    assert_eq!(second_place_of(&session, sql).await, Place::Cpu);
    assert!(settle(&session));
    let (batches, summary) = run(&session, sql).await.unwrap();
    assert_eq!((rows(&batches)[0].as_str(), summary.fragments[0].place), ("| b |", Place::Gpu));
    let explained = rows(&session.collect(&format!("EXPLAIN VERBOSE {sql}")).await.unwrap()).join("\n");
    assert!(explained.contains("to load: nothing"), "{explained}");
    // Another function is another column, which has to come, too.
    let sql = "SELECT max(left(column1, 0)) AS l FROM t";
    assert_eq!(second_place_of(&session, sql).await, Place::Cpu);
    assert!(settle(&session));
    assert_eq!(place_of(&session, sql).await.0, Place::Gpu);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_background_load_that_fails_is_tried_again_when_two_more_statements_ask() {
    let settings = [("warpcube.load_factor", "0.25"), ("warpcube.device_memory", "1MiB")];
    let session = auto(&[settings[0], settings[1], ("warpcube.encoding", "plain")]);
    session.collect("CREATE TABLE t AS SELECT value AS v FROM generate_series(1, 500000)").await.unwrap();
    let mut tries = 0;
    for _ in 0..6 {
        let (batches, summary) = run(&session, "SELECT sum(v) AS s FROM t").await.unwrap();
        assert_eq!(rows(&batches)[0], "| 125000250000 |");
        let reason = summary.fragments[0].reason.clone().unwrap_or_default();
        assert!(summary.fragments[0].place == Place::Cpu && reason.starts_with("estimated cheaper"), "{reason}");
        tries += usize::from(settle(&session));
    }
    assert_eq!(tries, 3, "every other statement asks first");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_is_closed_begins_nothing_in_the_background() {
    let session = auto(&[("warpcube.load_factor", "0.25")]);
    session.collect("CREATE TABLE t AS VALUES (1, 10), (2, 20)").await.unwrap();
    let sql = "SELECT sum(column2) AS s FROM t WHERE column1 > 1";
    assert_eq!(place_of(&session, sql).await.0, Place::Cpu);
    tokio::task::block_in_place(|| session.database().close());
    for _ in 0..3 {
        assert_eq!(place_of(&session, sql).await.0, Place::Cpu);
        assert!(!settle(&session));
    }
    assert_eq!(device_tables(&session).await, []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_emulated_device_is_used_unless_told_otherwise() {
    let session = auto(&[]);
    session.collect("CREATE TABLE t AS VALUES (1, 10), (2, 20)").await.unwrap();
    assert_eq!(place_of(&session, "SELECT sum(column2) FROM t").await.0, Place::Gpu);
}

/// Columns of a table with their bytes on the device and on the host.
async fn device_tables(session: &Connection) -> Vec<(String, u64, u64)> {
    let batches: Vec<RecordBatch> = session.collect("SHOW DEVICE TABLES").await.unwrap();
    let column = |batch: &RecordBatch, name: &str| batch.column_by_name(name).unwrap().clone();
    let mut found = Vec::new();
    for batch in &batches {
        for row in 0..batch.num_rows() {
            let bytes = |name: &str| column(batch, name).as_primitive::<UInt64Type>().value(row);
            let name = column(batch, "column_name").as_string::<i32>().value(row).to_string();
            found.push((name, bytes("bytes"), bytes("host_bytes")));
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn columns_that_had_to_leave_have_copies_on_the_host() {
    for (budget, copies) in [("auto", true), ("0", false)] {
        let plain = ("warpcube.encoding", "plain");
        let session = auto(&[("warpcube.device_memory", "1MiB"), ("warpcube.host_memory", budget), plain]);
        let table = "CREATE TABLE t AS SELECT value AS a, value * 2 AS b, value * 3 AS c \
                     FROM generate_series(1, 50000)";
        session.collect(table).await.unwrap();
        for (column, sum) in [("a", 1_250_025_000u64), ("b", 2_500_050_000), ("c", 3_750_075_000), ("a", 1_250_025_000)]
        {
            let (batches, summary) = run(&session, &format!("SELECT sum({column}) AS s FROM t")).await.unwrap();
            assert_eq!(rows(&batches)[0], format!("| {sum} |"));
            assert_eq!(summary.fragments[0].place, Place::Gpu);
        }
        let there = device_tables(&session).await;
        let left: Vec<_> = there.iter().filter(|(_, bytes, _)| *bytes == 0).collect();
        assert_eq!(!left.is_empty(), copies, "{there:?}");
        assert!(left.iter().all(|(_, _, host)| *host > 0), "{there:?}");
        assert!(there.iter().any(|(name, bytes, _)| name == "a" && *bytes > 0), "{there:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn extremes_of_a_column_hide_no_rows_from_others() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("f.parquet");
    let session = auto(&[("warpcube.placement", "files"), ("warpcube.target_partitions", "2")]);
    // The largest `a` is known after the first row group, the largest `b` after the last.
    let copy = format!(
        "COPY (SELECT 100.0 AS a, value AS b FROM generate_series(1, 500000)) TO '{}' STORED AS PARQUET \
         OPTIONS ('format.max_row_group_size' '5000')",
        file.display()
    );
    session.collect(&copy).await.unwrap();
    for b in ["max(b)", "max(b + 0)", "max(CASE WHEN b <> 7 THEN b END)"] {
        let batches =
            session.collect(&format!("SELECT max(a) AS a, {b} AS b FROM '{}'", file.display())).await.unwrap();
        assert_eq!(rows(&batches)[0], "| 100.0 | 500000 |", "{b}");
    }
}

#[tokio::test]
async fn the_share_of_the_device_counts_operators_that_ran_there() {
    let session = emulated();
    session.collect("CREATE TABLE t AS SELECT value AS v FROM generate_series(1, 5000)").await.unwrap();
    let share = async |sql: &str| run(&session, sql).await.unwrap().1.gpu_share();
    // A scan and an aggregation each.
    assert_eq!(share("SELECT (SELECT sum(v) FROM t) AS s, approx_distinct(v) AS m FROM t").await, Some(0.5));
    // All rows are read there, and a window of floats over its groups is the CPU's.
    let window =
        "SELECT k, sum(s / 2.0e0) OVER (ORDER BY s) FROM (SELECT v % 9 AS k, sum(v) AS s FROM t GROUP BY v % 9)";
    assert_eq!(share(window).await, Some(2.0 / 3.0));
    // A fragment whose argument is another's result.
    assert_eq!(share("SELECT count(*) AS n FROM t WHERE v > (SELECT avg(v) FROM t)").await, Some(1.0));
    assert_eq!(share("EXPLAIN SELECT sum(v) FROM t").await, None);
    assert_eq!(share("SELECT 1 AS one").await, None);
    assert_eq!(share("SHOW ALL").await, None);
    assert_eq!(share("SELECT approx_distinct(v) AS m FROM t").await, Some(0.0));
    assert_eq!(share("SELECT v FROM t LIMIT 10").await, Some(0.0));
    assert_eq!(share("SELECT sum(v) FROM t").await, Some(1.0));
    // The device gives the rows in their order.
    assert_eq!(share("SELECT v FROM t ORDER BY v DESC LIMIT 10").await, Some(1.0));
    assert_eq!(share("SELECT v FROM t ORDER BY v % 7, v * 2 DESC LIMIT 10").await, Some(1.0));
    assert_eq!(share("SELECT v % 9 AS k, sum(v) AS s FROM t GROUP BY v % 9 ORDER BY s").await, Some(1.0));
}

#[tokio::test]
async fn what_a_pass_over_a_column_told_is_shown() {
    let session = emulated();
    session.set("warpcube.encoding", "auto").unwrap();
    let create = "CREATE TABLE t AS SELECT value AS ascending, value * 7919 % 50 AS few FROM generate_series(1, 4096)";
    session.collect(create).await.unwrap();
    session.collect("LOAD TABLE t").await.unwrap();
    let shown = session.collect("SHOW DEVICE TABLES").await.unwrap();
    let line = |column: &str| {
        let rows = crate::format::rows(&shown);
        rows.into_iter().find(|row| row[2] == column).unwrap_or_else(|| panic!("no {column}"))
    };
    let (ascending, few) = (line("ascending"), line("few"));
    assert_eq!((ascending[6].as_str(), few[6].as_str()), ("true", "false"), "{ascending:?} {few:?}");
    assert_eq!(few[5], "50");
    let distinct: f64 = ascending[5].parse().unwrap();
    assert!((distinct / 4096.0 - 1.0).abs() < 0.05, "{distinct}");
    let bits: f64 = few[4].parse().unwrap();
    assert!((6.0..6.5).contains(&bits), "{few:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_are_loaded_and_evicted_by_any_name_they_have() {
    let names = |tables: Vec<(String, u64, u64)>| tables.into_iter().map(|(column, ..)| column).collect::<Vec<_>>();
    let session = emulated();
    session.collect("CREATE SCHEMA s").await.unwrap();
    session.collect("CREATE TABLE t AS VALUES (1)").await.unwrap();
    session.collect("CREATE TABLE s.t AS SELECT 2 AS other").await.unwrap();
    session.collect("SELECT sum(column1) FROM t").await.unwrap();
    session.collect("SELECT sum(other) FROM s.t").await.unwrap();
    session.collect("EVICT TABLE public.t").await.unwrap();
    assert_eq!(names(device_tables(&session).await), ["other"], "the table is meant, not what it is listed as");
    session.collect("LOAD TABLE public.t").await.unwrap();
    session.collect("EVICT TABLE s.t").await.unwrap();
    assert_eq!(names(device_tables(&session).await), ["column1"]);
    session.collect("EVICT TABLE t").await.unwrap();
    assert_eq!(device_tables(&session).await, []);
    session.collect("CREATE VIEW v AS SELECT column1 FROM t").await.unwrap();
    let error = session.collect("LOAD TABLE v").await.unwrap_err().to_string();
    assert!(error.contains("'v' is a view"), "{error}");
    // A file is one name, dots included.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.b.parquet");
    write(&cpu(), "SELECT 1 AS id", &path, "").await;
    let file = path.display();
    session.collect(&format!("SELECT sum(id) FROM '{file}'")).await.unwrap();
    session.collect(&format!("EVICT TABLE '{file}'")).await.unwrap();
    assert_eq!(device_tables(&session).await, []);
}
