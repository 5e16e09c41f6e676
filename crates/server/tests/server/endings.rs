//! Clients that go away or read slowly, the queue, and the end of the server.

use std::io::Read;
use std::net::TcpStream;
use std::time::Duration;

use crate::harness::{Answer, ENDLESS, PATIENCE, SILENT, Served};

const RUNNING: &str = "warpcube_statements_running";
const WAITING: &str = "warpcube_statements_waiting";
const CANCELLED: &str = "warpcube_statements_total{outcome=\"cancelled\"}";

#[test]
fn a_client_that_goes_away_cancels_its_statement() {
    let served = Served::new();
    for (place, sql) in [SILENT, ENDLESS].into_iter().enumerate() {
        let mut stream = served.send("POST", "/query", &[("Accept", "text/csv")], sql.as_bytes());
        served.wait_for(RUNNING, 1.0);
        if sql == ENDLESS {
            stream.read_exact(&mut [0; 1 << 16]).unwrap();
        }
        drop(stream);
        served.wait_for(RUNNING, 0.0);
        assert_eq!(served.metric(CANCELLED), (place + 1) as f64);
    }
    // The threads are free.
    assert_eq!(served.query("SELECT count(*) AS n FROM generate_series(1, 1000)").ok(), "[{\"n\":1000}]\n");
}

#[test]
fn statements_that_do_not_end_when_they_are_cancelled_keep_no_threads() {
    let served = Served::new();
    // An operator that is in the midst of a batch of billions of rows looks at no switch.
    let long = "SELECT count(*) AS n FROM generate_series(1, 20000) a, generate_series(1, 100000) b \
                WHERE a.value * b.value % 7 = 3";
    let streams: Vec<TcpStream> = (0..2).map(|_| served.send("POST", "/query", &[], long.as_bytes())).collect();
    served.wait_for(RUNNING, 2.0);
    std::thread::sleep(Duration::from_millis(300));
    drop(streams);
    served.wait_for(RUNNING, 0.0);
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(served.query("SELECT count(*) AS n FROM generate_series(1, 1000)").ok(), "[{\"n\":1000}]\n");
}

#[test]
fn a_slow_reader_slows_its_statement_alone() {
    let served = Served::new();
    let mut slow = served.send("POST", "/query", &[("Accept", "text/csv")], ENDLESS.as_bytes());
    slow.read_exact(&mut [0; 1 << 10]).unwrap();
    // Buffers of the system and the queue fill up, and no more rows are made then.
    let mut rows = served.metric("warpcube_result_rows_total");
    loop {
        std::thread::sleep(Duration::from_millis(300));
        let now = served.metric("warpcube_result_rows_total");
        if now == rows {
            break;
        }
        rows = now;
        assert!(rows < 1e8, "{rows}");
    }
    assert_eq!(served.query("SELECT 1 AS a").ok(), "[{\"a\":1}]\n");
    slow.read_exact(&mut vec![0; 32 << 20]).unwrap();
    assert!(served.metric("warpcube_result_rows_total") > rows);
}

#[test]
fn statements_wait_for_their_turn_and_leave_the_queue_with_their_client() {
    let served = Served::with(warpcube_sql::DatabaseOptions::new(), |options| {
        let statements_max = 1;
        warpcube_server::ServerOptions { statements_max, ..options }
    });
    let first = served.send("POST", "/query", &[], SILENT.as_bytes());
    served.wait_for(RUNNING, 1.0);
    let waiting: Vec<TcpStream> =
        (0..3).map(|n| served.send("POST", "/query", &[], format!("SELECT {n} AS a").as_bytes())).collect();
    served.wait_for(WAITING, 3.0);
    let mut waiting = waiting.into_iter();
    drop(waiting.next());
    served.wait_for(WAITING, 2.0);
    drop(first);
    let answers: Vec<String> = waiting.map(|stream| Answer::read(stream).ok()).collect();
    assert_eq!(answers, ["[{\"a\":1}]\n", "[{\"a\":2}]\n"]);
}

#[test]
fn the_end_waits_for_requests_and_takes_no_more() {
    let mut served = Served::new();
    let sql = "SELECT value AS v FROM generate_series(1, 3000000)";
    let mut begun = served.send("POST", "/query", &[("Accept", "text/csv")], sql.as_bytes());
    let mut head = [0; 16];
    begun.read_exact(&mut head).unwrap();
    let address = served.server().http();
    let server = served.server.take().unwrap();
    let reader = std::thread::spawn(move || {
        // The server drains while this reads.
        std::thread::sleep(Duration::from_millis(200));
        let refused = TcpStream::connect(address).is_err();
        let mut rest = Vec::new();
        begun.read_to_end(&mut rest).unwrap();
        (refused, rest)
    });
    assert!(served.threads.block_on(server.drain(PATIENCE)));
    let (refused, rest) = reader.join().unwrap();
    assert!(refused);
    assert!(rest.ends_with(b"3000000\n\r\n0\r\n\r\n"), "the last rows are missing");
    drop(server);
    assert!(!served.token_file().exists());
}

#[test]
fn what_does_not_end_in_time_is_cancelled() {
    let mut served = Served::new();
    let stream = served.send("POST", "/query", &[], SILENT.as_bytes());
    served.wait_for(RUNNING, 1.0);
    let server = served.server.take().unwrap();
    assert!(!served.threads.block_on(server.drain(Duration::from_millis(100))));
    drop(server);
    let mut rest = Vec::new();
    let mut stream = stream;
    let _ = stream.read_to_end(&mut rest);
    assert!(rest.is_empty());
    let counted = served.threads.block_on(served.database.connect().collect("SELECT 1"));
    assert!(counted.is_ok());
}

#[test]
fn a_statement_that_works_long_within_a_batch_holds_up_no_other() {
    let served = Served::new();
    // More of them than threads of a set; there are four places.
    let long = "SELECT count(*) AS n FROM generate_series(1, 20000) a, generate_series(1, 100000) b \
                WHERE a.value * b.value % 7 = 3";
    let mut begun = served.send("POST", "/query", &[("Accept", "text/csv")], ENDLESS.as_bytes());
    begun.read_exact(&mut [0; 1 << 10]).unwrap();
    let streams: Vec<TcpStream> = (0..2).map(|_| served.send("POST", "/query", &[], long.as_bytes())).collect();
    served.wait_for(RUNNING, 3.0);
    std::thread::sleep(Duration::from_millis(300));
    for n in 1..4 {
        let sql = format!("SELECT count(*) AS n FROM generate_series(1, {n}000) WHERE value > 0");
        assert_eq!(served.query(&sql).ok(), format!("[{{\"n\":{n}000}}]\n"));
    }
    // One that runs already goes on, too.
    begun.read_exact(&mut vec![0; 8 << 20]).unwrap();
    assert_eq!(served.metric(RUNNING), 3.0);
    drop(streams);
}
