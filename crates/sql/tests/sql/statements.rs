//! Statements as they are read: what kind they are, and plans kept of those whose names are in another case.

use std::sync::Arc;

use arrow::array::{Int64Array, RecordBatch};
use datafusion::datasource::MemTable;
use warpcube_sql::{Connection, StatementKind, StatementReport};

use crate::format::rows;
use crate::support::{cpu, run};

#[tokio::test]
async fn the_kind_of_a_statement_is_told_without_running_it() {
    let session = cpu();
    run(&session, "CREATE TABLE t AS SELECT 1 AS a").await.unwrap();
    let queries = [
        "SELECT 1",
        " /* insert */ -- update\n select a FROM t;",
        "(SELECT 1) UNION ALL SELECT 2 ORDER BY 1",
        "FROM t",
        "FROM t SELECT a",
        "TABLE t",
        "DESCRIBE t",
        "DESC SELECT 1",
        "VALUES (1), (2)",
        "WITH \"insert\" AS (SELECT 'update t' AS \"into\") SELECT * FROM \"insert\"",
        "SUMMARIZE t",
        "PIVOT t ON a USING count(*)",
        "UNPIVOT t ON a",
        "SELECT update, \"delete\" FROM (SELECT 1 AS update, 2 AS \"delete\")",
        "SELECT * FROM no_such_table",
    ];
    let commands = [
        "INSERT INTO t VALUES (1)",
        "INSERT INTO t SELECT 1 RETURNING a",
        "WITH w AS (SELECT 1) INSERT INTO t SELECT * FROM w",
        "WITH w AS (SELECT 1 AS a) DELETE FROM t USING w WHERE t.a = w.a",
        "-- SELECT\nDELETE FROM t",
        "UPDATE t SET a = 2",
        "MERGE INTO t USING t AS s ON t.a = s.a WHEN MATCHED THEN DELETE",
        "SELECT a INTO other FROM t",
        "SELECT * FROM (SELECT a INTO other FROM t)",
        "CREATE TABLE other AS SELECT 1",
        "CREATE VIEW other AS SELECT 1",
        "COPY t TO 'a.csv'",
        "COPY (SELECT 1) TO 'a.csv' (FORMAT csv)",
        "COPY t FROM 'a.csv'",
        "EXPLAIN SELECT 1",
        "EXPLAIN ANALYZE INSERT INTO t VALUES (1)",
        "PREPARE p AS SELECT 1",
        "EXECUTE p",
        "DEALLOCATE p",
        "SHOW TABLES",
        "SHOW t",
        "SHOW ALL",
        "PRAGMA table_info('t')",
        "CALL anything()",
        "SET warpcube.placement = 'files'",
        "LOAD TABLE t",
        "DROP TABLE t",
        "TRUNCATE t",
        "SELECT 1; SELECT 2",
        "SELEC 1",
        "",
    ];
    for (texts, kind) in [(&queries[..], StatementKind::Query), (&commands[..], StatementKind::Command)] {
        texts.iter().for_each(|sql| assert_eq!(session.kind_of(sql), kind, "{sql}"));
    }
    let deep = format!("SELECT 1 WHERE {}true", "true AND ".repeat(20_000));
    assert_eq!(session.kind_of(&deep), StatementKind::Query);
    assert_eq!(rows(&run(&session, "FROM t").await.unwrap().0), [["1"]]);
}

/// The names and the rows of an answer, and whether the statement was planned for it.
async fn answered(session: &Connection, sql: &str) -> (Vec<String>, Vec<String>, bool) {
    let report = StatementReport::new();
    let execution = session.execute_with(sql, report.clone()).await.unwrap_or_else(|error| panic!("{sql}\n{error}"));
    let names = execution.schema.fields().iter().map(|field| field.name().clone()).collect();
    let found = execution.collect().await.unwrap();
    (names, rows(&found).iter().map(|row| row.join(" ")).collect(), report.summary().planned)
}

#[tokio::test]
async fn plans_of_names_in_another_case_are_kept_until_columns_change() {
    let session = cpu();
    run(&session, "CREATE TABLE t AS SELECT value AS \"Key\", value * 2 AS \"Amount\" FROM range(10)").await.unwrap();
    let sql = |least: i32| format!("SELECT KEY, sum(amount) AS amount FROM t WHERE key > {least} GROUP BY kEy");
    let names: Vec<String> = vec!["Key".into(), "amount".into()];
    assert_eq!(answered(&session, &sql(8)).await, (names.clone(), vec!["9 18".into()], true));
    assert_eq!(answered(&session, &sql(8)).await, (names.clone(), vec!["9 18".into()], false));
    assert_eq!(answered(&session, &sql(9)).await, (names, Vec::new(), false));
    run(&session, "CREATE OR REPLACE TABLE t AS SELECT 9 AS key, 5 AS \"AMOUNT\"").await.unwrap();
    let (names, found, planned) = answered(&session, &sql(8)).await;
    assert_eq!((names.join(","), found.join(","), planned), ("key,amount".into(), "9 5".into(), true));
    run(&session, "CREATE OR REPLACE TABLE t AS SELECT 9 AS key, 5 AS \"AMOUNT\", 6 AS \"Amount\"").await.unwrap();
    let error = run(&session, &sql(8)).await.unwrap_err();
    assert!(error.starts_with("SQL-003 unknown column 'amount'; did you mean '\"AMOUNT\"'?"), "{error}");
}

#[tokio::test]
async fn tables_that_a_program_registers_have_names_in_any_case() {
    let session = cpu();
    let column: Arc<dyn arrow::array::Array> = Arc::new(Int64Array::from(vec![1, 2, 3]));
    let batch = RecordBatch::try_from_iter([("Customer Id", column.clone()), ("Amount", column)]).unwrap();
    let table = MemTable::try_new(batch.schema(), vec![vec![batch.clone()]]).unwrap();
    session.context().register_table("frame", Arc::new(table)).unwrap();
    session.register("Own", (batch.schema(), vec![batch])).await.unwrap();
    let (names, found, _) =
        answered(&session, "SELECT sum(f.AMOUNT), max(o.\"Customer Id\") FROM frame f, own o").await;
    assert_eq!((names.join(","), found.join(",")), ("sum(f.AMOUNT),max(o.\"Customer Id\")".into(), "18 3".into()));
}
