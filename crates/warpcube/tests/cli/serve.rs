//! `warpcube serve`: what it tells, whom it lets in, and how signals end it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::harness::Place;

/// How long a test waits for what must come.
const PATIENCE: Duration = Duration::from_secs(60);

/// The server, once it has told its address.
struct Serving {
    child: Child,
    address: String,
    told: BufReader<std::process::ChildStderr>,
}

impl Serving {
    fn start(place: &Place, arguments: &[&str]) -> Serving {
        let mut command = place.command();
        command.args(["serve", "--device", "cpu", "--listen", "127.0.0.1:0", "--flight-listen", "127.0.0.1:0"]);
        command.args(["--token-file", "token"]).args(arguments);
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut told = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        told.read_line(&mut line).unwrap();
        let address = line.trim_end().strip_prefix("HTTP: http://").expect(&line).to_string();
        line.clear();
        told.read_line(&mut line).unwrap();
        assert!(line.starts_with("Flight SQL: grpc://127.0.0.1:"), "{line}");
        line.clear();
        told.read_line(&mut line).unwrap();
        assert_eq!(line, "token: token\n");
        Serving { child, address, told }
    }

    fn query(&self, place: &Place, sql: &str) -> TcpStream {
        self.query_by(&String::from_utf8(place.read("token")).unwrap(), sql)
    }

    fn query_by(&self, token: &str, sql: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let (address, token, length) = (&self.address, token.trim_end(), sql.len());
        write!(
            stream,
            "POST /query HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nAccept: text/csv\r\n\
             Connection: close\r\nContent-Length: {length}\r\n\r\n{sql}"
        )
        .unwrap();
        stream
    }

