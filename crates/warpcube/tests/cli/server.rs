//! A server on loopback: files of a web server, and below `/bucket/` those of a bucket of S3.
//!
//! It answers HEAD and GET with ranges, and `ListObjectsV2` in pages of two files. Requests for the bucket have to be
//! signed with the key `test`, unless it is public. Each request is noted.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// When files were written, where they tell a time.
const WRITTEN: &str = "Thu, 01 Jan 2026 00:00:00 GMT";

/// How a file is served.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Usual,
    /// Whole, whatever range is asked for.
    Whole,
    /// Without a tag and a time.
    Untold,
    /// To GET alone, as a signed URL is.
    Signed,
    /// Some bytes, then nothing for long.
    Stuck,
    /// With this status.
    Refused(u16),
}

struct Served {
    body: Vec<u8>,
    tag: usize,
    way: Way,
}

#[derive(Default)]
struct Files {
    files: BTreeMap<String, Served>,
    requests: Vec<String>,
    written: usize,
    is_public: bool,
}

pub(crate) struct Server {
    port: u16,
    files: Arc<Mutex<Files>>,
}

impl Server {
    pub(crate) fn new() -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let files: Arc<Mutex<Files>> = Arc::default();
        let of_server = files.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let files = of_server.clone();
                // A client that goes away ends its connection.
                std::thread::spawn(move || drop(serve(&stream, &files)));
            }
        });
        Server { port, files }
    }

    fn locked(&self) -> MutexGuard<'_, Files> {
        self.files.lock().unwrap()
    }

    /// The URL of a path.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}/{path}", self.port)
    }

    /// Has a file from now on, `bucket/…` in the bucket.
    pub(crate) fn put(&self, path: &str, body: impl AsRef<[u8]>, way: Way) {
        let mut files = self.locked();
        files.written += 1;
        let served = Served { body: body.as_ref().to_vec(), tag: files.written, way };
        files.files.insert(path.to_string(), served);
    }

    pub(crate) fn remove(&self, path: &str) {
        self.locked().files.remove(path);
    }

    /// Lets everybody read the bucket.
    pub(crate) fn be_public(&self) {
        self.locked().is_public = true;
    }

    /// The requests since this was asked before: `GET /a.parquet 0-7`.
    pub(crate) fn requests(&self) -> Vec<String> {
        std::mem::take(&mut self.locked().requests)
    }
}

/// Answers the requests of a connection.
fn serve(stream: &TcpStream, files: &Mutex<Files>) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let mut words = line.split_whitespace().map(str::to_string);
        let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let mut headers = BTreeMap::new();
        loop {
            let mut header = String::new();
            reader.read_line(&mut header)?;
            let Some((name, value)) = header.trim().split_once(':') else { break };
            headers.insert(name.to_lowercase(), value.trim().to_string());
        }
        let range = headers.get("range").and_then(|range| range.strip_prefix("bytes=")?.split_once('-'));
        let range = range.map(|(from, to)| (from.parse::<usize>().unwrap(), to.parse::<usize>().unwrap()));
        let (path, query) =
            target.trim_start_matches('/').split_once('?').unwrap_or((target.trim_start_matches('/'), ""));
        let path = &path.replace("%3D", "=");
        let shown = range.map_or(String::new(), |(from, to)| format!(" {from}-{to}"));
        let mut answer = Answer::default();
        let is_stuck = {
            let mut files = files.lock().unwrap();
            files.requests.push(format!("{method} /{path}{shown}"));
            let authorization = headers.get("authorization").map_or("", String::as_str);
            let is_known = files.is_public || authorization.contains("Credential=test/");
            match files.files.get(path) {
                _ if path.starts_with("bucket") && !is_known => {
                    answer.xml(403, "<Error><Code>AccessDenied</Code></Error>")
                }
                _ if path.starts_with("nobucket") => answer.xml(404, "<Error><Code>NoSuchBucket</Code></Error>"),
                _ if path == "bucket" => answer.xml(200, &listed(&files, query)),
                Some(file) => answer.file(file, &method, range),
                None => answer.status = 404,
            }
            files.files.get(path).is_some_and(|file| file.way == Way::Stuck && method == "GET")
        };
        let mut out = stream;
        let mut head = format!("HTTP/1.1 {} Said\r\nContent-Length: {}\r\n", answer.status, answer.length());
        answer.headers.iter().for_each(|header| head.push_str(&format!("{header}\r\n")));
        out.write_all(format!("{head}\r\n").as_bytes())?;
        if method != "HEAD" {
            match is_stuck {
                true => {
                    out.write_all(&answer.body[..answer.body.len() / 2])?;
                    std::thread::sleep(Duration::from_secs(60));
                    return Ok(());
                }
                false => out.write_all(&answer.body)?,
            }
        }
    }
}

#[derive(Default)]
struct Answer {
    status: u16,
    headers: Vec<String>,
    body: Vec<u8>,
}

impl Answer {
    fn length(&self) -> usize {
        self.body.len()
    }

    fn xml(&mut self, status: u16, text: &str) {
        (self.status, self.body) = (status, text.as_bytes().to_vec());
    }

    fn file(&mut self, file: &Served, method: &str, range: Option<(usize, usize)>) {
        (self.status, self.body) = (200, file.body.clone());
        if file.way != Way::Untold {
            self.headers.extend([format!("ETag: \"{}\"", file.tag), format!("Last-Modified: {WRITTEN}")]);
        }
        match (file.way, range) {
            (Way::Refused(status), _) => (self.status, self.body) = (status, b"as the test wants".to_vec()),
            (Way::Signed, _) if method == "HEAD" => (self.status, self.body) = (403, Vec::new()),
            (Way::Whole, _) | (_, None) => {}
            (_, Some((from, to))) => {
                let to = to.min(file.body.len() - 1);
                self.headers.push(format!("Content-Range: bytes {from}-{to}/{}", file.body.len()));
                (self.status, self.body) = (206, file.body[from..=to].to_vec());
            }
        }
    }
}

/// A page of the list of the bucket's files.
fn listed(files: &Files, query: &str) -> String {
    let value = |name: &str| {
        let found = query.split('&').filter_map(|part| part.split_once('=')).find(|(known, _)| *known == name);
        found.map_or(String::new(), |(_, value)| value.replace("%2F", "/").replace("%3D", "="))
    };
    let (prefix, from) = (format!("bucket/{}", value("prefix")), value("continuation-token"));
    let all = files.files.iter().filter(|(path, _)| path.starts_with(&prefix) && path.as_str() > from.as_str());
    let mut page: Vec<_> = all.take(3).collect();
    let is_more = page.len() > 2;
    page.truncate(2);
    let mut text = String::from("<ListBucketResult>");
    for (path, file) in &page {
        let key = path.trim_start_matches("bucket/");
        text.push_str(&format!(
            "<Contents><Key>{key}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified><ETag>&quot;{}&quot;</ETag>\
             <Size>{}</Size></Contents>",
            file.tag,
            file.body.len()
        ));
    }
    if let Some((last, _)) = page.last().filter(|_| is_more) {
        text.push_str(&format!("<NextContinuationToken>{last}</NextContinuationToken>"));
    }
    text + "</ListBucketResult>"
}
