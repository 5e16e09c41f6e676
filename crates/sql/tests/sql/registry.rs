//! The registry of statements: what SHOW QUERIES and query_log() tell, and KILL from another connection.

use std::time::{Duration, Instant};

use warpcube_sql::{Connection, Database, DatabaseOptions, SqlError};

use crate::cancel::endless;
use crate::format;
use crate::support::{cpu, emulated};

/// How long a test waits for what must come.
const PATIENCE: Duration = Duration::from_secs(60);

async fn told(connection: &Connection, sql: &str) -> Vec<String> {
    let batches = connection.collect(sql).await.unwrap_or_else(|error| panic!("{sql}\n{error}"));
    format::rows(&batches).into_iter().map(|row| row.join("|")).collect()
}

async fn error(connection: &Connection, sql: &str) -> String {
    connection.collect(sql).await.unwrap_err().to_string()
}

/// Statements that end in their own ways, each with what the log has of it.
const ENDED: [(&str, &str); 8] = [
    ("CREATE TABLE t AS SELECT value % 3 AS k, value AS v FROM generate_series(1, 20000)", "0|NULL"),
    ("SELECT k, sum(v) FROM t GROUP BY k", "3|NULL"),
    ("SELECT 1", "1|NULL"),
    ("SELECT 1 / (v - v) FROM t", "0|SQL-006"),
    ("SELECT nope FROM t", "0|SQL-003"),
    ("INSERT INTO t VALUES (1, 2), (3, 4)", "1|NULL"),
    ("SET warpcube.timeout = 'off'", "0|NULL"),
    ("SHOW warpcube.timeout", "1|NULL"),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_log_has_what_ended_with_its_rows_placement_and_error() {
    for (connection, place) in [(cpu(), "cpu"), (emulated(), "gpu")] {
        for (sql, _) in ENDED {
            let _ = connection.collect(sql).await;
        }
        let log = "SELECT query, rows, error FROM query_log() ORDER BY id";
        let expected: Vec<String> = ENDED.iter().map(|(sql, ended)| format!("{sql}|{ended}")).collect();
        assert_eq!(told(&connection, log).await, expected);
        let sums = "SELECT placement, bytes > 0, seconds > 0, started IS NOT NULL, session IS NULL FROM query_log() \
                    WHERE query LIKE 'SELECT k%' AND query NOT LIKE '%query_log%'";
        assert_eq!(told(&connection, sums).await, [format!("{place}|true|true|true|true")]);
        let none = "SELECT placement IS NULL, bytes FROM query_log() WHERE query = 'SELECT 1'";
        assert_eq!(told(&connection, none).await, ["true|8"]);
        // The log is read anew, though the text was planned before.
        assert_eq!(told(&connection, log).await.len(), ENDED.len() + 3);
        // What is not read to its end is cancelled.
        drop(connection.execute("SELECT v FROM t").await.unwrap());
        let last = "SELECT error FROM query_log() WHERE query = 'SELECT v FROM t'";
        assert_eq!(told(&connection, last).await, ["SQL-007"]);
        drop(connection.execute("CREATE VIEW w AS SELECT 1").await.unwrap());
        let last = "SELECT error IS NULL FROM query_log() WHERE query LIKE 'CREATE VIEW%'";
        assert_eq!(told(&connection, last).await, ["true"]);
    }
}

#[tokio::test]
async fn the_log_is_a_ring_of_a_setting_and_has_no_secrets() {
    let database = Database::open(DatabaseOptions::new().with("warpcube.query_log", "2")).unwrap();
    let (one, other) = (database.connect_as(Some("one".into()), None), database.connect());
    for sql in ["SELECT 1", "SELECT 2", "SELECT 3"] {
        told(&one, sql).await;
    }
    let log = "SELECT session, query FROM query_log() ORDER BY id";
    assert_eq!(told(&other, log).await, ["one|SELECT 2", "one|SELECT 3"]);
    assert_eq!(told(&other, log).await, ["one|SELECT 3".to_string(), format!("NULL|{log}")]);
    told(&other, "SET warpcube.query_log = 1000").await;
    told(&one, "PREPARE p AS SELECT $1 AS a").await;
    told(&one, "EXECUTE p('hidden')").await;
    error(&one, "SET warpcube.password = 'hidden'").await;
    error(&one, "CREATE SECRET s (TYPE s3, SECRET 'hidden')").await;
    let secret = "SELECT query FROM query_log() WHERE query LIKE '%***%' ORDER BY id";
    let expected = ["EXECUTE p(***)", "SET warpcube.password = ***", "CREATE SECRET s (*** ***, *** ***)"];
    assert_eq!(told(&one, secret).await, expected);
    assert_eq!(told(&one, "SELECT count(*) FROM query_log() WHERE query LIKE '%hid' || 'den%'").await, ["0"]);
    told(&other, "SET warpcube.query_log = 0").await;
    told(&other, "SELECT 1").await;
    assert_eq!(told(&other, "SELECT count(*) FROM query_log()").await, ["0"]);
    assert!(error(&other, "FROM query_log(1)").await.contains("query_log() takes no arguments"));
}

/// The number of the statement that has this text, once it runs.
async fn number(connection: &Connection, text: &str) -> String {
    let clock = Instant::now();
    loop {
        let listed = told(connection, "SHOW QUERIES").await;
        let row = listed.iter().find(|row| row.contains(text) && row.contains("|running|"));
        if let Some(row) = row {
            return row.split('|').next().unwrap().to_string();
        }
        assert!(clock.elapsed() < PATIENCE, "{text} is not in {listed:?}");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_statement_is_killed_from_another_connection_by_name() {
    for connection in [cpu(), emulated()] {
        let database = connection.database();
        let (victim, killer) =
            (database.connect_as(Some("victim".into()), None), database.connect_as(Some("ops".into()), None));
        victim.context().register_table("endless", endless()).unwrap();
        let running = tokio::spawn({
            let victim = victim.clone();
            async move { victim.collect("SELECT sum(v) FROM endless").await }
        });
        let id = number(&killer, "endless").await;
        let own = told(&killer, "SHOW QUERIES").await;
        assert!(own.iter().any(|row| row.contains("|ops|SHOW QUERIES|running|")), "{own:?}");
        told(&killer, &format!("KILL {id}")).await;
        let ended = running.await.unwrap().unwrap_err();
        assert!(matches!(ended, SqlError::Killed { .. }));
        assert_eq!(ended.to_string(), "SQL-016 ended by KILL of session 'ops'");
        let log = format!("SELECT session, error FROM query_log() WHERE id = {id}");
        assert_eq!(told(&killer, &log).await, ["victim|SQL-016"]);
        assert_eq!(error(&killer, &format!("KILL {id}")).await, format!("SQL-017 KILL {id}: the statement has ended"));
        let none = error(&killer, "KILL 1000000").await;
        assert!(none.starts_with("SQL-017 KILL 1000000: there is no such statement"), "{none}");
        assert!(error(&killer, "KILL all").await.starts_with("SQL-001 "));
        // The connection goes on.
        assert_eq!(told(&victim, "SELECT 1").await, ["1"]);
    }
}
