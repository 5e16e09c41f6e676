//! What aggregations compute once for several of their aggregates.

use datafusion::physical_plan::displayable;
use warpcube_sql::Connection;

use crate::support::cpu;

const TABLE: &str = "CREATE TABLE t AS SELECT CASE WHEN value % 11 = 0 THEN NULL ELSE value % 3 END AS a, \
    CASE WHEN value % 13 = 5 THEN NULL ELSE concat('s', value % 17) END AS b, value % 5 AS c, \
    CASE WHEN value % 7 = 2 THEN NULL ELSE arrow_cast(value * 37 % 1000 - 500, 'Int32') END AS i, \
    CAST(CAST(value % 997 AS DECIMAL(12, 2)) / 4 AS DECIMAL(16, 4)) AS d, CAST(value % 64 AS DOUBLE) / 8 AS x \
    FROM generate_series(1, 5000)";

async fn plan(session: &Connection, sql: &str) -> String {
    let plan = session.context().sql(sql).await.unwrap().create_physical_plan().await.unwrap();
    displayable(plan.as_ref()).indent(false).to_string()
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
