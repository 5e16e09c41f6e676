//! Statements that differ in literals alone: optimised once, with the rows, names and types of planning anew.

use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::datasource::MemTable;
use datafusion::prelude::{SessionConfig, SessionContext};
use warpcube_datagen::{NoProgress, WriteOptions, write_ssb_parquet};
use warpcube_sql::{Connection, Place, Summary};

use crate::support::{cpu, emulated, lenient, rows, run};

const TABLES: [(&str, &str); 2] = [
    (
        "t",
        "SELECT value % 10 AS k, value AS v, CAST(value % 7 AS INT) AS small, chr(97 + value % 3) || value AS name, \
         DATE '1970-01-01' + value % 60 AS day, CAST(value * 0.07 AS DECIMAL(10, 2)) AS price, \
         CASE WHEN value % 11 > 0 THEN value / 8.0 END AS f, \
         CAST(to_timestamp(value * 3600) AS TIMESTAMP) AS at, value % 2 = 0 AS flag \
         FROM generate_series(1, 1000)",
    ),
    ("d", "SELECT value AS k, chr(65 + value % 4) AS label FROM generate_series(0, 7)"),
];

/// Shapes with the values of several statements.
const SHAPES: [(&str, &[&[&str]]); 28] = [
    ("SELECT count(*) AS n FROM t WHERE k = {0} AND v > {1}", &[&["3", "500"], &["4", "10"], &["77", "-5"]]),
    ("SELECT k, sum(v) FROM t WHERE v BETWEEN {0} AND {1} GROUP BY k", &[&["7", "90"], &["900", "950"], &["9", "30"]]),
    ("SELECT k + 1, max(v) - 1 FROM t WHERE name < {0} GROUP BY k + 1", &[&["'b'"], &["'c2'"], &["'a'"]]),
    ("SELECT sum(v) FROM t WHERE k IN ({0}, {1}, 3)", &[&["1", "2"], &["4", "5"], &["-1", "99"]]),
    ("SELECT sum(v) FROM t WHERE k IN ({0}, {1}, 3, 5, NULL)", &[&["1", "2"], &["4", "6"]]),
    ("SELECT sum(v) FROM t WHERE k NOT IN ({0}, {1})", &[&["1", "2"], &["4", "5"]]),
    ("SELECT sum(v) FROM t WHERE v NOT BETWEEN {0} AND {1}", &[&["10", "20"], &["4", "4000"]]),
    ("SELECT count(*) FROM t WHERE day >= DATE {0}", &[&["'1970-01-20'"], &["'1970-02-01'"], &["'2020-01-01'"]]),
    ("SELECT count(*) FROM t WHERE day = {0}", &[&["'1970-01-20'"], &["'1970-02-01'"]]),
    ("SELECT count(*) FROM t WHERE at > TIMESTAMP {0}", &[&["'1970-01-20 00:00:00'"], &["'1970-01-02 12:00:00'"]]),
    ("SELECT count(*), sum(price) FROM t WHERE price < {0}", &[&["12.5"], &["13.5"], &["1.5"]]),
    (
        "SELECT count(*) FROM t WHERE at BETWEEN {0} AND {1}",
        &[&["'1970-01-02'", "'1970-01-09 06:30:00'"], &["'1970-02-02'", "'1970-01-01'"]],
    ),
    ("SELECT count(*) FROM t WHERE v % 3 = 1 AND k <> {0}", &[&["3"], &["5"]]),
    (
        "SELECT count(*) FROM t WHERE upper(name) = 'A3' OR {0} > v AND v BETWEEN {1} AND {2}",
        &[&["7", "3", "5"], &["90", "7", "80"]],
    ),
    ("WITH w AS (SELECT k, v FROM t WHERE v < {0}) SELECT count(*) FROM w JOIN w x ON w.k = x.k", &[&["30"], &["44"]]),
    ("SELECT count(*) FROM t WHERE small = {0}", &[&["3"], &["0"], &["6"]]),
    ("SELECT count(*) FROM t WHERE {0} < v AND flag", &[&["3"], &["998"]]),
    ("SELECT count(*) FROM t WHERE v > (SELECT max(v) FROM t WHERE k < {0}) - 5", &[&["5"], &["9"]]),
    ("SELECT k, sum(v) AS s FROM t GROUP BY k HAVING sum(v) > {0}", &[&["50000"], &["50400"], &["900000"]]),
    ("SELECT label, count(*) FROM t JOIN d ON t.k = d.k WHERE d.label <> {0} GROUP BY label", &[&["'A'"], &["'C'"]]),
    ("SELECT count(*), count(d.k) FROM t LEFT JOIN d ON t.k = d.k WHERE d.label = {0}", &[&["'A'"], &["'C'"]]),
    ("SELECT count(*) FROM t WHERE name LIKE {0}", &[&["'a%'"], &["'%1'"], &["'b_'"], &["'%a%7%'"], &["'x\\%'"]]),
    ("SELECT count(*) FROM t WHERE name NOT LIKE {0} AND k > {1}", &[&["'a%'", "3"], &["'%c%'", "50"]]),
    ("SELECT sum(v) FROM t WHERE name ILIKE {0}", &[&["'A%'"], &["'%B1'"]]),
    ("SELECT v, name, v + 1 FROM t WHERE v >= {0} ORDER BY v LIMIT 5", &[&["10"], &["996"], &["5000"]]),
    ("SELECT v FROM t WHERE v < {0} UNION ALL SELECT k FROM d WHERE k > {1}", &[&["3", "2"], &["5", "6"]]),
    ("SELECT count(*) FROM t WHERE k NOT IN (SELECT k FROM d WHERE k > {0})", &[&["3"], &["6"], &["100"]]),
    (
        "SELECT count(*) FROM t WHERE v > {0} AND EXISTS (SELECT 1 FROM d WHERE d.k = t.k AND d.label > {1})",
        &[&["3", "'A'"], &["900", "'B'"]],
    ),
];

