//! Who is let in: the token, the names of the server, sizes.

use std::io::Write;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use warpcube_server::{Server, ServerError};

use crate::harness::{Answer, Served, options};

#[test]
fn every_path_asks_for_the_token() {
    let served = Served::new();
    let host = served.server().http().to_string();
    assert_eq!(served.token_file().metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let token = format!("Bearer {}", served.token());
    let half = &token[..40];
    let other = token.replace(char::is_numeric, "a");
    for path in ["/query", "/health", "/ready", "/metrics", "/openapi.json", "/nothing"] {
        let method = if path == "/query" { "POST" } else { "GET" };
        let ask = |authorization: Option<&str>| {
            let mut headers = vec![("Host", host.as_str())];
            headers.extend(authorization.map(|value| ("Authorization", value)));
            Answer::read(served.send_bare(method, path, &headers, b"SELECT 1"))
        };
        for wrong in [None, Some(half), Some(&other), Some("Bearer "), Some("Basic abc")] {
            let answer = ask(wrong);
            assert_eq!(answer.error(), (401, "SRV-005".into()), "{path} {wrong:?}");
            assert!(answer.head.contains("www-authenticate: bearer"));
            assert!(!answer.text().contains(&served.token()));
        }
        assert_eq!(ask(Some(&token)).status, if path == "/nothing" { 404 } else { 200 }, "{path}");
    }
    assert_eq!(served.metric("warpcube_requests_refused_total"), 30.0);
}

#[test]
fn many_wrong_tokens_hold_up_no_right_one() {
    let served = Served::new();
    let host = served.server().http().to_string();
    let headers = [("Host", host.as_str()), ("Authorization", "Bearer 0123")];
    let wrong: Vec<TcpStream> = (0..200).map(|_| served.send_bare("GET", "/health", &headers, b"")).collect();
    assert_eq!(served.query("SELECT 1 AS a").ok(), "[{\"a\":1}]\n");
    // Only so many wait for their answer, the others have it at once.
    served.wait_for("warpcube_requests_refused_total", 200.0);
    let answers: Vec<u16> = wrong.into_iter().map(|stream| Answer::read(stream).status).collect();
    let refused = answers.iter().filter(|status| **status == 429).count();
    assert!(refused > 0 && answers.iter().all(|status| matches!(status, 401 | 429)), "{answers:?}");
}

#[test]
fn web_pages_and_other_names_are_kept_out() {
    let served = Served::new();
    let token = format!("Bearer {}", served.token());
    let host = served.server().http().to_string();
    let own = format!("http://{host}");
    let ask = |headers: &[(&str, &str)]| {
        let mut all = vec![("Authorization", token.as_str())];
        all.extend_from_slice(headers);
        Answer::read(served.send_bare("POST", "/query", &all, b"SELECT 1 AS a"))
    };
    for headers in [
        vec![("Host", "evil.org")],
        vec![("Host", "127.0.0.1.evil.org")],
        vec![("Host", host.as_str()), ("Origin", "http://evil.org")],
        vec![("Host", host.as_str()), ("Origin", "null")],
        vec![("Host", host.as_str()), ("Origin", "http://localhost:1")],
    ] {
        assert_eq!(ask(&headers).error(), (403, "SRV-006".into()), "{headers:?}");
    }
    assert_eq!(ask(&[("Host", &host), ("Origin", &own)]).status, 200);
    assert_eq!(ask(&[("Host", "localhost")]).status, 200);
    // Answers give no other page leave to read them.
    assert!(!ask(&[("Host", &host), ("Origin", &own)]).head.contains("access-control"));
}

#[test]
fn other_addresses_are_refused_by_name() {
    let served = Served::new();
    for address in ["0.0.0.0:0", "192.0.2.1:0", "[::]:0"] {
        let mut options = options(&served.folder);
        options.http = address.parse().unwrap();
        let refused = Server::start(served.database.clone(), crate::harness::threads, &options).err().unwrap();
        assert!(matches!(refused, ServerError::NotLoopback(_)) && refused.to_string().contains(address), "{refused}");
    }
    let mut options = options(&served.folder);
    options.http = served.server().http();
    let refused = Server::start(served.database.clone(), crate::harness::threads, &options).err().unwrap();
    assert!(refused.to_string().starts_with("SRV-002 "), "{refused}");
}

#[test]
fn wrong_requests_are_refused_and_the_server_goes_on() {
    let served = Served::new();
    let huge = vec![b' '; (1 << 20) + 1];
    let json = [("Content-Type", "application/json")];
    for (method, path, headers, body, status) in [
        ("POST", "/query", &[][..], huge.as_slice(), 413),
        ("POST", "/query", &json[..], b"{".as_slice(), 400),
        ("POST", "/query", &[][..], b"\xff\xfe".as_slice(), 400),
        ("POST", "/query", &[("Accept", "image/png")][..], b"SELECT 1".as_slice(), 406),
        ("POST", "/query", &[][..], b"SELECT 1; SELECT 2".as_slice(), 400),
        ("GET", "/query", &[][..], b"".as_slice(), 405),
        ("GET", "/other", &[][..], b"".as_slice(), 404),
    ] {
        assert_eq!(
            served.ask(method, path, headers, body).error(),
            (status, "SRV-007".into()),
            "{method} {path} {status}"
        );
    }
    // What is no HTTP gets no statement run.
    for bytes in [&b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"[..], b"GET\r\n\r\n", b"\0\0\0\0\0\0\0\0"] {
        let mut stream = served.connect();
        let _ = stream.write_all(bytes);
    }
    let mut long = served.connect();
    let head = format!("GET /health HTTP/1.1\r\nHost: localhost\r\nX: {}\r\n\r\n", "x".repeat(1 << 20));
    let _ = long.write_all(head.as_bytes());
    drop(long);
    assert_eq!(served.query("SELECT 1 AS a").ok(), "[{\"a\":1}]\n");
    assert!(serde_json::from_str::<serde_json::Value>(&served.ask("GET", "/openapi.json", &[], b"").ok()).is_ok());
}

#[test]
fn two_thousand_connections_hold_up_no_statement() {
    const ALONE: &str = "WARPCUBE_TEST_ALONE";
    if std::env::var_os(ALONE).is_none() {
        // Both ends are in one process, which gets all files that the system gives.
        let mut alone = Command::new("sh");
        alone.args(["-c", "ulimit -n $(ulimit -Hn); exec \"$0\" \"$@\""]).arg(std::env::current_exe().unwrap());
        alone.args(["--exact", "admission::two_thousand_connections_hold_up_no_statement", "--nocapture"]);
        assert!(alone.env(ALONE, "1").status().unwrap().success());
        return;
    }
    let served = Served::new();
    let idle: Vec<TcpStream> = (0..2000).map(|_| served.connect()).collect();
    assert_eq!(served.query("SELECT 1 AS a").ok(), "[{\"a\":1}]\n");
    drop(idle);
    served.wait_for("warpcube_connections", 1.0);
    assert_eq!(served.query("SELECT 2 AS a").ok(), "[{\"a\":2}]\n");
}
