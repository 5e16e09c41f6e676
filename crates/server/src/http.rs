//! The door of HTTP: statements, health and metrics.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Extension, State};
use axum::http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use futures::stream::unfold;
use serde::Deserialize;
use serde_json::Value;
use warpcube_door::bind;
use warpcube_sql::{Script, SqlError};

use crate::clients::Client;
use crate::error::Refusal;
use crate::guard::guard;
use crate::literals::parameters;
use crate::results::{Format, encode};
use crate::shared::Shared;
use crate::statements::Statement;

/// The time that the body of a request has to come.
const BODY_TIME: Duration = Duration::from_secs(30);
/// The description of these paths, for programs that make clients.
const OPENAPI: &str = include_str!("openapi.json");

/// The paths, all behind the guard.
pub(crate) fn routes(shared: &Arc<Shared>) -> Router {
    let json = |text: &'static str| ([(CONTENT_TYPE, "application/json")], text).into_response();
    Router::new()
        .route("/query", post(query))
        .route("/health", get(move || async move { json("{\"status\":\"ok\"}\n") }))
        .route("/ready", get(ready))
        .route("/metrics", get(metrics))
        .route("/openapi.json", get(move || async move { json(OPENAPI) }))
        .fallback(|| async { Refusal::request("there is no such path").with_status(StatusCode::NOT_FOUND) })
        .method_not_allowed_fallback(|| async {
            Refusal::request("the path is asked by another method").with_status(StatusCode::METHOD_NOT_ALLOWED)
        })
        .layer(from_fn_with_state(shared.clone(), guard))
        .with_state(shared.clone())
}

/// A statement with what belongs to it, as JSON.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    sql: String,
    params: Option<Value>,
    format: Option<String>,
}

async fn query(
    State(shared): State<Arc<Shared>>,
    Extension(client): Extension<Arc<Client>>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Refusal> {
    let body = read(body, shared.body_max).await?;
    let asked = asked(&headers, &body)?;
    let format = format_of(&headers, asked.format.as_deref())?;
    let (text, front) = only_statement(&asked.sql)?;
    let bound = asked.params.as_ref().map(|params| parameters(params).and_then(|params| bind(&text, &params)));
    let bound = bound.transpose().map_err(Refusal::request)?;
    let statement = Statement::of(client, text.clone()).bound_to(bound.as_ref().map(|bound| bound.text.clone()));
    // Positions are those of the request's text.
    let placed = move |mut refusal: Refusal| {
        let unbound = |position| bound.as_ref().map_or(position, |bound| bound.position_in(&text, position));
        refusal.position = refusal.position.map(|position| front.before(unbound(position)));
        refusal
    };
    let mut rows = shared.statements.start(statement, move |schema, _| encode(format, schema)).await?;
    let first = rows.next().await.transpose().map_err(placed)?;
    let pieces = unfold((first, rows), |(first, mut rows)| async move {
        let piece = match first {
            Some(piece) => Ok(piece),
            // The status is sent already: the connection ends before the last chunk of the body.
            None => rows.next().await?.map_err(|refusal| std::io::Error::other(refusal.text)),
        };
        Some((piece, (None::<Bytes>, rows)))
    });
    let mut response = Response::new(Body::from_stream(pieces));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(format.media_type()));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

/// The whole body, unless it is too large or too slow.
async fn read(body: Body, most: usize) -> Result<Bytes, Refusal> {
    let too_slow = || {
        let reason = format!("the body took more than {} s", BODY_TIME.as_secs());
        Refusal::request(reason).with_status(StatusCode::REQUEST_TIMEOUT)
    };
    let read = tokio::time::timeout(BODY_TIME, axum::body::to_bytes(body, most)).await.map_err(|_| too_slow())?;
    read.map_err(|error| match is_too_large(&error) {
        true => {
            Refusal::request(format!("the body has more than {most} bytes")).with_status(StatusCode::PAYLOAD_TOO_LARGE)
        }
        false => Refusal::request(format!("the body cannot be read: {error}")),
    })
}

fn is_too_large(error: &axum::Error) -> bool {
    std::error::Error::source(error).is_some_and(|source| source.to_string() == "length limit exceeded")
}

/// The statement of a body: JSON if it says so, otherwise the text itself.
fn asked(headers: &HeaderMap, body: &Bytes) -> Result<Asked, Refusal> {
    let media_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let media_type = media_type.split(';').next().unwrap_or_default().trim();
    if media_type.eq_ignore_ascii_case("application/json") {
        return serde_json::from_slice(body)
            .map_err(|error| Refusal::request(format!("the body is not JSON as expected: {error}")));
    }
    match std::str::from_utf8(body) {
        Ok(sql) => Ok(Asked { sql: sql.to_string(), params: None, format: None }),
        Err(_) => Err(Refusal::request("the body is not text of UTF-8")),
    }
}

/// The format that the body names, or else the one that the client accepts.
fn format_of(headers: &HeaderMap, named: Option<&str>) -> Result<Format, Refusal> {
    const KNOWN: &str = "json, ndjson, csv and arrow";
    if let Some(name) = named {
        let unknown = || Refusal::request(format!("there is no format '{name}'; there are {KNOWN}"));
        return Format::named(name).ok_or_else(unknown);
    }
    let Some(accept) = headers.get(ACCEPT) else { return Ok(Format::Json) };
    let format = Format::accepted(accept.to_str().unwrap_or_default());
    let none = || Refusal::request(format!("no format that the client accepts; there are {KNOWN}"));
    format.ok_or_else(|| none().with_status(StatusCode::NOT_ACCEPTABLE))
}

/// Where a statement stands in its text: lines before it, and characters before it in its first line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Front {
    lines: usize,
    columns: usize,
}