    fn signal(&self, signal: &str) {
        let sent = Command::new("kill").args([format!("-{signal}"), self.child.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    /// Waits for the end; gives the exit code and what was told.
    fn end(mut self) -> (Option<i32>, String) {
        let clock = Instant::now();
        let code = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status.code();
            }
            assert!(clock.elapsed() < PATIENCE);
            std::thread::sleep(Duration::from_millis(10));
        };
        let mut told = String::new();
        self.told.read_to_string(&mut told).unwrap();
        (code, told)
    }
}

fn answer(mut stream: TcpStream) -> String {
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn a_catalog_is_served_and_signals_end_the_program_well() {
    let place = Place::new();
    for signal in ["TERM", "INT", "HUP"] {
        let serving = Serving::start(&place, &["kept/"]);
        assert_eq!(place.path("token").metadata().unwrap().permissions().mode() & 0o777, 0o600);
        let made = answer(serving.query(&place, "CREATE OR REPLACE VIEW kept AS SELECT 42 AS n"));
        assert!(made.starts_with("HTTP/1.1 200 "), "{made}");
        let rows = answer(serving.query(&place, "SELECT n FROM kept"));
        assert!(rows.contains("\r\nn\n42\n\r\n"), "{rows}");
        serving.signal(signal);
        let (code, told) = serving.end();
        assert_eq!(code, Some(0), "{signal}: {told}");
        assert!(!place.path("token").exists());
    }
    // The view is in the folder.
    assert_eq!(place.run(&["kept", "--format", "csv", "-c", "FROM kept"]).ok(), "n\n42\n");
}

#[test]
fn requests_end_before_the_program_and_a_second_signal_ends_both() {
    let place = Place::new();
    let serving = Serving::start(&place, &[]);
    let mut begun = serving.query(&place, "SELECT value AS v FROM generate_series(1, 3000000)");
    begun.read_exact(&mut [0; 16]).unwrap();
    serving.signal("TERM");
    let rows = answer(begun);
    assert!(rows.ends_with("3000000\n\r\n0\r\n\r\n"));
    assert_eq!(serving.end().0, Some(0));

    for (signal, code) in [("TERM", Some(143)), ("INT", Some(0))] {
        let mut serving = Serving::start(&place, &[]);
        let endless = serving.query(&place, "SELECT sum(value) FROM generate_series(1, 100000000000)");
        std::thread::sleep(Duration::from_millis(200));
        serving.signal(signal);
        let mut line = String::new();
        serving.told.read_line(&mut line).unwrap();
        assert!(line.starts_with("the server ends"), "{line}");
        serving.signal(signal);
        assert_eq!(serving.end().0, code, "{signal}");
        drop(endless);
    }
}

#[test]
fn wrong_addresses_and_files_are_refused() {
    let place = Place::new();
    let error = place.run(&["serve", "--listen", "0.0.0.0:0", "--token-file", "token"]).error(2);
    assert!(error.contains("SRV-001 0.0.0.0:0 is no address of loopback"), "{error}");
    place.write("notes", "a list of things\n");
    let error = place
        .run(&["serve", "--listen", "127.0.0.1:0", "--flight-listen", "127.0.0.1:0", "--token-file", "notes"])
        .error(2);
    assert!(error.contains("SRV-003 cannot write the token to notes"), "{error}");
    assert_eq!(place.read("notes"), b"a list of things\n");
    let error = place.run(&["serve", "nowhere"]).error(2);
    assert!(error.contains("no folder of that name"), "{error}");
}

#[test]
fn the_configuration_file_has_tokens_that_others_must_not_read() {
    let place = Place::new();
    let token = "a1e0c6b3f5d24e0f9a7b8c1d2e3f4a5b";
    let path = place.path("config.toml");
    let config = |tables: &str, mode: u32| {
        std::fs::write(&path, format!("max_rows = 7\n{tables}")).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
    };
    let reader = format!("[server.tokens.reader]\ntoken = '{token}'\nread_only = true\nrows = 2\ntimeout = '10s'\n");
    let serve = ["serve", "--config", "config.toml", "--token-file", "token"];
    for (tables, mode, told) in [
        (reader.as_str(), 0o644, "chmod 600"),
        ("[server.tokens.short]\ntoken = 'abc'\n", 0o600, "32 characters"),
        ("[server.tokens.default]\ntoken = 'a1e0c6b3f5d24e0f9a7b8c1d2e3f4a5b'\n", 0o600, "name this one otherwise"),
        ("[server.tokens.x]\ntoken = 'a1e0c6b3f5d24e0f9a7b8c1d2e3f4a5b'\nrow = 2\n", 0o600, "unknown field"),
        ("[server.tokens.x]\ntoken = 'a1e0c6b3f5d24e0f9a7b8c1d2e3f4a5b'\ntimeout = 'soon'\n", 0o600, "a time such as"),
    ] {
        config(tables, mode);
        let error = place.run(&serve).error(2);
        assert!(error.contains(told) && error.contains("config.toml"), "{error}");
        assert!(!error.contains(token), "{error}");
    }
    config(&reader, 0o600);
    // Other commands leave that part alone.
    assert_eq!(place.run(&["--config", "config.toml", "--format", "csv", "-c", "SELECT 1 AS a"]).ok(), "a\n1\n");
    let serving = Serving::start(&place, &["--config", "config.toml"]);
    for (by, sql, status) in [
        (token, "SELECT 1 AS a", "200"),
        (token, "CREATE TABLE t (a INT)", "403"),
        (token, "SELECT * FROM generate_series(1, 3)", "403"),
        ("b1e0c6b3f5d24e0f9a7b8c1d2e3f4a5b", "SELECT 1", "401"),
    ] {
        let told = answer(serving.query_by(by, sql));
        assert!(told.starts_with(&format!("HTTP/1.1 {status} ")), "{sql}: {told}");
    }
    let log = answer(serving.query(&place, "SELECT session, error FROM query_log() ORDER BY id"));
    assert!(log.contains("\r\nsession,error\nreader,\nreader,FILE-008\nreader,SRV-009\n\r\n"), "{log}");
    serving.signal("TERM");
    assert_eq!(serving.end().0, Some(0));
}
