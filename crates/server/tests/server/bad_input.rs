//! What clients may do to a server: messages of a gigabyte, tables that others replace under their statements, many
//! that vanish at once.

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use warpcube_sql::DatabaseOptions;

use crate::flight::{client, fetched};
use crate::harness::{Answer, ENDLESS, PATIENCE, SILENT, Served};

#[test]
fn a_body_of_a_gigabyte_is_refused_before_it_is_there() {
    let served = Served::new();
    let host = served.server().http().to_string();
    let mut stream = served.connect();
    let head = format!(
        "POST /query HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {}\r\nContent-Length: {}\r\n\r\n",
        served.token(),
        1_u64 << 30
    );
    stream.write_all(head.as_bytes()).unwrap();
    // The server takes as much as a body may have, and answers then.
    let piece = vec![b' '; 1 << 20];
    let sent = (0..1 << 10).take_while(|_| stream.write_all(&piece).is_ok()).count();
    assert!(sent < 1 << 8, "{sent} MiB were taken");
    let mut begin = [0; 12];
    // A connection that is reset may lose the answer.
    if stream.read_exact(&mut begin).is_ok() {
        assert_eq!(&begin, b"HTTP/1.1 413");
    }
    assert_eq!(served.query("SELECT 1 AS a").ok(), "[{\"a\":1}]\n");
}

#[test]
fn a_message_of_a_hundred_megabytes_is_refused_by_its_length() {
    let served = Served::new();
    served.threads.block_on(async {
        let mut client = client(&served).await;
        let long = format!("SELECT '{}'", "x".repeat(100 << 20));
        let refused = client.execute(long, None).await.unwrap_err().to_string();
        assert!(refused.contains("limit") || refused.contains("reset"), "{refused}");
    });
    assert_eq!(served.query("SELECT 1 AS a").ok(), "[{\"a\":1}]\n");
}

#[test]
fn a_table_that_is_replaced_under_a_prepared_statement_is_the_one_that_is_there() {
    let served = Served::new();
    served.query("CREATE TABLE t AS SELECT 1 AS a").ok();
    served.threads.block_on(async {
        let mut client = client(&served).await;
        let mut prepared = client.prepare("SELECT * FROM t".into(), None).await.unwrap();
        let info = prepared.execute().await.unwrap();
        // The ticket is of before, and its rows are those of now.
        served.query("CREATE OR REPLACE TABLE t AS SELECT 'x' AS b, 2 AS c").ok();
        let rows = fetched(&mut client, info).await.unwrap();
        assert_eq!(rows[0].schema().field(0).name(), "b");
        let info = prepared.execute().await.unwrap();
        let rows = fetched(&mut client, info).await.unwrap();
        assert_eq!(rows[0].column(1).as_primitive::<Int64Type>().value(0), 2);
        served.query("DROP TABLE t").ok();
        let refused = prepared.execute().await.unwrap_err().to_string();
        assert!(refused.contains("SQL-002"), "{refused}");
        served.query("CREATE TABLE t AS SELECT 3 AS d").ok();
        let info = prepared.execute().await.unwrap();
        let rows = fetched(&mut client, info).await.unwrap();
        assert_eq!(rows[0].column(0).as_primitive::<Int64Type>().value(0), 3);
        prepared.close().await.unwrap();
    });
}

#[test]
fn after_the_loss_of_the_device_the_cpu_goes_on() {
    let served = Served::on("emulated", DatabaseOptions::new(), |options| options);
    served.query("CREATE TABLE t AS SELECT value % 3 AS k, value AS x FROM generate_series(1, 1000)").ok();
    let query = "SELECT k, sum(x) AS s FROM t GROUP BY k ORDER BY k";
    let expected = "[{\"k\":0,\"s\":166833},{\"k\":1,\"s\":167167},{\"k\":2,\"s\":166500}]\n";
    assert_eq!(served.query(query).ok(), expected);
    let is_lost = || {
        let lost = served.server().device_lost();
        served.threads.block_on(async { tokio::time::timeout(Duration::from_millis(700), lost).await.is_ok() })
    };
    assert!(!is_lost());
    let faults = served.database.device().get().and_then(|device| device.emulator_faults()).unwrap();
    faults.fail_launch(1);
    assert_eq!(served.query(query).error(), (500, "GPU-006".into()));
    assert_eq!(served.query(query).ok(), expected);
    let ready = served.ask("GET", "/ready", &[], b"");
    assert_eq!(ready.status, 200);
    assert!(ready.text().contains("the device is lost; statements run on the CPU"), "{}", ready.text());
    assert!(is_lost());
}

#[test]
fn many_clients_that_vanish_at_once_leave_nothing_behind() {
    let served = Served::new();
    for round in 0..5 {
        let streams: Vec<_> = (0..40)
            .map(|number| {
                let sql = if number % 2 == 0 { SILENT } else { ENDLESS };
                served.send("POST", "/query", &[("Accept", "text/csv")], sql.as_bytes())
            })
            .collect();
        served.wait_for("warpcube_statements_waiting", 36.0);
        drop(streams);
        let clock = Instant::now();
        served.wait_for("warpcube_statements_waiting", 0.0);
        served.wait_for("warpcube_statements_running", 0.0);
        assert!(clock.elapsed() < PATIENCE);
        let one = Answer::read(served.send("POST", "/query", &[], b"SELECT 1 AS a")).ok();
        assert_eq!(one, "[{\"a\":1}]\n", "round {round}");
    }
    served.wait_for("warpcube_connections", 1.0);
}
