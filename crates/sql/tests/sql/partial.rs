//! Partial aggregates: each half of a table on a device of its own, DataFusion's final aggregation over both.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::{ExecutionPlan, collect, displayable};
use warpcube_sql::{Connection, split_aggregations};

use crate::support::{compile_deferred, cpu, defer_programs, emulated, lenient, rows, run};

/// A table `t` of `value` from one number to another, with NULL among keys and values.
async fn fill(session: &Connection, from: i64, to: i64) {
    let table = format!(
        "CREATE TABLE t AS SELECT CASE WHEN value % 5 = 3 THEN NULL ELSE value % 4 END AS g, \
         CASE WHEN value % 7 = 2 THEN NULL ELSE arrow_cast(value * 37 % 1000 - 500, 'Int32') END AS i, value AS l, \
         CAST(CAST(value % 997 AS DECIMAL(12, 2)) / 4 AS DECIMAL(16, 4)) AS d, CAST(value % 64 AS DOUBLE) / 8 AS x, \
         CASE WHEN value % 3 = 0 THEN NULL ELSE concat('s', value % 50) END AS s, \
         arrow_cast(arrow_cast(value % 900, 'Int32'), 'Date32') AS day, value % 2 = 0 AS even \
         FROM generate_series({from}, {to})"
    );
    session.collect(&table).await.unwrap();
}

async fn physical(session: &Connection, sql: &str) -> Arc<dyn ExecutionPlan> {
    session.context().sql(sql).await.unwrap().create_physical_plan().await.unwrap()
}

/// The device operators of a plan.
fn devices(plan: &Arc<dyn ExecutionPlan>) -> Vec<Arc<dyn ExecutionPlan>> {
    let mut found = Vec::new();
    plan.apply(|node| {
        found.extend((node.name() == "DeviceExec").then(|| node.clone()));
        Ok(TreeNodeRecursion::Continue)
    })
    .unwrap();
    found
}

/// A plan with batches in place of its device operator.
fn over(plan: Arc<dyn ExecutionPlan>, partitions: &[Vec<RecordBatch>], schema: &SchemaRef) -> Arc<dyn ExecutionPlan> {
    let replaced = plan.transform_up(|node| {
        if node.name() != "DeviceExec" {
            return Ok(Transformed::no(node));
        }
        let source = MemorySourceConfig::try_new_exec(partitions, schema.clone(), None)?;
        Ok(Transformed::yes(Arc::new(CoalescePartitionsExec::new(source)) as Arc<dyn ExecutionPlan>))
    });
    replaced.unwrap().data
}

/// The answer over the halves that the sessions hold, each aggregated by its own session first.
async fn joined(sessions: &[Connection], sql: &str) -> Vec<String> {
    let mut partitions = Vec::new();
    let mut last = None;
    for session in sessions {
        let plan = split_aggregations(physical(session, sql).await).await.unwrap();
        let [device] = devices(&plan).try_into().unwrap_or_else(|found| panic!("{sql}: {found:?}"));
        partitions.push(collect(device.clone(), session.context().task_ctx()).await.unwrap());
        last = Some((plan, device.schema()));
    }
    let (plan, schema) = last.unwrap();
    let plan = over(plan, &partitions, &schema);
    rows(&collect(plan, sessions[0].context().task_ctx()).await.unwrap())
}

