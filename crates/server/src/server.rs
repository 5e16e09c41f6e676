//! A server: its threads, its doors, its token, and its end.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use warpcube_door::{Crew, MakeThreads};
use warpcube_sql::Database;

use crate::clients::{Clients, TokenOptions};
use crate::door::Protocol;
use crate::error::ServerError;
use crate::metrics::Metrics;
use crate::seal::Seal;
use crate::shared::Shared;
use crate::statements::Statements;
use crate::token::{Token, Turnstile, WRONG};
use crate::turns::Turns;
use crate::{door, flight, http};

/// Threads that serve requests; statements run on others.
const THREADS: usize = 2;

/// Connections that wait to be taken.
const WAITING_MAX: u32 = 4096;
/// How often the device is looked at.
const LOST_TICK: Duration = Duration::from_millis(500);
/// How long requests have to notice that the server is dropped.
const END: Duration = Duration::from_millis(200);

/// Where the token is written.
#[derive(Debug, Clone)]
pub enum TokenPlace {
    /// This file.
    File(PathBuf),
    /// A file of this folder that has the port in its name, so that servers do not share one.
    Folder(PathBuf),
}

/// What a server does.
#[derive(Clone)]
pub struct ServerOptions {
    /// The address of HTTP; port 0 is any that is free.
    pub http: SocketAddr,
    /// The address of Flight SQL; port 0 is any that is free.
    pub flight: SocketAddr,
    /// Where the token is written; its name has the port of HTTP.
    pub token: TokenPlace,
    /// Tokens beside the one that the server draws.
    pub tokens: Vec<TokenOptions>,
    /// Files with secrets beside that of the token, which no statement reads or writes.
    pub secret_files: Vec<PathBuf>,
    /// Statements that run at once; others wait for their turn.
    pub statements_max: usize,
    /// Bytes of the body of a request.
    pub body_max: usize,
}

/// A server that runs. Dropping it, outside of a runtime, ends it and cancels its statements.
pub struct Server {
    /// None only once it is dropped.
    threads: Option<Runtime>,
    shared: Arc<Shared>,
    http: SocketAddr,
    flight: SocketAddr,
    token_file: PathBuf,
    ending: watch::Sender<bool>,
    /// True once the doors are closed and all requests are answered.
    ended: watch::Receiver<bool>,
    doors: JoinHandle<()>,
}

impl Server {
    /// Starts a server of a database, whose statements run on threads that `make` makes. Called outside of a runtime.
    ///
    /// # Errors
    /// An address that is not loopback, or not free; a token that cannot be written; no threads.
    pub fn start(database: Database, make: MakeThreads, options: &ServerOptions) -> Result<Server, ServerError> {
        let threads = Builder::new_multi_thread().worker_threads(THREADS).thread_name("requests").enable_all().build();
        let no_threads = |error: std::io::Error| ServerError::Threads(error.to_string());
        let threads = threads.map_err(no_threads)?;
        let statements_max = options.statements_max.max(1);
        let crew = Crew::new(make, statements_max).map_err(no_threads)?;
        let (listener, http) = listen(&threads, options.http)?;
        let (flight_listener, flight) = listen(&threads, options.flight)?;
        let token_file = match &options.token {
            TokenPlace::File(path) => path.clone(),
            TokenPlace::Folder(folder) => folder.join(format!("token-{}", http.port())),
        };
        let no_token =
            |error: std::io::Error| ServerError::Token { path: token_file.clone(), reason: error.to_string() };
        let token = Token::create(&token_file).map_err(no_token)?;
        let secret: Vec<PathBuf> = options.secret_files.iter().chain([&token_file]).cloned().collect();
        database.keep_secret(&secret);
        let seal = Seal::new().map_err(no_token)?;
        let metrics = Arc::new(Metrics::default());
        let (ending, is_ending) = watch::channel(false);
        let clients = Clients::new(token, &options.tokens);
        let turns = Turns::new(statements_max, clients.statements_max());
        let shared = Arc::new(Shared {
            statements: Statements::new(database, crew, turns),
            clients,
            turnstile: Turnstile::new(WRONG),
            seal,
            metrics: metrics.clone(),
            body_max: options.body_max,
            ending: is_ending.clone(),
        });
        let (end, ended) = watch::channel(false);
        let (http_routes, flight_routes) = (http::routes(&shared), flight::routes(&shared));
        let doors = threads.spawn(async move {
            let room = door::room();
            tokio::join!(
                door::serve(Protocol::Http1, listener, http_routes, &room, &metrics, is_ending.clone()),
                door::serve(Protocol::Http2, flight_listener, flight_routes, &room, &metrics, is_ending.clone()),
            );
            end.send_replace(true);
        });
        Ok(Server { threads: Some(threads), shared, http, flight, token_file, ending, ended, doors })
    }

    /// The address of HTTP.
    pub fn http(&self) -> SocketAddr {
        self.http
    }

    /// The address of Flight SQL.
    pub fn flight(&self) -> SocketAddr {
        self.flight
    }

    /// The file of the token.
    pub fn token_file(&self) -> &Path {
        &self.token_file
    }

    /// Waits until the device is lost: it answers nothing more in this process.
    pub async fn device_lost(&self) {
        while !self.shared.statements.database().device().is_lost() {
            tokio::time::sleep(LOST_TICK).await;
        }
    }

    /// Takes no connection and no statement any more, and waits until the requests that are there are answered, no
    /// longer than `most`. Those that are left then are cancelled when the server is dropped. Gives whether none was.
    pub async fn drain(&self, most: Duration) -> bool {
        self.ending.send_replace(true);
        self.shared.statements.close();
        let mut ended = self.ended.clone();
        tokio::time::timeout(most, ended.wait_for(|ended| *ended)).await.is_ok()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.doors.abort();
        if let Some(threads) = self.threads.take() {
            threads.shutdown_timeout(END);
        }
        self.shared.statements.end();
        self.shared.clients.drawn().remove(&self.token_file);
    }
}

/// Listens on an address of loopback; gives the port that it has.
fn listen(threads: &Runtime, address: SocketAddr) -> Result<(TcpListener, SocketAddr), ServerError> {
    if !address.ip().is_loopback() {
        return Err(ServerError::NotLoopback(address));
    }
    let failed = |error: std::io::Error| ServerError::Listen { address, reason: error.to_string() };
    let _context = threads.enter();
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }.map_err(failed)?;
    // A port whose former server has just ended is free.
    let bound = socket.set_reuseaddr(true).and_then(|()| socket.bind(address));
    let listener = bound.and_then(|()| socket.listen(WAITING_MAX)).map_err(failed)?;
    let own = listener.local_addr().map_err(failed)?;
    Ok((listener, own))
}
