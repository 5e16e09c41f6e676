//! Statements that are run again: plans and bindings are kept only as long as they are true.

use warpcube_sql::{Place, Session, SessionOptions};

use crate::support::{emulated, rows, run};

/// A session on the emulated device that may leave work to the CPU.
fn lenient() -> Session {
    Session::new(SessionOptions::new().with("warpcube.device", "emulated")).unwrap()
}

async fn one(session: &Session, sql: &str) -> (Vec<String>, Place) {
    let (batches, summary) = run(session, sql).await.unwrap();
    (rows(&batches), summary.fragments.last().expect("a fragment").place)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repeated_statement_sees_inserts_and_other_types() {
    let session = emulated();
    session.collect("CREATE TABLE t AS VALUES (1), (2)").await.unwrap();
    let sql = "SELECT sum(column1) AS s FROM t";
    for _ in 0..3 {
        assert_eq!(one(&session, sql).await.0[0], "| 3 |");
    }
    session.collect("INSERT INTO t VALUES (10)").await.unwrap();
    assert_eq!(one(&session, sql).await.0[0], "| 13 |");
    session.collect("DROP TABLE t").await.unwrap();
    session.collect("CREATE TABLE t AS VALUES (1.5), (2.25)").await.unwrap();
    assert_eq!(one(&session, sql).await.0[0], "| 3.75 |");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fragment_that_does_not_fit_is_planned_for_the_cpu_from_then_on() {
    let session = lenient();
    session.collect("CREATE TABLE f AS VALUES (1, 10), (2, 20)").await.unwrap();
    session.collect("CREATE TABLE d AS VALUES (1, 5), (1, 6)").await.unwrap();
    let sql = "SELECT sum(f.column2 + d.column2) AS s FROM f JOIN d ON f.column1 = d.column1";
    let (first, place) = one(&session, sql).await;
    assert_eq!((first[0].as_str(), place), ("| 31 |", Place::Cpu));
    let execution = session.execute(sql).await.unwrap();
    let plan = format!("{:?}", execution.plan);
    assert!(!plan.contains("DeviceExec"), "{plan}");
    assert_eq!(rows(&execution.collect().await.unwrap())[0], "| 31 |");
    session.collect("DROP TABLE d").await.unwrap();
    session.collect("CREATE TABLE d AS VALUES (1, 5)").await.unwrap();
    assert_eq!(one(&session, sql).await, (vec!["| 15 |".into(), "| s  |".into()], Place::Gpu));
}