const QUERIES: [&str; 9] = [
    "SELECT count(*) AS n, count(i) AS c, sum(i) AS a, sum(d) AS b, sum(x) AS e FROM t",
    "SELECT g, count(*) AS n, count(i) AS c, sum(i) AS a, sum(l) AS b, sum(d) AS e, sum(x) AS f FROM t GROUP BY g",
    "SELECT g, min(i) AS a, max(d) AS b, min(s) AS c, max(s) AS d, min(day) AS e, max(x) AS f, bool_and(even) AS h \
     FROM t GROUP BY g",
    "SELECT g, avg(i) AS a, avg(d) AS b, avg(x) AS c FROM t GROUP BY g",
    "SELECT g, round(var(i), 6) AS a, round(stddev(d), 6) AS b, round(var_pop(x), 6) AS c, \
     round(stddev_pop(l), 6) AS d FROM t GROUP BY g",
    "SELECT s, even, sum(i) FILTER (WHERE x > 3) AS a, avg(x) FILTER (WHERE i < 0) AS b, \
     count(*) FILTER (WHERE l > 9) AS c, round(var_pop(i) FILTER (WHERE even), 6) AS d FROM t GROUP BY s, even",
    "SELECT day, sum(x) AS a FROM t WHERE l > 120 GROUP BY day HAVING sum(x) > 2",
    "SELECT g, s FROM t GROUP BY g, s",
    "SELECT round(stddev(x), 6) AS a, avg(d) AS b, max(s) AS c FROM t WHERE i > 400",
];