/// Shapes whose statements are planned one by one: SQL compares in another type than the column's, or with no column.
const PLANNED_ANEW: [(&str, &[&[&str]]); 3] = [
    ("SELECT count(*), sum(f) FROM t WHERE f <= {0}", &[&["0.5"], &["77.25"]]),
    ("SELECT count(*) FROM t WHERE k = {0}", &[&["'3'"], &["'4'"], &["'77'"]]),
    ("SELECT count(*) FROM t WHERE CASE WHEN v > {0} THEN k ELSE small END = {1}", &[&["500", "2"], &["7", "3"]]),
];

fn filled(shape: &str, values: &[&str]) -> String {
    let numbered = values.iter().enumerate();
    numbered.fold(shape.to_string(), |sql, (index, value)| sql.replace(&format!("{{{index}}}"), value))
}

async fn make_tables(session: &Connection) {
    for (name, query) in TABLES {
        session.collect(&format!("CREATE TABLE {name} AS {query}")).await.unwrap();
    }
}

/// DataFusion on its own, which knows no templates.
async fn datafusion() -> SessionContext {
    let mut config = SessionConfig::new();
    config.options_mut().sql_parser.parse_float_as_decimal = true;
    let (context, source) = (SessionContext::new_with_config(config), cpu());
    for (name, query) in TABLES {
        let batches = source.collect(query).await.unwrap();
        let table = MemTable::try_new(batches[0].schema(), vec![batches]).unwrap();
        context.register_table(name, std::sync::Arc::new(table)).unwrap();
    }
    context
}

