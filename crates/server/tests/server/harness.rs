//! A server on a free port, and a plain client of HTTP.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};
use warpcube_server::{Server, ServerOptions, TokenPlace};
use warpcube_sql::{Database, DatabaseOptions};

/// How long a test waits for what must come.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// Rows without end.
pub(crate) const ENDLESS: &str = "SELECT value AS v FROM generate_series(1, 100000000000)";
/// A statement without end that gives no row before it.
pub(crate) const SILENT: &str = "SELECT sum(value) AS s FROM generate_series(1, 100000000000)";

/// A server, its database, and threads for statements beside it.
pub(crate) struct Served {
    pub(crate) server: Option<Server>,
    pub(crate) database: Database,
    pub(crate) threads: Runtime,
    pub(crate) folder: TempDir,
}

pub(crate) fn options(folder: &TempDir) -> ServerOptions {
    ServerOptions {
        http: "127.0.0.1:0".parse().unwrap(),
        flight: "127.0.0.1:0".parse().unwrap(),
        token: TokenPlace::File(folder.path().join("token")),
        tokens: Vec::new(),
        secret_files: Vec::new(),
        statements_max: 4,
        body_max: 1 << 20,
    }
}

/// Two threads, as of a small machine.
pub(crate) fn threads() -> std::io::Result<Runtime> {
    Builder::new_multi_thread().worker_threads(2).enable_all().thread_stack_size(64 << 20).build()
}

impl Served {
    pub(crate) fn new() -> Served {
        Served::with(DatabaseOptions::new(), |options| options)
    }

    pub(crate) fn with(database: DatabaseOptions, change: impl FnOnce(ServerOptions) -> ServerOptions) -> Served {
        Served::on("cpu", database, change)
    }

    /// A server whose database is on a device.
    pub(crate) fn on(
        device: &str,
        database: DatabaseOptions,
        change: impl FnOnce(ServerOptions) -> ServerOptions,
    ) -> Served {
        let folder = tempfile::tempdir().unwrap();
        let threads = threads().unwrap();
        let database = Database::open(database.with("warpcube.device", device)).unwrap();
        let options = change(options(&folder));
        let server = Server::start(database.clone(), crate::harness::threads, &options).unwrap();
        Served { server: Some(server), database, threads, folder }
    }

    pub(crate) fn server(&self) -> &Server {
        self.server.as_ref().unwrap()
    }

    pub(crate) fn token_file(&self) -> PathBuf {
        self.folder.path().join("token")
    }

    pub(crate) fn token(&self) -> String {
        std::fs::read_to_string(self.token_file()).unwrap().trim_end().to_string()
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.server().http()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Sends a request with the token, the right host and these headers, and does not read.
    pub(crate) fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> TcpStream {
        let host = self.server().http().to_string();
        let token = format!("Bearer {}", self.token());
        let mut all = vec![("Host", host.as_str()), ("Authorization", token.as_str())];
        all.extend_from_slice(headers);
        self.send_bare(method, path, &all, body)
    }

    /// Sends a request with these headers alone.
    pub(crate) fn send_bare(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> TcpStream {
        let mut stream = self.connect();
        let mut text = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        headers.iter().for_each(|(name, value)| text += &format!("{name}: {value}\r\n"));
        text += &format!("Content-Length: {}\r\n\r\n", body.len());
        // A server that refuses a request may close before all of it is written.
        let _ = stream.write_all(text.as_bytes()).and_then(|()| stream.write_all(body));
        stream
    }

    pub(crate) fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        Answer::read(self.send(method, path, headers, body))
    }

    /// The answer to a statement as text.
    pub(crate) fn query(&self, sql: &str) -> Answer {
        self.ask("POST", "/query", &[], sql.as_bytes())
    }

    /// A sample of the metrics.
    pub(crate) fn metric(&self, name: &str) -> f64 {
        let text = self.ask("GET", "/metrics", &[], b"").text();
        let sample = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        sample.unwrap_or_else(|| panic!("no {name} in\n{text}")).parse().unwrap()
    }

    pub(crate) fn wait_for(&self, name: &str, value: f64) {
        let clock = Instant::now();
        while self.metric(name) != value {
            assert!(clock.elapsed() < PATIENCE, "{name} is {} and not {value}", self.metric(name));
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// An answer of HTTP/1.1.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
    /// Whether all of the body came.
    pub(crate) is_whole: bool,
}

impl Answer {
    pub(crate) fn read(mut stream: TcpStream) -> Answer {
        let mut bytes = Vec::new();
        // A connection that is reset has what came before.
        let _ = stream.read_to_end(&mut bytes);
        let split = bytes.windows(4).position(|window| window == b"\r\n\r\n").expect("a head");
        let head = String::from_utf8(bytes[..split].to_vec()).unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let rest = &bytes[split + 4..];
        let head = head.to_ascii_lowercase();
        let (body, is_whole) = match head.contains("transfer-encoding: chunked") {
            true => chunks(rest),
            false => (rest.to_vec(), true),
        };
        Answer { status, head, body, is_whole }
    }

    pub(crate) fn text(&self) -> String {
        assert!(self.is_whole);
        String::from_utf8(self.body.clone()).unwrap()
    }

    /// The text of an answer that is no error.
    pub(crate) fn ok(self) -> String {
        assert_eq!(self.status, 200, "{}", self.text());
        self.text()
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// Status and code of an error.
    pub(crate) fn error(&self) -> (u16, String) {
        (self.status, self.json()["code"].as_str().unwrap().to_string())
    }
}

/// The body of chunks, and whether the last one came.
fn chunks(mut rest: &[u8]) -> (Vec<u8>, bool) {
    let mut body = Vec::new();
    while let Some(end) = rest.windows(2).position(|window| window == b"\r\n") {
        let length = usize::from_str_radix(std::str::from_utf8(&rest[..end]).unwrap(), 16).unwrap();
        rest = &rest[end + 2..];
        if length == 0 {
            return (body, true);
        }
        body.extend_from_slice(&rest[..length.min(rest.len())]);
        rest = rest.get(length + 2..).unwrap_or_default();
    }
    (body, false)
}