impl Front {
    /// A position of the statement as one of the text.
    fn before(self, mut position: warpcube_sql::Position) -> warpcube_sql::Position {
        if position.line == 1 {
            position.column += self.columns;
        }
        position.line += self.lines;
        position
    }
}

/// The one statement of a text, without its semicolon.
pub(crate) fn only_statement(text: &str) -> Result<(String, Front), Refusal> {
    let mut statements = Script::split(text).into_statements(text);
    let Some(statement) = statements.pop().filter(|_| statements.is_empty()) else {
        // What is nothing is the parser's to refuse.
        return match text.trim().is_empty() || statements.is_empty() {
            true => Err(Refusal::of_statement(SqlError::Syntax("the statement is empty".into()), text)),
            false => Err(Refusal::request("a request has one statement")),
        };
    };
    let lines = statement.line - 1;
    let begins = |(at, _): &(usize, &str)| text[..*at].matches('\n').count() == lines;
    let at = text.match_indices(&statement.sql).find(begins).map_or(0, |(at, _)| at);
    let columns = text[..at].rsplit('\n').next().unwrap_or_default().chars().count();
    Ok((statement.sql, Front { lines, columns }))
}

/// Whether the server takes statements.
async fn ready(State(shared): State<Arc<Shared>>) -> Response {
    let device = shared.statements.database().device();
    let (is_ready, reason) = match (*shared.ending.borrow(), device.is_lost()) {
        (true, _) => (false, Some("the server ends")),
        // The CPU goes on with what does not need the device.
        (false, true) => (true, Some("the device is lost; statements run on the CPU")),
        (false, false) => (true, None),
    };
    let status = if is_ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let told = serde_json::json!({"ready": is_ready, "device_open": device.is_gpu_open(), "reason": reason});
    (status, [(CONTENT_TYPE, "application/json")], format!("{told}\n")).into_response()
}

async fn metrics(State(shared): State<Arc<Shared>>) -> Response {
    (
        [(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")],
        shared.metrics.text(&shared.statements.database().statement_counts()),
    )
        .into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_has_one_statement_whose_place_is_known() {
        let (sql, front) = only_statement("-- one\n  select 1 ; -- done").unwrap();
        assert!(sql.ends_with("select 1"), "{sql}");
        assert_eq!(front.lines + sql.matches('\n').count(), 1);
        assert!(only_statement("select 1; select 2").unwrap_err().text.starts_with("SRV-007"));
        assert!(only_statement(" ; ").unwrap_err().text.starts_with("SQL-001"));
        let (_, front) = only_statement("\n\n   select nope").unwrap();
        assert_eq!(front, Front { lines: 2, columns: 3 });
    }
}