async fn anew(context: &SessionContext, sql: &str) -> (SchemaRef, Vec<RecordBatch>) {
    let frame = context.sql(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    let schema = frame.schema().inner().clone();
    (schema, frame.collect().await.unwrap())
}

/// Runs a statement; the types of its columns and its rows are those that DataFusion gives on its own.
async fn same(session: &Connection, context: &SessionContext, sql: &str) -> Summary {
    let (schema, expected) = anew(context, sql).await;
    let execution = session.execute(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    let columns =
        |schema: &SchemaRef| schema.fields().iter().map(|field| field.data_type().clone()).collect::<Vec<_>>();
    assert_eq!(columns(&execution.schema), columns(&schema), "{sql}");
    let report = execution.report.clone();
    let found = execution.collect().await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    assert_eq!(body(&found), body(&expected), "{sql}");
    report.summary()
}

/// The rows without the header, which an empty result may lack.
fn body(batches: &[RecordBatch]) -> Vec<Vec<String>> {
    let mut rows = crate::format::rows(batches);
    rows.sort();
    rows
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_literals_are_not_planned_again() {
    let context = datafusion().await;
    for session in [lenient(), cpu()] {
        make_tables(&session).await;
        for (shape, statements) in SHAPES {
            for (repeat, values) in statements.iter().enumerate() {
                let sql = filled(shape, values);
                let summary = same(&session, &context, &sql).await;
                assert_eq!(summary.planned, repeat == 0, "{sql}");
                // The text is known now.
                assert!(!same(&session, &context, &sql).await.planned, "{sql}");
            }
        }
        for (shape, statements) in PLANNED_ANEW {
            for values in statements {
                let sql = filled(shape, values);
                assert!(same(&session, &context, &sql).await.planned, "{sql}");
                assert!(!same(&session, &context, &sql).await.planned, "{sql}");
            }
        }
    }
}

/// Pairs of statements that look alike and have plans of different shapes.
const OTHERS: [(&str, &str); 11] = [
    ("SELECT count(*) FROM t WHERE k IN (1, 2)", "SELECT count(*) FROM t WHERE k IN (1, 2, 3)"),
    ("SELECT v FROM t WHERE v > 5 ORDER BY v LIMIT 2", "SELECT v FROM t WHERE v > 5 ORDER BY v LIMIT 3"),
    ("SELECT v FROM t WHERE v > 5 ORDER BY v LIMIT 2", "SELECT v FROM t WHERE v > 5 ORDER BY v LIMIT 2 OFFSET 1"),
    ("SELECT count(*) FROM t WHERE k = 1", "SELECT count(*) FROM t WHERE k = NULL"),
    ("SELECT count(*) FROM t WHERE k < 1", "SELECT count(*) FROM t WHERE k < 1.5"),
    ("SELECT count(*) FROM t WHERE name LIKE 'a%'", "SELECT count(*) FROM t WHERE name LIKE '%'"),
    ("SELECT v + 1 FROM t WHERE v < 3", "SELECT v + 2 FROM t WHERE v < 3"),
    ("SELECT k, small, count(*) FROM t GROUP BY 1, 2", "SELECT small, k, count(*) FROM t GROUP BY 1, 2"),
    ("SELECT k, v FROM t WHERE v < 30 ORDER BY 1, 2", "SELECT k, v FROM t WHERE v < 30 ORDER BY 2, 1"),
    (
        "SELECT v, (SELECT count(*) FROM d WHERE d.k = t.k HAVING count(*) = 0) FROM t",
        "SELECT v, (SELECT count(*) FROM d WHERE d.k = t.k HAVING count(*) = 1) FROM t",
    ),
    ("SELECT count(*) FROM t WHERE v % 3 = 1", "SELECT count(*) FROM t WHERE v % 4 = 1"),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_shapes_a_plan_is_no_literal() {
    let context = datafusion().await;
    for (one, other) in OTHERS {
        let session = cpu();
        make_tables(&session).await;
        assert!(same(&session, &context, one).await.planned, "{one}");
        assert!(same(&session, &context, other).await.planned, "{other}");
        for sql in [one, other, one] {
            assert!(!same(&session, &context, sql).await.planned, "{sql}");
        }
    }
}

/// Statements of one form whose plans may or may not have one shape.
const ALIKE: [&[&str]; 9] = [
    &["k = 1", "k = '1'", "k = 1.5", "k = 1.0", "k = '3'", "k = 2.0", "k = 2"],
    &["small = 3", "small = 99999999999", "small = -3000000000", "small = 3.5", "small > 2147483648", "small < 5"],
    &["v BETWEEN 5 AND 9", "v BETWEEN 9 AND 5", "v BETWEEN 7 AND 7", "v BETWEEN 5 AND NULL"],
    &["k IN (1, 2)", "k IN (4, 4)", "k IN (2)", "k IN (NULL)", "k IN (1, NULL)", "k IN (1, 2, 3, 4, 5)"],
    &["price = 0.07", "price = 0.070", "price = 0.071", "price = 7", "price < 100", "price BETWEEN 1 AND 2"],
    &["v > 5 AND v > 5", "v > 5 AND v > 6", "v > 5 AND v < 3", "v > 5 OR v <= 5", "v = 5 OR v = 5"],
    &["flag = true", "flag = false", "flag", "NOT flag", "flag IS NOT NULL", "1 = 1", "1 = 2"],
    &[
        "date_trunc('month', at) = TIMESTAMP '1970-02-01 00:00:00'",
        "date_trunc('year', at) = TIMESTAMP '1970-01-01 00:00:00'",
        "date_trunc('month', at) = TIMESTAMP '1970-02-03 00:00:00'",
    ],
    &[
        "day < DATE '1970-02-01' + INTERVAL '1' DAY",
        "day < DATE '1970-01-01' + INTERVAL '1' MONTH",
        "day + INTERVAL '1' DAY < DATE '1970-01-20'",
        "day + INTERVAL '1' MONTH < DATE '1970-02-20'",
        "day < '1970-01-09'",
    ],
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn statements_that_look_alike_are_not_mixed_up() {
    let context = datafusion().await;
    let session = cpu();
    make_tables(&session).await;
    for _ in 0..2 {
        for condition in ALIKE.iter().flat_map(|alike| alike.iter()) {
            same(&session, &context, &format!("SELECT count(*), sum(v) FROM t WHERE {condition}")).await;
        }
        // Plans that were kept by text are of the past now.
        session.collect("SET warpcube.timeout = '10min'").await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_moment_and_functions_as_tables_have_no_template() {
    let session = lenient();
    make_tables(&session).await;
    for limit in [10, 20, 30] {
        let sql = format!("SELECT count(*) FROM t WHERE v <= {limit} AND at < now()");
        let (batches, summary) = run(&session, &sql).await.unwrap();
        assert!(summary.planned && rows(&batches)[0] == format!("| {limit}       |"), "{sql}");
    }
    for end in [10, 100, 20] {
        let sql = format!("SELECT count(*) AS n FROM generate_series(1, {end}) WHERE value > 3");
        assert_eq!(rows(&session.collect(&sql).await.unwrap())[0], format!("| {} |", end - 3), "{sql}");
        let sql = format!("SELECT count(*) AS n FROM (VALUES (1), ({end}), (3)) AS x(a) WHERE a > 15");
        let above = if end > 15 { 1 } else { 0 };
        assert_eq!(rows(&session.collect(&sql).await.unwrap())[0], format!("| {above} |"), "{sql}");
    }
}

async fn write(query: &str, path: &std::path::Path) {
    let fresh = path.with_extension("fresh.parquet");
    cpu().collect(&format!("COPY ({query}) TO '{}' STORED AS PARQUET", fresh.display())).await.unwrap();
    std::fs::rename(&fresh, path).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_template_ends_with_what_it_was_made_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p.parquet");
    write("SELECT value AS a FROM generate_series(1, 100)", &path).await;
    let session = emulated();
    let file = path.display().to_string();
    session.collect(&format!("CREATE EXTERNAL TABLE p STORED AS PARQUET LOCATION '{file}'")).await.unwrap();
    session.collect("CREATE VIEW w AS SELECT a FROM p WHERE a > 10").await.unwrap();
    let by_path = format!("'{file}'");
    let mut limit = 20;
    let mut ask = async |from: &str, rows_above: &dyn Fn(i64) -> i64, planned: Option<bool>| {
        limit += 1;
        let sql = format!("SELECT count(*) AS n FROM {from} WHERE a > {limit}");
        let (batches, summary) = run(&session, &sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
        assert_eq!(rows(&batches)[0].trim_matches(['|', ' ']), rows_above(limit).to_string(), "{sql}");
        assert!(planned.is_none_or(|planned| planned == summary.planned), "{sql}: {}", summary.planned);
    };
    for from in ["p", "w"] {
        ask(from, &|limit| 100 - limit, Some(true)).await;
        ask(from, &|limit| 100 - limit, Some(false)).await;
    }
    ask(&by_path, &|limit| 100 - limit, Some(true)).await;
    // More rows, then a column of another type.
    write("SELECT value AS a FROM generate_series(1, 300)", &path).await;
    for from in ["p", "w", &by_path] {
        ask(from, &|limit| 300 - limit, Some(true)).await;
        ask(from, &|limit| 300 - limit, None).await;
    }
    write("SELECT value + 0.5 AS a FROM generate_series(1, 300)", &path).await;
    for from in ["p", "w", &by_path] {
        ask(from, &|limit| 301 - limit, Some(true)).await;
        ask(from, &|limit| 301 - limit, None).await;
    }
    // Another view and another table of the same names.
    session.collect("CREATE OR REPLACE VIEW w AS SELECT a + 100 AS a FROM p").await.unwrap();
    ask("w", &|_| 300, Some(true)).await;
    session.collect("DROP TABLE p").await.unwrap();
    session.collect("CREATE TABLE p AS VALUES (1), (1000)").await.unwrap();
    session.collect("CREATE OR REPLACE VIEW w AS SELECT column1 AS a FROM p").await.unwrap();
    ask("w", &|_| 1, Some(true)).await;
    session.collect("INSERT INTO p VALUES (2000)").await.unwrap();
    ask("w", &|_| 2, Some(true)).await;
    ask("w", &|_| 2, Some(false)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_threads_share_a_template() {
    let session = emulated();
    make_tables(&session).await;
    let ask = |start: i64| {
        let session = session.clone();
        tokio::spawn(async move {
            for limit in start..start + 30 {
                let sql = format!("SELECT count(*) AS n FROM t WHERE v > {limit} AND k <> 12");
                let (batches, _) = run(&session, &sql).await.unwrap();
                assert_eq!(rows(&batches)[0], format!("| {} |", 1000 - limit), "{sql}");
            }
        })
    };
    let (one, other) = (ask(10), ask(25));
    one.await.unwrap();
    other.await.unwrap();
    let sql = "SELECT count(*) AS n FROM t WHERE v > 990 AND k <> 13";
    assert!(!run(&session, sql).await.unwrap().1.planned);
}

/// Times are for people: `cargo test --release -p warpcube-sql --test sql planning_times -- --ignored --nocapture`.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "measures"]
async fn planning_times() {
    const RUNS: usize = 60;
    let folder = tempfile::tempdir().unwrap();
    write_ssb_parquet(folder.path(), 0.01, &WriteOptions::default(), &NoProgress).unwrap();
    for (kind, session) in [("CPU", cpu()), ("emulated device", emulated())] {
        for table in ["lineorder", "customer", "supplier", "part", "date"] {
            let path = folder.path().join(format!("{table}.parquet"));
            let sql = format!("CREATE EXTERNAL TABLE {table} STORED AS PARQUET LOCATION '{}'", path.display());
            session.collect(&sql).await.unwrap();
        }
        let sql = |name: usize, year: usize, more: &str| {
            format!(
                "SELECT c_nation, sum(lo_revenue) AS revenue_{name} FROM lineorder JOIN customer ON lo_custkey = \
                 c_custkey JOIN supplier ON lo_suppkey = s_suppkey JOIN date ON lo_orderdate = d_datekey \
                 WHERE c_region = 'ASIA' AND s_region = 'ASIA' AND d_year BETWEEN 1992 AND {year} AND lo_discount < 5 \
                 {more} GROUP BY c_nation ORDER BY revenue_{name} DESC"
            )
        };
        let mut times: [Vec<Duration>; 3] = Default::default();
        for repeat in 0..=RUNS {
            // Another literal; one that is never lifted because the statement asks for the time; another shape.
            let year = 1993 + repeat;
            let moment = sql(0, year, "AND now() > TIMESTAMP '2000-01-01'");
            for (times, sql) in times.iter_mut().zip([sql(0, year, ""), moment, sql(repeat + 1, 1993, "")]) {
                let summary = run(&session, &sql).await.unwrap().1;
                if repeat > 0 {
                    times.push(summary.planning);
                }
            }
        }
        // The shortest: nothing makes planning faster, and much beside it makes it slower.
        let [by_template, optimized, made] = times.map(|times| times.into_iter().min().unwrap());
        let ratio = by_template.as_secs_f64() / optimized.as_secs_f64();
        println!(
            "{kind}: planning takes {by_template:.2?} by a template, {optimized:.2?} without, ratio {ratio:.2}; \
             {made:.2?} where the template is made"
        );
    }
}

/// Queries with constants that are, and others that are not, the same value in the type of the column.
const BY_SHAPE: [(&str, &[&str]); 13] = [
    ("k = {}", &["3", "4", "-5", "9223372036854775807", "9223372036854775808", "3.0", "3.5", "'3'", "NULL", "5"]),
    ("small <> {}", &["3", "6", "99999999999", "-3000000000", "0"]),
    ("price = {}", &["0.07", "0.070", "7", "0.071", "99999999999.99", "14.00", "-0.07"]),
    ("price >= {}", &["1.5", "20", "1.505", "69.93"]),
    ("day >= {}", &["'1970-01-20'", "DATE '1970-02-01'", "'2020-01-01'"]),
    ("name = {}", &["'a3'", "'it''s'", "'b1000'", "''"]),
    ("name LIKE {}", &["'a%'", "'b%'", "'%1_'", "'%'", "'a3'", "'x\\%'", "'%a%7%'"]),
    ("k IN ({})", &["1, 2", "4, 4", "-1, 99", "1, NULL", "2", "1, 2.5", "7, 8"]),
    ("v BETWEEN {}", &["5 AND 9", "900 AND 950", "9 AND 5", "5 AND NULL", "7 AND 7", "1.5 AND 3"]),
    ("f < {}", &["5", "0.5", "77"]),
    ("at > {}", &["TIMESTAMP '1970-01-20 00:00:00'", "'1970-01-02 12:00:00'"]),
    ("k = {} AND flag", &["3", "4"]),
    ("v < {}", &["5 + 5", "10", "20", "2e1"]),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn constants_of_a_known_shape_keep_their_value_or_are_planned() {
    let context = datafusion().await;
    let session = lenient();
    make_tables(&session).await;
    for (condition, constants) in BY_SHAPE {
        for constant in constants {
            let sql = format!("SELECT count(*), sum(v) FROM t WHERE {}", condition.replace("{}", constant));
            same(&session, &context, &sql).await;
            // The text is known now.
            assert!(!same(&session, &context, &sql).await.planned, "{sql}");
        }
    }
    for sql in [
        "SELECT v FROM t WHERE v > 5 ORDER BY v LIMIT 2",
        "SELECT v FROM t WHERE v > 7 ORDER BY v LIMIT 2",
        "SELECT v FROM t WHERE v > 7 ORDER BY v LIMIT 3",
        "SELECT v + 1 FROM t WHERE v < 3 ORDER BY v LIMIT 3",
        "SELECT v + 2 FROM t WHERE v < 4 ORDER BY v LIMIT 3",
        "SELECT k, small, count(*) FROM t WHERE v < 40 GROUP BY 1, 2",
        "SELECT small, k, count(*) FROM t WHERE v < 30 GROUP BY 1, 2",
        "SELECT count(*) FROM t WHERE v = 10 OR v = 11",
        "SELECT count(*) FROM t WHERE v = 12 OR v = 12",
    ] {
        same(&session, &context, sql).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fragment_that_is_filled_leaves_its_values_to_the_cpu() {
    let context = datafusion().await;
    let session = lenient();
    make_tables(&session).await;
    // Digits of the variance cancel on the device.
    for k in [3, 4, 5] {
        let value = "CAST(f AS DOUBLE) + 1000000000";
        let sql = format!("SELECT count(*) AS n, var_pop({value}) AS spread FROM t WHERE k = {k} AND v > {k}00");
        let summary = same(&session, &context, &sql).await;
        assert!(summary.fragments.iter().any(|fragment| fragment.place == Place::Cpu), "{sql}: {summary:?}");
    }
    // A filled fragment is on the device.
    for (k, planned) in [(3, true), (4, false), (7, false)] {
        let sql = format!("SELECT count(*) AS n, max(v) AS most FROM t WHERE k = {k} AND v > {k}00");
        let summary = same(&session, &context, &sql).await;
        assert_eq!(summary.planned, planned, "{sql}");
        assert!(summary.fragments.iter().all(|fragment| fragment.place == Place::Gpu), "{sql}: {summary:?}");
        // The texts of a shape are neither parsed nor planned.
        assert!(planned || summary.phases[0].is_zero() && summary.phases[1].is_zero(), "{sql}: {summary:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn results_of_subqueries_are_put_in_place_whatever_they_are() {
    let (session, context) = (lenient(), datafusion().await);
    make_tables(&session).await;
    for shape in [
        "SELECT count(*) AS n, sum(v) FROM t WHERE v > (SELECT min(v) FROM t WHERE k = {0}) OR small = {1}",
        "SELECT count(*) AS n FROM t WHERE name = (SELECT max(name) FROM t WHERE k = {0}) OR small = {1}",
        "SELECT sum(v + (SELECT min(small) FROM t WHERE v = {0})) AS s FROM t WHERE k < {1}",
        "SELECT k, sum(v) AS s FROM t GROUP BY k HAVING sum(v) > (SELECT max(v) FROM t WHERE k = {0}) AND sum(v) > {1}",
        "SELECT k + (SELECT count(*) FROM d WHERE label = 'A') AS n FROM t \
         WHERE v = (SELECT max(v) FROM t WHERE k = {0}) AND small < {1}",
    ] {
        // NULL for some, then values again.
        for values in [["3", "2"], ["77", "2"], ["4", "3"], ["77", "3"], ["7", "1"]] {
            same(&session, &context, &filled(shape, &values)).await;
        }
    }
}

/// Prepared statements that take their values in place of what was bound for others.
const PREPARED: [(&str, &[&str]); 4] = [
    (
        "SELECT label, count(*), sum(v) FROM t JOIN d ON t.k = d.k WHERE v < $1 AND d.label <> $2 GROUP BY label",
        &["300, 'A'", "400, 'B'", "350, 'D'"],
    ),
    (
        "SELECT k, max(v) AS most FROM t WHERE v < $1 AND ($1 > k OR name LIKE $2) GROUP BY k",
        &["100, 'a%'", "120, 'b%'"],
    ),
    (
        "SELECT count(*) AS n FROM t WHERE day BETWEEN $1 AND $2",
        &["DATE '1970-01-20', DATE '1970-02-01'", "DATE '1970-01-10', DATE '1970-01-22'"],
    ),
    (
        "SELECT k, sum(v) AS s FROM t WHERE v > (SELECT min(v) FROM t WHERE k = $1) AND v < $2 GROUP BY k",
        &["3, 900", "4, 950"],
    ),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn prepared_statements_are_planned_and_bound_once() {
    let (session, plain) = (lenient(), cpu());
    for session in [&session, &plain] {
        make_tables(session).await;
    }
    for (number, (sql, executions)) in PREPARED.into_iter().enumerate() {
        for session in [&session, &plain] {
            session.collect(&format!("PREPARE p{number} AS {sql}")).await.unwrap();
        }
        for (repeat, values) in executions.iter().enumerate() {
            let sql = format!("EXECUTE p{number}({values})");
            let (found, summary) = run(&session, &sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
            assert_eq!(body(&found), body(&plain.collect(&sql).await.unwrap()), "{sql}");
            assert!(summary.fragments.iter().all(|fragment| fragment.place == Place::Gpu), "{sql}: {summary:?}");
            assert_eq!((summary.planned, summary.bound > 0), (repeat == 0, repeat == 0), "{sql}: {summary:?}");
        }
    }
    // A NULL has a plan of its own, and a number that is none of the column's is compared as it is.
    for (values, n) in [("NULL", 0), ("12.5", 178)] {
        let sql = "PREPARE q AS SELECT count(*) AS n FROM t WHERE price < $1";
        session.collect(sql).await.unwrap();
        let found = session.collect(&format!("EXECUTE q({values})")).await.unwrap();
        assert_eq!(rows(&found)[0].trim_matches(['|', ' ']), n.to_string(), "{values}");
        session.collect("DEALLOCATE q").await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn constants_beside_zones_are_those_of_the_zone() {
    let (session, plain) = (lenient(), cpu());
    for session in [&session, &plain] {
        let table = "CREATE TABLE z AS SELECT value AS v, arrow_cast(to_timestamp(value * 3600), \
                     'Timestamp(Nanosecond, Some(\"+02:00\"))') AS at FROM generate_series(1, 1000)";
        session.collect(table).await.unwrap();
    }
    for zone in ["+00:00", "+05:00"] {
        for session in [&session, &plain] {
            session.collect(&format!("SET datafusion.execution.time_zone = '{zone}'")).await.unwrap();
        }
        for at in ["1970-01-10 00:00:00", "1970-01-20 12:00:00", "1970-01-20T12:00:00+03:00"] {
            let sql = format!("SELECT count(*) AS n, sum(v) AS s FROM z WHERE at > '{at}'");
            let found = rows(&session.collect(&sql).await.unwrap());
            assert_eq!(found, rows(&plain.collect(&sql).await.unwrap()), "{zone}: {sql}");
        }
    }
}

/// Shapes whose statements have the same kernels.
const BOUND_ONCE: [(&str, &[&[&str]]); 6] = [
    (
        "SELECT label, count(*), sum(v) FROM t JOIN d ON t.k = d.k WHERE v < {0} AND d.label <> {1} GROUP BY label",
        &[&["300", "'A'"], &["400", "'B'"], &["350", "'D'"]],
    ),
    (
        "SELECT v, name FROM t WHERE v >= {0} AND name LIKE {1} ORDER BY v LIMIT 5",
        &[&["100", "'a%'"], &["200", "'b%'"]],
    ),
    ("SELECT count(*) FROM t WHERE price < {0} AND small IN ({1}, {2})", &[&["12.5", "1", "3"], &["22.25", "2", "6"]]),
    ("SELECT k, max(v) FROM t WHERE day >= DATE {0} AND flag GROUP BY k", &[&["'1970-01-20'"], &["'1970-02-01'"]]),
    (
        "SELECT count(*), sum(v) FROM t WHERE v > (SELECT min(v) FROM t WHERE k = {0}) + 100 AND small <> {1}",
        &[&["3", "1"], &["4", "2"], &["7", "3"]],
    ),
    (
        "SELECT label, count(*) FROM t JOIN d ON t.k = d.k WHERE name > (SELECT min(name) FROM t WHERE v < {0}) \
         AND v < {1} GROUP BY label",
        &[&["4", "400"], &["7", "500"]],
    ),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_constants_take_over_what_was_bound() {
    let (session, context) = (lenient(), datafusion().await);
    make_tables(&session).await;
    for (shape, statements) in BOUND_ONCE {
        for (repeat, values) in statements.iter().enumerate() {
            let sql = filled(shape, values);
            let summary = same(&session, &context, &sql).await;
            assert!(summary.fragments.iter().all(|fragment| fragment.place == Place::Gpu), "{sql}: {summary:?}");
            assert_eq!(summary.bound > 0, repeat == 0, "{sql}: {summary:?}");
        }
    }
}
