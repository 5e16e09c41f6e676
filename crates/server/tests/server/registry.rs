//! SHOW QUERIES, KILL and the log through each door: what they tell is what they tell in process.

use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::array::{ArrayRef, AsArray, RecordBatch, StringArray};
use arrow::datatypes::UInt64Type;
use serde_json::{Value, json};

use crate::flight::{client, fetched};
use crate::harness::{Answer, PATIENCE, SILENT, Served};
use crate::queries::STATEMENTS;

/// Statements that fail.
const FAILING: [&str; 3] = ["SELECT nope FROM made", "SELECT 1 / a - 1 / (a - 1) AS q FROM made", "FROM nope"];
/// What the log has of statements, in their order.
const LOG: &str = "SELECT query, rows, bytes, placement, error FROM query_log() WHERE query NOT LIKE '%query_log%' \
                   ORDER BY id";

fn log(served: &Served) -> Value {
    served.query(LOG).json()
}

#[test]
fn the_log_has_the_same_rows_at_each_door() {
    let all: Vec<&str> = STATEMENTS.into_iter().chain(FAILING).collect();
    let (by_http, by_flight, in_process) = (Served::new(), Served::new(), Served::new());
    for sql in &all {
        // As Arrow: JSON has no NaN.
        by_http.ask("POST", "/query", &[("Accept", "application/vnd.apache.arrow.stream")], sql.as_bytes());
        let connection = in_process.database.connect();
        let _ = in_process.threads.block_on(connection.collect(sql));
    }
    by_flight.threads.block_on(async {
        let mut client = client(&by_flight).await;
        for sql in &all {
            if let Ok(info) = client.execute(sql.to_string(), None).await {
                let _ = fetched(&mut client, info).await;
            }
        }
    });
    let expected = log(&in_process);
    assert_eq!(expected.as_array().unwrap().len(), all.len(), "{expected}");
    assert_eq!(log(&by_http), expected);
    assert_eq!(log(&by_flight), expected);
    let sessions = |served: &Served| served.query("SELECT DISTINCT session FROM query_log() ORDER BY 1").json();
    assert_eq!(sessions(&by_http), json!([{"session": "default"}]));
    assert_eq!(sessions(&in_process)[1], json!({"session": null}));
}

#[test]
fn values_of_parameters_are_in_no_log() {
    let served = Served::new();
    let asked = json!({"sql": "SELECT ? AS a", "params": ["hidden"]}).to_string();
    served.ask("POST", "/query", &[("Content-Type", "application/json")], asked.as_bytes()).ok();
    served.threads.block_on(async {
        let mut client = client(&served).await;
        let mut prepared = client.prepare("SELECT $1 AS b".into(), None).await.unwrap();
        let hidden: ArrayRef = Arc::new(StringArray::from(vec!["hidden"]));
        prepared.set_parameters(RecordBatch::try_from_iter([("1", hidden)]).unwrap()).unwrap();
        let info = prepared.execute().await.unwrap();
        let batches = fetched(&mut client, info).await.unwrap();
        assert_eq!(batches[0].num_rows(), 1);
    });
    let texts = served.query("SELECT query, error FROM query_log() ORDER BY id").json();
    let expected = json!([{"query": "SELECT ? AS a", "error": null}, {"query": "SELECT $1 AS b", "error": null}]);
    assert_eq!(texts, expected);
}

/// The numbers of the statements in this state, once there are so many.
fn listed(served: &Served, state: &str, count: usize) -> Vec<u64> {
    let clock = Instant::now();
    loop {
        let all = served.query("SHOW QUERIES").json();
        let rows = all.as_array().unwrap().iter();
        let rows = rows.filter(|row| row["state"] == state && row["query"] != "SHOW QUERIES");
        let found: Vec<u64> = rows.map(|row| row["id"].as_u64().unwrap()).collect();
        if found.len() == count {
            return found;
        }
        assert!(clock.elapsed() < PATIENCE, "not {count} that are {state}: {all}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn kill(served: &Served, number: u64) -> Answer {
    served.query(&format!("KILL {number}"))
}

#[test]
fn statements_that_run_and_that_wait_are_killed_from_elsewhere() {
    let served = Served::with(warpcube_sql::DatabaseOptions::new(), |options| {
        let statements_max = 2;
        warpcube_server::ServerOptions { statements_max, ..options }
    });
    let beside = served.database.connect_as(Some("beside".into()), None);
    let ask = |sql: &str| {
        let batches = served.threads.block_on(beside.collect(sql)).unwrap();
        batches.iter().map(|batch| batch.num_rows()).sum::<usize>()
    };
    let running: Vec<TcpStream> = (0..2).map(|_| served.send("POST", "/query", &[], SILENT.as_bytes())).collect();
    served.wait_for("warpcube_statements_running", 2.0);
    let waiting = served.send("POST", "/query", &[], b"SELECT 1 AS waits");
    served.wait_for("warpcube_statements_waiting", 1.0);
    // The list is asked for in process: all places are taken.
    assert_eq!(ask("SHOW QUERIES"), 4);
    let listed_now = served.threads.block_on(beside.collect("SHOW QUERIES")).unwrap();
    let numbers = listed_now[0].column(0).as_primitive::<UInt64Type>().values().to_vec();
    ask(&format!("KILL {}", numbers[2]));
    assert_eq!(Answer::read(waiting).error(), (409, "SQL-016".into()));
    ask(&format!("KILL {}", numbers[0]));
    let mut running = running.into_iter();
    let told = Answer::read(running.next().unwrap());
    assert_eq!(told.error(), (409, "SQL-016".into()));
    assert_eq!(told.json()["message"], "ended by KILL of session 'beside'");
    // Its place is free for others.
    let [left] = listed(&served, "running", 1)[..] else { panic!() };
    assert_eq!(left, numbers[1]);
    kill(&served, left).ok();
    assert_eq!(Answer::read(running.next().unwrap()).json()["message"], "ended by KILL of session 'default'");
    assert_eq!(kill(&served, left).error(), (400, "SQL-017".into()));
    assert_eq!(kill(&served, 1 << 40).error(), (400, "SQL-017".into()));
    assert_eq!(served.metric("warpcube_statements_total{outcome=\"cancelled\"}"), 3.0);
}

#[test]
fn a_statement_of_flight_is_killed_also_within_a_long_batch() {
    let served = Served::new();
    let long = "SELECT count(*) AS n FROM generate_series(1, 20000) a, generate_series(1, 100000) b \
                WHERE a.value * b.value % 7 = 3";
    let asked = served.threads.spawn({
        let channel = served.threads.block_on(client(&served));
        async move {
            let mut client = channel;
            let info = client.execute(long.to_string(), None).await.unwrap();
            fetched(&mut client, info).await.map(|_| ())
        }
    });
    served.wait_for("warpcube_statements_running", 1.0);
    std::thread::sleep(Duration::from_millis(300));
    let [number] = listed(&served, "running", 1)[..] else { panic!() };
    kill(&served, number).ok();
    let ended = served.threads.block_on(asked).unwrap().unwrap_err().to_string();
    assert!(ended.contains("SQL-016 ended by KILL of session 'default'"), "{ended}");
}
