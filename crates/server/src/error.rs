//! What keeps a server from starting or ends it, and what a request is refused for.

use std::net::SocketAddr;
use std::path::PathBuf;

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use thiserror::Error;
use tonic::Status;
use warpcube_sql::{Position, SqlError};

/// An error of the start of a server; its text is one line that starts with its code.
#[derive(Debug, Error)]
pub enum ServerError {
    /// An address that other machines reach.
    #[error(
        "SRV-001 {0} is no address of loopback; the server has no TLS and no users, and listens on 127.0.0.1 or [::1]"
    )]
    NotLoopback(SocketAddr),
    /// An address that is taken, or is not this machine's.
    #[error("SRV-002 cannot listen on {address}: {reason}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The system's reason.
        reason: String,
    },
    /// The file of the token cannot be written.
    #[error("SRV-003 cannot write the token to {}: {reason}", path.display())]
    Token {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// The system gives no threads.
    #[error("SRV-004 the server cannot start its threads: {0}")]
    Threads(String),
    /// The device was lost, and the server was to end then.
    #[error("SRV-010 the device was lost, and --on-device-loss is exit; the server has ended")]
    DeviceLost,
}

/// Why a request is refused, or how its statement failed.
#[derive(Debug, Clone)]
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    /// One line that starts with a code.
    pub(crate) text: String,
    /// Where the statement's text has what the error is about.
    pub(crate) position: Option<Position>,
}

/// The body of an error.
#[derive(Serialize)]
struct Told<'a> {
    code: &'a str,
    message: &'a str,
    hint: Option<&'a str>,
    position: Option<Place>,
}

#[derive(Serialize)]
struct Place {
    line: usize,
    column: usize,
}

impl Refusal {
    fn new(status: StatusCode, text: String) -> Refusal {
        Refusal { status, text, position: None }
    }

    /// No token, or a wrong one.
    pub(crate) fn no_token(reason: &str) -> Refusal {
        let text = format!("SRV-005 {reason}; send 'Authorization: Bearer TOKEN' with the token of the server's file");
        Refusal::new(StatusCode::UNAUTHORIZED, text)
    }

    /// Too many wrong tokens.
    pub(crate) fn too_many_tokens() -> Refusal {
        Refusal::new(StatusCode::TOO_MANY_REQUESTS, "SRV-005 too many wrong tokens; wait a minute".into())
    }

    /// A name of the server that is not loopback, or a foreign web page.
    pub(crate) fn foreign(reason: String) -> Refusal {
        Refusal::new(StatusCode::FORBIDDEN, format!("SRV-006 {reason}"))
    }

    /// A request that is not what it should be.
    pub(crate) fn request(reason: impl Into<String>) -> Refusal {
        Refusal::new(StatusCode::BAD_REQUEST, format!("SRV-007 {}", reason.into()))
    }

    /// The same, with a status of its own.
    pub(crate) fn with_status(self, status: StatusCode) -> Refusal {
        Refusal { status, ..self }
    }

    /// A server that has no room, or ends.
    pub(crate) fn busy(reason: &str) -> Refusal {
        Refusal::new(StatusCode::SERVICE_UNAVAILABLE, format!("SRV-008 {reason}"))
    }

    /// A result that has more rows than a token may have.
    pub(crate) fn too_many_rows(most: u64, name: &str) -> Refusal {
        let text = format!("SRV-009 the result has more than {most} rows, the limit of token '{name}'; add LIMIT");
        Refusal::new(StatusCode::FORBIDDEN, text)
    }

    /// The error of a statement.
    pub(crate) fn of_statement(error: SqlError, sql: &str) -> Refusal {
        Refusal { status: status_of(&error), text: error.to_string(), position: error.position_in(sql) }
    }

    /// The code that the text starts with.
    pub(crate) fn code(&self) -> &str {
        self.text.split(' ').next().unwrap_or_default()
    }

    /// The error as JSON.
    pub(crate) fn json(&self) -> String {
        let (code, message) = self.text.split_once(' ').unwrap_or((&self.text, ""));
        let position = self.position.map(|Position { line, column }| Place { line, column });
        let told = Told { code, message, hint: hint(message), position };
        serde_json::to_string(&told).unwrap_or_default()
    }
}

/// What the text of an error says that can be done: it stands behind the last semicolon, outside of quotes.
fn hint(message: &str) -> Option<&str> {
    let (front, hint) = message.rsplit_once("; ")?;
    (front.matches('\'').count() % 2 == 0).then_some(hint)
}

/// The status of a statement's error: 4xx where the statement is to be changed.
fn status_of(error: &SqlError) -> StatusCode {
    let code = error.code();
    match code.as_str() {
        "SQL-007" => StatusCode::SERVICE_UNAVAILABLE,
        "SQL-008" => StatusCode::GATEWAY_TIMEOUT,
        "SQL-009" => StatusCode::SERVICE_UNAVAILABLE,
        "SQL-010" => StatusCode::INTERNAL_SERVER_ERROR,
        "SQL-016" => StatusCode::CONFLICT,
        "FILE-007" | "FILE-008" => StatusCode::FORBIDDEN,
        code if ["GPU", "COL", "ENG"].iter().any(|kind| code.starts_with(kind)) => StatusCode::INTERNAL_SERVER_ERROR,
        _ => StatusCode::BAD_REQUEST,
    }
}

impl From<Refusal> for Status {
    /// The error of gRPC: its message starts with the code.
    fn from(refusal: Refusal) -> Status {
        let text = refusal.text.clone();
        match (refusal.code(), refusal.status) {
            ("SQL-007" | "SQL-016", _) => Status::cancelled(text),
            ("SQL-009", _) | (_, StatusCode::TOO_MANY_REQUESTS) => Status::resource_exhausted(text),
            (_, StatusCode::UNAUTHORIZED) => Status::unauthenticated(text),
            (_, StatusCode::FORBIDDEN) => Status::permission_denied(text),
            (_, StatusCode::NOT_FOUND) => Status::not_found(text),
            (_, StatusCode::GATEWAY_TIMEOUT) => Status::deadline_exceeded(text),
            (_, StatusCode::SERVICE_UNAVAILABLE) => Status::unavailable(text),
            (_, StatusCode::INTERNAL_SERVER_ERROR) => Status::internal(text),
            _ => Status::invalid_argument(text),
        }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut response = Response::new(Body::from(self.json() + "\n"));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        match self.status {
            StatusCode::UNAUTHORIZED => {
                headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
                headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
            }
            _ => {}
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_stands_behind_the_last_semicolon_outside_of_quotes() {
        assert_eq!(hint("unknown table 'sals'; did you mean 'sales'?"), Some("did you mean 'sales'?"));
        assert_eq!(hint("timed out after 5 ms; raise a; b"), Some("b"));
        assert_eq!(hint("syntax error: found: 'a; b'"), None);
        assert_eq!(hint("cancelled"), None);
    }
}
