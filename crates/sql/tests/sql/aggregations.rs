//! What aggregations on the CPU compute once for several: grouping sets, beside a GROUP BY of each set, and sums.

use datafusion::physical_plan::displayable;
use warpcube_sql::{Connection, Database, DatabaseOptions};

use crate::format::rows;
use crate::support::{cpu, run};

const TABLE: &str = "CREATE TABLE t AS SELECT CASE WHEN value % 11 = 0 THEN NULL ELSE value % 3 END AS a, \
    CASE WHEN value % 13 = 5 THEN NULL ELSE concat('s', value % 17) END AS b, value % 5 AS c, \
    CASE WHEN value % 7 = 2 THEN NULL ELSE arrow_cast(value * 37 % 1000 - 500, 'Int32') END AS i, \
    CAST(CAST(value % 997 AS DECIMAL(12, 2)) / 4 AS DECIMAL(16, 4)) AS d, CAST(value % 64 AS DOUBLE) / 8 AS x \
    FROM generate_series(1, 5000)";

/// Every kind of state; sums of doubles are exact here.
const CALLS: &str = "count(*), count(i), sum(i), sum(d), sum(x), min(b), max(x), avg(d), avg(i), round(var(i), 6), \
    round(stddev_pop(x), 6), bool_and(i > -490), bit_xor(c), sum(i) FILTER (WHERE x > 3), round(corr(x, i), 6), \
    round(regr_slope(i, x), 6)";

const KEYS: [&str; 3] = ["a", "b", "c"];

/// Sets as SQL has them, with what is made of which, and as a set a word.
const SETS: [(&str, &str, &str); 5] = [
    ("CUBE (a, b, c)", "8 sets from 1", "abc ab ac bc a b c -"),
    ("ROLLUP (a, b, c)", "4 sets from 1", "abc ab a -"),
    ("GROUPING SETS ((a, b), (a), (b, c), (c), ())", "5 sets from 2", "ab a bc c -"),
    ("GROUPING SETS ((a, b, c), (b), (b), (), ())", "5 sets from 1", "abc b b - -"),
    ("GROUPING SETS ((a), (b, c), (c, b), (c))", "4 sets from 2", "a bc bc c"),
];

/// The union of a GROUP BY of each set.
fn by_each(sets: &str, source: &str) -> String {
    let of_set = |set: &str| {
        let lacks = KEYS.map(|key| !set.contains(key));
        let columns = KEYS.iter().zip(lacks).map(|(key, lacks)| if lacks { "NULL" } else { *key });
        let number = lacks.iter().fold(0, |number, lacks| number * 2 + u8::from(*lacks));
        let columns: Vec<&str> = columns.collect();
        let by: Vec<&str> = KEYS.into_iter().filter(|key| set.contains(key)).collect();
        let by = if by.is_empty() { String::new() } else { format!(" GROUP BY {}", by.join(", ")) };
        format!("SELECT {}, {number}, {CALLS} FROM {source}{by}", columns.join(", "))
    };
    sets.split(' ').map(of_set).collect::<Vec<_>>().join(" UNION ALL ")
}

async fn plan(session: &Connection, sql: &str) -> String {
    let plan = session.context().sql(sql).await.unwrap().create_physical_plan().await.unwrap();
    displayable(plan.as_ref()).indent(false).to_string()
}

