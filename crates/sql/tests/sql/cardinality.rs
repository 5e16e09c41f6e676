//! What joins above a device operator know of its rows: build sides and partitions are those of the CPU's plan, until a
//! run has found other rows than were expected.

use std::sync::Arc;

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::displayable;
use warpcube_sql::Connection;

use crate::support::{cpu, lenient, rows, run};

/// A factor that the device does not compute.
const TEXTUAL: &str = "length(CAST(CAST(r.v AS DOUBLE) AS VARCHAR))";

async fn with_tables(session: Connection) -> Connection {
    let facts =
        "CREATE TABLE f AS SELECT value AS id, value % 1000 AS k, value % 100 AS v FROM generate_series(1, 20000)";
    let keys = "CREATE TABLE d AS SELECT value AS id, value % 7 AS colour FROM generate_series(0, 999)";
    session.collect(facts).await.unwrap();
    session.collect(keys).await.unwrap();
    session
}

/// The joins of a plan: operator, mode, and the columns of the build side.
async fn joins(session: &Connection, sql: &str) -> (Vec<String>, Arc<dyn ExecutionPlan>) {
    let plan = session.execute(sql).await.unwrap().plan.expect("a query has a plan");
    let mut joins = Vec::new();
    plan.apply(|node| {
        let children = node.children();
        if let ([build, _], true) = (children.as_slice(), node.name().ends_with("JoinExec")) {
            let shown = displayable(node.as_ref()).one_line().to_string();
            let mode = shown.split(", ").next().unwrap_or_default().trim().to_string();
            let schema = build.schema();
            let columns: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
            joins.push(format!("{mode} builds {}", columns.join(", ")));
        }
        Ok(TreeNodeRecursion::Continue)
    })
    .unwrap();
    (joins, plan)
}

/// Joins of a statement that stay above device operators, which are among those of the CPU's plan.
async fn held_to_the_cpu(device: &Connection, host: &Connection, sql: &str) -> Vec<String> {
    let ((found, plan), (expected, _)) = (joins(device, sql).await, joins(host, sql).await);
    let shown = displayable(plan.as_ref()).indent(false).to_string();
    assert!(shown.contains("DeviceExec") && !found.is_empty(), "{shown}");
    for join in &found {
        assert!(expected.contains(join), "'{join}' is not among {expected:#?}:\n{shown}");
    }
    found
}

