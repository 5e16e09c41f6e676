//! Semi-joins below aggregations: which there are, by EXPLAIN, and that rows are as on the CPU.

use arrow::array::{AsArray, RecordBatch};
use warpcube_sql::{Connection, Place};

use crate::support::{cpu, emulated, rehearse, rows, run};

/// A fact table, and tables of far fewer rows that filters leave little of; keys are NULL, missing and repeated.
const TABLES: [&str; 4] = [
    "CREATE TABLE f AS SELECT value AS id, CASE WHEN value % 11 <> 0 THEN value % 40 END AS k, value % 7 AS n, \
     value % 100 AS v, CASE value % 5 WHEN 0 THEN -0e0 WHEN 1 THEN CAST('NaN' AS DOUBLE) \
     ELSE value % 5 * 0.5 END AS x, concat('key ', value % 40) AS t FROM generate_series(1, 2000) AS s(value)",
    "CREATE TABLE d AS SELECT CASE WHEN value % 9 <> 5 THEN value * 2 % 50 END AS id, value % 7 AS m, \
     value % 4 AS colour, CASE value % 4 WHEN 0 THEN 0e0 WHEN 1 THEN CAST('NaN' AS DOUBLE) \
     ELSE value % 5 * 0.5 END AS y, concat('key ', value * 2) AS u, value % 3 AS maker \
     FROM generate_series(0, 59) AS s(value)",
    "CREATE TABLE makers AS SELECT value AS maker_id, concat('maker ', value) AS name \
     FROM generate_series(0, 2) AS s(value)",
    "CREATE TABLE many AS SELECT value % 40 AS many_k, value % 4 AS c FROM generate_series(1, 1500) AS s(value)",
];

async fn with_tables(session: Connection) -> Connection {
    for sql in TABLES {
        session.collect(sql).await.unwrap();
    }
    session
}

/// The device's operators of a query.
pub async fn operators(session: &Connection, sql: &str) -> String {
    let (batches, _) =
        run(session, &format!("EXPLAIN VERBOSE {sql}")).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    let of = |batch: &RecordBatch| {
        let (kinds, texts) = (batch.column(0).as_string::<i32>(), batch.column(1).as_string::<i32>());
        let device = kinds.iter().zip(texts).filter(|(kind, _)| *kind == Some("device"));
        device.map(|(_, text)| text.unwrap().to_string()).collect::<Vec<_>>()
    };
    batches.iter().flat_map(of).collect::<Vec<_>>().join("\n")
}

/// The conditions of the semi-joins that stand below aggregations.
pub fn reducers(operators: &str) -> Vec<String> {
    let (mut below, mut found) = (None, Vec::new());
    for line in operators.lines() {
        let Some((before, operator)) = line.split_once("─ ") else { continue };
        let depth = before.chars().count();
        below = below.filter(|groups| depth > *groups);
        if operator.contains(" into groups ") {
            below = below.or(Some(depth));
        }
        if let (Some(_), Some(on)) = (below, operator.strip_prefix("semi join on ")) {
            found.push(on.to_string());
        }
    }
    found
}

/// What `{sums}` stands for.
const SUMS: &str = "(SELECT k, sum(v) AS s FROM f GROUP BY k) g";