async fn sorted(session: &Connection, sql: &str) -> Vec<String> {
    let found = run(session, sql).await.unwrap_or_else(|error| panic!("{sql}\n{error}"));
    let mut rows: Vec<String> = rows(&found.0).iter().map(|row| row.join(" ")).collect();
    rows.sort();
    rows
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn groups_of_sets_are_those_of_a_group_by_each() {
    let session = cpu();
    session.collect(TABLE).await.unwrap();
    session.collect("CREATE TABLE nothing AS SELECT * FROM t WHERE false").await.unwrap();
    for partitions in ["1", "4"] {
        session.set("warpcube.target_partitions", partitions).unwrap();
        for (sets, made, each) in SETS {
            for source in ["t", "nothing", "t WHERE i > 400"] {
                let sql = format!("SELECT a, b, c, grouping(a, b, c), {CALLS} FROM {source} GROUP BY {sets}");
                let shown = plan(&session, &sql).await;
                assert!(shown.contains(&format!("CoarserSetsExec: {made}")), "{sql}\n{shown}");
                let expected = sorted(&session, &by_each(each, source)).await;
                assert_eq!(sorted(&session, &sql).await, expected, "{sql}\nin {partitions} partitions");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_states_do_not_tell_comes_from_the_rows() {
    let session = cpu();
    session.collect(TABLE).await.unwrap();
    for (calls, sets) in [
        ("count(DISTINCT i)", "CUBE (a, b)"),
        ("string_agg(b, ',' ORDER BY b)", "ROLLUP (a, c)"),
        ("median(i)", "ROLLUP (a, c)"),
        ("sum(i)", "GROUPING SETS ((a), (b))"),
    ] {
        let shown = plan(&session, &format!("SELECT {calls} FROM t GROUP BY {sets}")).await;
        assert!(!shown.contains("CoarserSetsExec"), "{calls}\n{shown}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn totals_that_leave_their_type_are_errors() {
    let session = cpu();
    let table = "CREATE TABLE w AS SELECT value % 2 AS a, value % 4 AS b, \
                 CASE WHEN value % 4 < 2 THEN 9223372036854775807 ELSE -9223372036854775807 END AS x \
                 FROM generate_series(0, 7)";
    session.collect(table).await.unwrap();
    // Both rows of a b have a sum past BIGINT, those of an a have not.
    let sets = "SELECT a, count(*), sum(x) FROM w GROUP BY GROUPING SETS ((a, b), (a), ())";
    let failed = run(&session, sets).await.map(|(batches, _)| rows(&batches));
    assert!(failed.unwrap_err().contains("overflow: sum(x)"));
    session.set("warpcube.overflow", "wrap").unwrap();
    let expected = ["0 2 -2", "0 2 2", "0 4 0", "1 2 -2", "1 2 2", "1 4 0", "NULL 8 0"];
    assert_eq!(sorted(&session, sets).await, expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn states_past_memory_are_of_several_lots() {
    let sql = "SELECT count(*), sum(n), sum(s), min(l), count(k) FROM (SELECT value % 30011 AS k, count(*) AS n, \
               sum(value) AS s, min(value) AS l FROM generate_series(1, 120000) \
               GROUP BY CUBE (value % 30011, value % 7, value % 3))";
    let session = |limit: &str| {
        let options = DatabaseOptions::new().with("warpcube.placement", "files").with("warpcube.memory_limit", limit);
        Database::open(options.with("warpcube.target_partitions", "2")).unwrap().connect()
    };
    let whole = session("auto");
    assert!(plan(&whole, sql).await.contains("CoarserSetsExec: 8 sets from 1"));
    assert_eq!(sorted(&session("24MiB"), sql).await, sorted(&whole, sql).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sums_of_a_column_and_constants_are_one_sum() {
    let session = cpu();
    session.collect(TABLE).await.unwrap();
    let sums: Vec<String> = (0..40).map(|by| format!("sum(i + {by})")).collect();
    let shown = plan(&session, &format!("SELECT c, {} FROM t GROUP BY c", sums.join(", "))).await;
    let aggregations: Vec<&str> = shown.lines().filter(|line| line.contains("AggregateExec")).collect();
    assert!(!aggregations.is_empty() && aggregations.iter().all(|line| line.matches("sum(").count() < 3), "{shown}");
    // An addition may overflow, and so may a sum of the column alone.
    for calls in ["sum(l + 1), sum(l + 2), sum(l + 3)", "sum(i + 1), sum(i + 2), sum(i + 9000000000)"] {
        let shown = plan(&session, &format!("SELECT {calls} FROM (SELECT i, CAST(c AS BIGINT) AS l FROM t)")).await;
        let line = shown.lines().find(|line| line.contains("AggregateExec")).unwrap_or_default();
        assert!(line.matches("sum(").count() > 2, "{shown}");
    }
}