/// A cross join with one row, which a condition keeps on the CPU, above the rows of a join.
fn beside_one_row() -> String {
    let joined = "(SELECT f.v, d.colour FROM f JOIN d ON f.k = d.id)";
    let one = "(SELECT max(s) AS m FROM (SELECT k, sum(v) AS s FROM f GROUP BY k))";
    format!("SELECT sum(r.v) AS s, min(o.m) AS m FROM {joined} r CROSS JOIN {one} o WHERE r.v * {TEXTUAL} < o.m")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_row_is_the_build_side_of_a_join_above_parts() {
    let (device, host) = (with_tables(lenient()).await, with_tables(cpu()).await);
    let sql = beside_one_row();
    let found = held_to_the_cpu(&device, &host, &sql).await;
    assert_eq!(found, ["NestedLoopJoinExec: join_type=Inner builds m"]);
    for _ in 0..2 {
        assert_eq!(rows(&run(&device, &sql).await.unwrap().0), rows(&run(&host, &sql).await.unwrap().0));
    }
    assert_eq!(held_to_the_cpu(&device, &host, &sql).await, found, "the run found as many rows as were expected");
    // With a parameter the first values tell what to expect.
    for session in [&device, &host] {
        let prepared = sql.replace("r.v *", "r.v * CAST($1 AS BIGINT) *");
        session.collect(&format!("PREPARE p AS {prepared}")).await.unwrap();
    }
    for value in [1, 2] {
        assert_eq!(held_to_the_cpu(&device, &host, &format!("EXECUTE p({value})")).await, found);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn joins_of_parts_have_the_modes_of_the_cpu() {
    let (device, host) = (with_tables(lenient()).await, with_tables(cpu()).await);
    // A window that the CPU computes keeps a join there.
    let numbered = "(SELECT v, k, count(DISTINCT k) OVER (PARTITION BY v ORDER BY k) AS n FROM \
                    (SELECT f.v, f.k FROM f JOIN d ON f.k = d.id WHERE d.colour < 5))";
    let grouped = "(SELECT d.colour, count(*) AS c FROM f JOIN d ON f.k = d.id GROUP BY d.colour)";
    for (left, right) in [(numbered, grouped), (grouped, numbered)] {
        for kind in ["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"] {
            let on = if left == numbered { "a.v = b.colour" } else { "a.colour = b.v" };
            held_to_the_cpu(&device, &host, &format!("SELECT * FROM {left} a {kind} {right} b ON {on}")).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_that_a_run_has_found_decide_on_the_build_side() {
    let (device, host) = (with_tables(lenient()).await, with_tables(cpu()).await);
    // DataFusion expects more than 300 rows to pass the condition. Few do.
    let few = "(SELECT f.id, f.v FROM f JOIN d ON f.k = d.id WHERE f.v * f.k + f.id = 5 OR f.id * f.id = 9)";
    let others =
        "(SELECT id, count(DISTINCT id) OVER (ORDER BY id) AS n FROM (SELECT id FROM f ORDER BY id LIMIT 300))";
    let sql = format!("SELECT max(b.n) AS n, sum(a.v) AS s FROM {others} b JOIN {few} a ON a.id = b.id");
    let before = held_to_the_cpu(&device, &host, &sql).await;
    assert!(!before[0].ends_with("builds id, v"), "{before:?}");
    let expected = rows(&run(&host, &sql).await.unwrap().0);
    assert_eq!(rows(&run(&device, &sql).await.unwrap().0), expected);
    let after = joins(&device, &sql).await.0;
    assert!(after[0].ends_with("builds id, v"), "{after:?}");
    // An EXPLAIN is planned by itself, and so is another connection's statement.
    let shown = explained(&device, &sql).await;
    assert!(shown.contains("on=[(id@0, id@0)], projection=[n@3, v@1]"), "{shown}");
    assert_eq!(joins(&device.database().connect(), &sql).await.0, after);
    assert_eq!(rows(&run(&device, &sql).await.unwrap().0), expected);
}

/// A window, which the CPU computes, over the rows of a join that a condition of unknown share leaves.
fn numbered(condition: &str) -> String {
    let joined = format!("(SELECT big.v, big.id FROM big JOIN d ON big.k = d.id WHERE {condition})");
    let numbered = format!("(SELECT v, count(DISTINCT id) OVER (PARTITION BY v ORDER BY id) AS n FROM {joined})");
    format!("SELECT v, max(n) AS n FROM {numbered} GROUP BY v ORDER BY v")
}

async fn with_big_table(session: Connection) -> Connection {
    let session = with_tables(session).await;
    let big =
        "CREATE TABLE big AS SELECT value AS id, value % 1000 AS k, value % 3 AS v FROM generate_series(1, 100000)";
    session.collect(big).await.unwrap();
    session
}

/// What EXPLAIN says, a line for each of its own.
async fn explained(session: &Connection, sql: &str) -> String {
    rows(&run(session, &format!("EXPLAIN VERBOSE {sql}")).await.unwrap().0).join("\n")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_join_of_more_rows_than_pay_is_tried_once() {
    let (device, host) = (with_big_table(lenient()).await, with_big_table(cpu()).await);
    // A fifth of the rows is expected to pass, and all do.
    let all = numbered("big.id % 1000 < 5000");
    let expected = rows(&run(&host, &all).await.unwrap().0);
    assert!(explained(&device, &all).await.contains("GPU: rows over big"));
    for _ in 0..2 {
        let (found, summary) = run(&device, &all).await.unwrap();
        assert_eq!((rows(&found), summary.device_operators), (expected.clone(), 0));
        let shown = explained(&device, &all).await;
        assert!(!shown.contains("DeviceExec") && shown.contains("a result of 100000 rows, more than pay"), "{shown}");
    }
    // Fewer rows are brought back, as is what the device aggregates of all.
    let reduced = numbered("big.id % 1000 < 300");
    let grouped = "SELECT big.v, count(*) AS n FROM big JOIN d ON big.k = d.id GROUP BY big.v ORDER BY big.v";
    for sql in [&*reduced, grouped] {
        for _ in 0..2 {
            let (found, summary) = run(&device, sql).await.unwrap();
            assert_eq!(rows(&found), rows(&run(&host, sql).await.unwrap().0));
            assert!(summary.device_operators > 0, "{sql}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_that_are_expected_to_pass_through_never_leave_the_cpu() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("big.parquet").display().to_string();
    let host = with_big_table(cpu()).await;
    host.collect(&format!("COPY big TO '{file}'")).await.unwrap();
    let device = with_tables(lenient()).await;
    let table = format!("CREATE EXTERNAL TABLE big STORED AS PARQUET LOCATION '{file}'");
    device.collect(&table).await.unwrap();
    let all = numbered("true");
    let said = explained(&device, &all).await;
    assert!(said.contains("100000 of 100000 rows would pass through it to the CPU"), "{said}");
    let (found, summary) = run(&device, &all).await.unwrap();
    assert_eq!((rows(&found), summary.device_operators), (rows(&run(&host, &all).await.unwrap().0), 0));
    // Placement that is named asks for no estimate.
    device.set("warpcube.placement", "cuda").unwrap();
    assert!(run(&device, &all).await.unwrap().1.device_operators > 0);
}