/// Queries with the semi-joins that are expected below their aggregations.
const REDUCED: [(&str, &[&str]); 34] = [
    // TPC-H 17, 20 and 2 in small.
    (
        "SELECT sum(f.v) FROM f, d WHERE f.k = d.id AND d.colour = 2 AND d.maker = 1 \
         AND f.v < (SELECT avg(v) FROM f f2 WHERE f2.k = d.id)",
        &["k = id"],
    ),
    (
        "SELECT name FROM makers WHERE maker_id IN (SELECT c FROM many WHERE many_k IN (SELECT id FROM d \
         WHERE u LIKE 'key 1%') AND c < (SELECT min(v) FROM f WHERE k = many_k AND n = c))",
        &["k = id"],
    ),
    (
        "SELECT d.id, many_k FROM d, many WHERE d.id = many_k AND d.colour = 2 AND d.m = 3 \
         AND many.c = (SELECT min(n) FROM f WHERE f.k = d.id)",
        &["k = id"],
    ),
    // Kinds of joins.
    ("SELECT d.id, g.s FROM d JOIN {sums} ON d.id = g.k WHERE d.colour = 2", &["k = id"]),
    ("SELECT d.id, g.s FROM d LEFT JOIN {sums} ON d.id = g.k WHERE d.colour = 2", &["k = id"]),
    ("SELECT g.k, g.s, d.id FROM {sums} LEFT JOIN d ON d.id = g.k AND d.colour = 2", &[]),
    ("SELECT g.k, g.s FROM {sums} WHERE g.k NOT IN (SELECT id FROM d WHERE colour = 2)", &[]),
    ("SELECT g.k, g.s FROM {sums} WHERE NOT EXISTS (SELECT 1 FROM d WHERE d.id = g.k AND colour = 2)", &[]),
    ("SELECT g.k, g.s FROM {sums} WHERE g.k IN (SELECT id FROM d WHERE colour = 2)", &["k = id"]),
    (
        "SELECT d.id, d.m FROM d WHERE d.colour = 2 AND NOT EXISTS (SELECT 1 FROM {sums} WHERE g.k = d.id \
         AND g.s > 2000)",
        &["k = id"],
    ),
    (
        "SELECT d.id FROM d WHERE d.colour = 2 AND d.id IN (SELECT k FROM f GROUP BY k HAVING sum(v) > 2000)",
        &["k = id"],
    ),
    ("SELECT d.id, g.s FROM d FULL JOIN {sums} ON d.id = g.k AND d.colour = 2", &[]),
    (
        "SELECT d.id, d.m, g.s FROM d JOIN {sums} ON d.id IS NOT DISTINCT FROM g.k WHERE d.colour = 1",
        &["k IS NULL = id IS NULL AND CASE WHEN k IS NOT NULL THEN k ELSE 0 END = CASE WHEN id IS NOT NULL THEN \
         id ELSE 0 END"],
    ),
    // What a filter leaves.
    ("SELECT d.id, g.s FROM d JOIN {sums} ON d.id = g.k", &[]),
    ("SELECT d.id, g.s FROM d JOIN {sums} ON d.id = g.k WHERE d.colour <> 2", &[]),
    ("SELECT d.id, g.s FROM d JOIN {sums} ON d.id = g.k WHERE d.m > 2", &[]),
    ("SELECT d.id, g.s FROM d JOIN {sums} ON d.id = g.k WHERE d.m BETWEEN 2 AND 3", &["k = id"]),
    ("SELECT d.id, g.s FROM d JOIN {sums} ON d.id = g.k WHERE d.colour = 99", &["k = id"]),
    // A table that is almost as large as the input does not pay.
    ("SELECT c, g.s FROM many JOIN {sums} ON many_k = g.k WHERE c = 1", &[]),
    // Keys.
    (
        "SELECT d.id, g.s FROM d JOIN (SELECT k, n, sum(v) AS s FROM f GROUP BY k, n) g ON d.id = g.k \
         AND d.m = g.n WHERE d.colour = 2",
        &["k = id AND n = m"],
    ),
    (
        "SELECT d.id, g.n, g.s FROM d JOIN (SELECT n, k, sum(v) AS s FROM f GROUP BY n, k) g \
         ON d.id = g.k WHERE d.colour = 2",
        &["k = id"],
    ),
    (
        "SELECT d.id, g.s FROM d JOIN (SELECT k, max(v) AS s FROM f GROUP BY k) g ON d.id = g.s \
         WHERE d.colour = 2",
        &[],
    ),
    (
        "SELECT d.id, g.s FROM d JOIN (SELECT v % 9 AS e, sum(v) AS s FROM f GROUP BY v % 9) g \
         ON d.id = g.e WHERE d.colour = 2",
        &["v % 9 = id"],
    ),
    ("SELECT d.id, g.s FROM d JOIN {sums} ON d.id = g.k + 2 WHERE d.colour = 2", &["k + 2 = id"]),
    (
        "SELECT d.id, g.s FROM d JOIN (SELECT x, sum(v) AS s FROM f GROUP BY x) g ON d.y = g.x \
         WHERE d.m = 2",
        &["x = y"],
    ),
    ("SELECT d.id, g.s FROM d JOIN (SELECT x, sum(v) AS s FROM f GROUP BY x) g ON d.y = g.x * 2 WHERE d.m = 2", &[]),
    (
        "SELECT d.id, g.s FROM d JOIN (SELECT t, sum(v) AS s FROM f GROUP BY t) g ON d.u = g.t \
         WHERE d.m = 2",
        &["t = u"],
    ),
    // Aggregations.
    ("SELECT d.id, g.s FROM d JOIN (SELECT sum(v) AS s FROM f WHERE v < 2) g ON d.id = g.s WHERE d.colour = 2", &[]),
    ("SELECT d.id, g.k FROM d JOIN (SELECT DISTINCT k, n FROM f) g ON d.id = g.k WHERE d.colour = 2", &["k = id"]),
    (
        "SELECT d.id, g.s FROM d JOIN (SELECT k, count(DISTINCT n) AS s FROM f GROUP BY k) g \
         ON d.id = g.k WHERE d.colour = 2",
        &["k = id", "k = id"],
    ),
    (
        "SELECT d.id, g.m FROM d JOIN (SELECT k, max(s) AS m FROM (SELECT k, n, sum(v) AS s FROM f GROUP BY k, \
         n) GROUP BY k) g ON d.id = g.k WHERE d.colour = 2",
        &["k = id", "k = id"],
    ),
    // Through other tables, and from tables that are filtered by others.
    ("SELECT c, g.s FROM many JOIN d ON many_k = d.id JOIN {sums} ON g.k = many_k WHERE d.colour = 2", &["k = id"]),
    (
        "SELECT d.id, name, g.s FROM d JOIN makers ON d.maker = maker_id JOIN {sums} ON g.k = d.id \
         WHERE name = 'maker 1'",
        &["k = id", "maker = maker_id"],
    ),
    // What filters the input already.
    (
        "SELECT d.id, g.s FROM d JOIN (SELECT k, sum(v) AS s FROM f, d d2 WHERE f.k = d2.id \
         AND d2.colour = 2 GROUP BY k) g ON g.k = d.id WHERE d.colour = 2",
        &[],
    ),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn aggregations_are_filtered_by_what_they_are_joined_with() {
    let (device, cpu) = (with_tables(emulated()).await, with_tables(cpu()).await);
    let queries = REDUCED.map(|(sql, expected)| (sql.replace("{sums}", SUMS), expected));
    rehearse(&device, queries.iter().map(|(sql, _)| sql.clone())).await;
    let mut wrong = Vec::new();
    for (sql, expected) in &queries {
        let found = reducers(&operators(&device, sql).await);
        if found != *expected {
            wrong.push(format!("{sql}\n{found:?}"));
        }
        let (on_cpu, _) = run(&cpu, sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
        let (on_device, summary) = run(&device, sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
        assert_eq!(rows(&on_device), rows(&on_cpu), "{sql}");
        let is_empty = rows(&on_cpu).is_empty();
        assert!(expected.is_empty() || is_empty == sql.ends_with("d.colour = 99"), "{sql}");
        let left = summary.fragments.iter().find(|fragment| fragment.place == Place::Cpu);
        if let Some(left) = left.filter(|_| !expected.is_empty()) {
            wrong.push(format!("{sql}\non the CPU: {:?}", left.reason));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn join_tables_are_filtered_by_what_the_largest_table_meets_with_their_key() {
    let (device, cpu) = (with_tables(emulated()).await, with_tables(cpu()).await);
    let cases: [(&str, &[&str]); 5] = [
        // TPC-H 9 in small.
        (
            "SELECT f.n, sum(c), count(*) FROM f, many, d WHERE f.k = many_k AND f.n = c AND f.k = d.id \
             AND d.colour = 2 GROUP BY f.n",
            &["many_k = id"],
        ),
        (
            "SELECT f.n, sum(c), min(name) FROM f, many, d, makers WHERE f.k = many_k AND f.n = c AND f.k = d.id \
             AND d.maker = maker_id AND name = 'maker 1' GROUP BY f.n",
            &["many_k = id", "maker = maker_id"],
        ),
        // The filtered table has another key, nothing filters it, or the largest table does not meet both.
        ("SELECT f.n, sum(c) FROM f, many, d WHERE f.k = many_k AND f.n = d.id AND d.colour = 2 GROUP BY f.n", &[]),
        ("SELECT f.n, sum(c) FROM f, many, d WHERE f.k = many_k AND f.k = d.id GROUP BY f.n", &[]),
        (
            "SELECT f.n, sum(c) FROM f, many, d, makers WHERE f.k = many_k AND c = d.id AND c = maker_id \
             AND name LIKE 'm%' AND d.colour = 2 GROUP BY f.n",
            &[],
        ),
    ];
    rehearse(&device, cases.iter().map(|(sql, _)| sql.to_string())).await;
    for (sql, expected) in cases {
        let operators = operators(&device, sql).await;
        let found: Vec<&str> = operators.lines().filter_map(|line| Some(line.split_once("semi join on ")?.1)).collect();
        assert_eq!(found, expected, "{sql}\n{operators}");
        let (on_cpu, _) = run(&cpu, sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
        let (on_device, summary) = run(&device, sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
        assert_eq!(rows(&on_device), rows(&on_cpu), "{sql}");
        assert!(!rows(&on_cpu).is_empty() && summary.fragments.iter().all(|one| one.place == Place::Gpu), "{sql}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_table_that_several_joins_probe_is_built_once() {
    let (device, cpu) = (with_tables(emulated()).await, with_tables(cpu()).await);
    let cases = [
        // The reducer and the semi-join that it comes from.
        ("SELECT g.k, g.s FROM {sums} WHERE g.k IN (SELECT id FROM d WHERE colour = 2)", true),
        // Two joins, whose keys repeat for neither, for one and for both.
        ("SELECT count(*) FROM f, makers a, makers b WHERE f.n = a.maker_id AND f.k = b.maker_id", true),
        ("SELECT count(*) FROM f, d WHERE f.n = d.id AND f.k IN (SELECT id FROM d)", true),
        ("SELECT count(*) FROM f, d a, d b WHERE f.n = a.id AND f.k = b.id", true),
        (
            "SELECT count(*) FROM f LEFT JOIN d ON f.n = d.id AND d.m = 1 WHERE f.k IN (SELECT id FROM d WHERE m = 1)",
            true,
        ),
        // Other filters, other keys, other columns.
        ("SELECT count(*) FROM f, d a, d b WHERE f.n = a.id AND f.k = b.id AND a.m = 1 AND b.m = 2", false),
        ("SELECT count(*) FROM f, d a, d b WHERE f.n = a.id AND f.k = b.m", false),
        ("SELECT sum(a.m) FROM f, d a, d b WHERE f.n = a.id AND f.k = b.id", false),
    ];
    let cases = cases.map(|(sql, is_shared)| (sql.replace("{sums}", SUMS), is_shared));
    rehearse(&device, cases.iter().map(|(sql, _)| sql.clone())).await;
    for (sql, is_shared) in &cases {
        let operators = operators(&device, sql).await;
        assert_eq!(operators.contains(" as above"), *is_shared, "{sql}\n{operators}");
        let (on_cpu, _) = run(&cpu, sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
        let (on_device, _) = run(&device, sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
        assert_eq!(rows(&on_device), rows(&on_cpu), "{sql}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_table_tied_by_columns_of_an_outer_join_is_joined_by_them() {
    let (device, cpu) = (with_tables(emulated()).await, with_tables(cpu()).await);
    for sql in [
        "SELECT count(*), sum(v) FROM d LEFT JOIN many ON d.id = many_k JOIN f ON c = f.n AND many_k = f.k",
        "SELECT d.m, count(*) FROM d LEFT JOIN many ON d.id = many_k AND c < d.m JOIN f ON many_k = f.k GROUP BY d.m",
    ] {
        let operators = operators(&device, sql).await;
        assert!(operators.contains("left join") && !operators.contains("every two rows"), "{sql}\n{operators}");
        let (on_cpu, _) = run(&cpu, sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
        let (on_device, summary) = run(&device, sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
        assert_eq!(rows(&on_device), rows(&on_cpu), "{sql}");
        assert!(summary.fragments.iter().all(|one| one.place == Place::Gpu), "{sql}");
    }
}