/// Has the programs of the device operators compiled together.
async fn rehearse_parts(session: &Connection) {
    if !defer_programs(session) {
        return;
    }
    for sql in QUERIES {
        let plan = split_aggregations(physical(session, sql).await).await.unwrap();
        for device in devices(&plan) {
            _ = collect(device, session.context().task_ctx()).await;
        }
    }
    compile_deferred(session);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn halves_on_two_devices_make_the_whole() {
    // An even cut, one half without rows that pass, and one without rows.
    for cut in [1_000, 1_999, 2_000] {
        let (whole, halves) = (cpu(), [emulated(), emulated()]);
        fill(&whole, 1, 2_000).await;
        fill(&halves[0], 1, cut).await;
        fill(&halves[1], cut + 1, 2_000).await;
        for half in &halves {
            rehearse_parts(half).await;
        }
        for sql in QUERIES {
            let (expected, _) = run(&whole, sql).await.unwrap();
            assert_eq!(joined(&halves, sql).await, rows(&expected), "{sql}\ncut at {cut}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn states_have_the_columns_of_a_partial_aggregation() {
    let (session, whole) = (emulated(), cpu());
    fill(&session, 1, 100).await;
    fill(&whole, 1, 100).await;
    for sql in QUERIES {
        let plan = split_aggregations(physical(&session, sql).await).await.unwrap();
        let [device] = devices(&plan).try_into().unwrap();
        let schema = partial_schema(physical(&whole, sql).await);
        assert_eq!(device.schema(), schema, "{sql}");
        let states = collect(device, session.context().task_ctx()).await.unwrap();
        assert!(states.iter().all(|batch| batch.schema() == schema), "{sql}");
        // And the split plan gives the rows of the plan that it was made of.
        let (expected, _) = run(&session, sql).await.unwrap();
        assert_eq!(rows(&collect(plan, session.context().task_ctx()).await.unwrap()), rows(&expected), "{sql}");
    }
}

/// The schema that DataFusion's own partial aggregation has for a plan of the CPU.
fn partial_schema(mut plan: Arc<dyn ExecutionPlan>) -> SchemaRef {
    loop {
        let next = match plan.downcast_ref::<AggregateExec>() {
            Some(aggregate) if *aggregate.mode() == AggregateMode::Partial => return plan.schema(),
            Some(aggregate) if matches!(aggregate.mode(), AggregateMode::Single | AggregateMode::SinglePartitioned) => {
                let partial = AggregateExec::try_new(
                    AggregateMode::Partial,
                    aggregate.group_expr().clone(),
                    aggregate.aggr_expr().to_vec(),
                    aggregate.filter_expr().to_vec(),
                    aggregate.input().clone(),
                    aggregate.input_schema(),
                );
                return partial.unwrap().schema();
            }
            _ => plan.children()[0].clone(),
        };
        plan = next;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_cpu_gives_states_where_the_device_gives_up() {
    // Values that are large beside their differences: the device has no variance of them, and so no state.
    let (whole, halves) = (cpu(), [lenient(), lenient()]);
    let table = |from: i64, to: i64| {
        format!("CREATE TABLE t AS SELECT value % 3 AS g, 1e9 + value AS x FROM generate_series({from}, {to})")
    };
    whole.collect(&table(1, 300)).await.unwrap();
    for (session, (from, to)) in halves.iter().zip([(1, 200), (201, 300)]) {
        session.collect(&table(from, to)).await.unwrap();
        session.collect("LOAD TABLE t").await.unwrap();
    }
    let sql = "SELECT g, round(var(x), 3) AS v, count(*) AS n FROM t GROUP BY g";
    let (expected, _) = run(&whole, sql).await.unwrap();
    assert_eq!(joined(&halves, sql).await, rows(&expected));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn exact_sums_stay_exact_across_devices() {
    let (whole, halves) = (cpu(), [emulated(), emulated()]);
    let values = ["(1, 1e300), (1, 1e0), (2, -0.1), (2, 3e-9)", "(1, -1e300), (1, 2.5), (3, 1e-300), (2, 1e16)"];
    let create = |rows: &str| format!("CREATE TABLE t AS SELECT column1 AS g, column2 AS x FROM (VALUES {rows})");
    whole.collect(&create(&values.join(", "))).await.unwrap();
    for (session, values) in halves.iter().zip(values) {
        session.collect(&create(values)).await.unwrap();
    }
    for session in halves.iter().chain([&whole]) {
        session.set("warpcube.float_sums", "exact").unwrap();
    }
    for sql in ["SELECT g, sum(x) AS a, avg(x) AS b FROM t GROUP BY g", "SELECT sum(x) AS a FROM t WHERE g < 3"] {
        let (expected, _) = run(&whole, sql).await.unwrap();
        assert_eq!(joined(&halves, sql).await, rows(&expected), "{sql}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn distinct_values_are_united_below() {
    // The planner groups by the values first; that aggregation is split, the one above it counts what is united.
    let (whole, halves) = (cpu(), [emulated(), emulated()]);
    fill(&whole, 1, 400).await;
    fill(&halves[0], 1, 150).await;
    fill(&halves[1], 100, 400).await;
    let sql = "SELECT g, count(DISTINCT s) AS a FROM t GROUP BY g";
    let (expected, _) = run(&whole, sql).await.unwrap();
    assert_eq!(joined(&halves, sql).await, rows(&expected));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn groups_that_are_grouped_again_have_no_states() {
    let session = emulated();
    fill(&session, 1, 400).await;
    for sql in [
        "SELECT g, count(DISTINCT s) AS a, sum(i) AS b FROM t GROUP BY g",
        "SELECT g, even, count(*) AS n, sum(i) AS b FROM t GROUP BY ROLLUP (g, even)",
    ] {
        let plan = physical(&session, sql).await;
        assert_eq!(devices(&plan).len(), 1, "{sql}");
        let split = split_aggregations(plan).await.unwrap();
        assert_eq!(devices(&split).len(), 0, "{sql}");
        let (expected, _) = run(&session, sql).await.unwrap();
        assert_eq!(rows(&collect(split, session.context().task_ctx()).await.unwrap()), rows(&expected), "{sql}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_aggregation_below_a_join_is_split() {
    let session = emulated();
    fill(&session, 1, 400).await;
    session
        .collect("CREATE TABLE names AS SELECT value AS k, 'n' || value AS name FROM generate_series(0, 3)")
        .await
        .unwrap();
    let sql = "SELECT name, n FROM names JOIN (SELECT g, count(*) AS n FROM t GROUP BY g) ON k = g";
    let plan = physical(&session, sql).await;
    let shown = |plan: &Arc<dyn ExecutionPlan>| displayable(plan.as_ref()).indent(false).to_string();
    assert!(shown(&plan).contains("rows over"), "{}", shown(&plan));
    let split = split_aggregations(plan).await.unwrap();
    let text = shown(&split);
    assert!(text.contains("mode=Partial") && text.contains("mode=Final"), "{text}");
}
