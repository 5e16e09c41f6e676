//! The door: takes connections, serves requests on them, and closes when the server ends.
//!
//! A connection that sends no request for a while is closed, so that idle ones leave room. There are no more than the
//! process has files for; others wait in the system's queue, and get in when one closes.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::sync::watch::Receiver;
use tokio::task::JoinSet;
use tracing::debug;

use crate::metrics::Metrics;

/// The time in which the head of a request, the first and the next, has to be there.
const HEAD_TIME: Duration = Duration::from_secs(15);
/// Bytes of a head.
const HEAD_BYTES: usize = 64 << 10;
/// Calls of one connection at once.
const STREAMS_MAX: u32 = 256;
/// Connections that are open at once.
const CONNECTIONS_MAX: usize = 4096;
/// Files that are left for the database.
const FILES_LEFT: usize = 256;
/// The wait after the system has refused a connection: it has no files for one.
const REFUSED: Duration = Duration::from_millis(50);

/// The versions of HTTP.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Protocol {
    Http1,
    /// What gRPC is made of, without an upgrade from another version.
    Http2,
}

/// Room for connections, which doors share.
pub(crate) fn room() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(connections_max()))
}

/// Serves connections until the server ends, and those that are open then to the end of their requests.
pub(crate) async fn serve(
    protocol: Protocol,
    listener: TcpListener,
    routes: Router,
    room: &Arc<Semaphore>,
    metrics: &Arc<Metrics>,
    ending: Receiver<bool>,
) {
    let mut connections = JoinSet::new();
    let mut ended = ending.clone();
    let mut end = pin!(ended.wait_for(|ending| *ending));
    loop {
        let accepted = tokio::select! {
            biased;
            _ = &mut end => break,
            Some(_) = connections.join_next() => continue,
            accepted = accept(&listener, room) => accepted,
        };
        let (routes, metrics, ending) = (routes.clone(), metrics.clone(), ending.clone());
        connections.spawn(async move {
            let (stream, _place) = accepted;
            let _open = metrics.connect();
            if let Err(error) = connection(protocol, stream, routes, ending).await {
                debug!(%error, "a connection ended");
            }
        });
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

/// The next connection, with its place.
async fn accept(
    listener: &TcpListener,
    room: &Arc<Semaphore>,
) -> (TcpStream, Option<tokio::sync::OwnedSemaphorePermit>) {
    // The semaphore is never closed.
    let place = room.clone().acquire_owned().await.ok();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return (stream, place),
            Err(error) => {
                debug!(%error, "no connection");
                tokio::time::sleep(REFUSED).await;
            }
        }
    }
}

async fn connection(
    protocol: Protocol,
    stream: TcpStream,
    routes: Router,
    mut ending: Receiver<bool>,
) -> Result<(), hyper::Error> {
    // Small answers are not held back for larger packets.
    let _ = stream.set_nodelay(true);
    let service = TowerToHyperService::new(routes);
    match protocol {
        Protocol::Http1 => {
            let mut builder = http1::Builder::new();
            builder.timer(TokioTimer::new()).header_read_timeout(HEAD_TIME).max_buf_size(HEAD_BYTES);
            let mut serving = pin!(builder.serve_connection(TokioIo::new(stream), service));
            tokio::select! {
                biased;
                done = serving.as_mut() => return done,
                _ = ending.wait_for(|ending| *ending) => serving.as_mut().graceful_shutdown(),
            }
            serving.await
        }
        Protocol::Http2 => {
            // A client that says nothing gets no connection of HTTP/2, whose pings find it once it has one.
            if tokio::time::timeout(HEAD_TIME, stream.peek(&mut [0])).await.is_err() {
                return Ok(());
            }
            let mut builder = http2::Builder::new(TokioExecutor::new());
            builder.timer(TokioTimer::new()).keep_alive_interval(HEAD_TIME).keep_alive_timeout(HEAD_TIME);
            builder.max_header_list_size(HEAD_BYTES as u32).max_concurrent_streams(STREAMS_MAX);
            let mut serving = pin!(builder.serve_connection(TokioIo::new(stream), service));
            tokio::select! {
                biased;
                done = serving.as_mut() => return done,
                _ = ending.wait_for(|ending| *ending) => serving.as_mut().graceful_shutdown(),
            }
            serving.await
        }
    }
}

/// Connections that the process has files for.
fn connections_max() -> usize {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let files = limits.lines().find_map(|line| line.strip_prefix("Max open files"));
    let files = files.and_then(|rest| rest.split_whitespace().next()?.parse::<usize>().ok());
    files.map_or(CONNECTIONS_MAX, |files| files.saturating_sub(FILES_LEFT).clamp(FILES_LEFT / 4, CONNECTIONS_MAX))
}
