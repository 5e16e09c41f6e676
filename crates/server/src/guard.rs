//! The guard before every request.
//!
//! A web page in a browser of this machine reaches loopback too. It sends its own origin, and a page whose name was
//! pointed at 127.0.0.1 (DNS rebinding) sends that name as the host. So the host has to be loopback by its own text,
//! and the origin absent or the server itself. Then the token is asked for, of every path.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, HOST, ORIGIN};
use axum::http::{HeaderMap, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use base64::prelude::{BASE64_STANDARD, Engine};
use tonic::Status;

use crate::clients::Client;
use crate::error::Refusal;
use crate::shared::Shared;

/// Lets a request through, with the holder of its token, or says why not.
pub(crate) async fn guard(State(shared): State<Arc<Shared>>, mut request: Request, next: Next) -> Response {
    let content = request.headers().get(CONTENT_TYPE);
    let is_grpc = content.is_some_and(|content| content.as_bytes().starts_with(b"application/grpc"));
    match admit(&shared, request.uri(), request.headers()).await {
        Ok(client) => {
            request.extensions_mut().insert(client);
            next.run(request).await
        }
        Err(refusal) => {
            shared.metrics.refused();
            match is_grpc {
                // Its clients read the headers of an answer of status 200.
                true => Status::from(refusal).into_http(),
                false => refusal.into_response(),
            }
        }
    }
}

async fn admit(shared: &Shared, uri: &Uri, headers: &HeaderMap) -> Result<Arc<Client>, Refusal> {
    check_names(uri, headers)?;
    let Some(presented) = headers.get(AUTHORIZATION) else {
        return Err(Refusal::no_token("the request has no token"));
    };
    let presented = presented.as_bytes();
    let of_bearer = bearer(presented).and_then(|text| shared.clients.of(text));
    if let Some(client) = of_bearer.or_else(|| shared.clients.of(&password(presented)?)) {
        return Ok(client);
    }
    match shared.turnstile.pass().await {
        true => Err(Refusal::no_token("the token is wrong")),
        false => Err(Refusal::too_many_tokens()),
    }
}

/// The token of a header.
fn bearer(header: &[u8]) -> Option<&[u8]> {
    const SCHEME: &[u8] = b"Bearer ";
    let (scheme, text) = header.split_at_checked(SCHEME.len())?;
    scheme.eq_ignore_ascii_case(SCHEME).then(|| text.trim_ascii())
}

/// The password of a header of a user, whoever that is.
fn password(header: &[u8]) -> Option<Vec<u8>> {
    const SCHEME: &[u8] = b"Basic ";
    let (scheme, text) = header.split_at_checked(SCHEME.len())?;
    let user = BASE64_STANDARD.decode(text.trim_ascii()).ok().filter(|_| scheme.eq_ignore_ascii_case(SCHEME))?;
    let colon = user.iter().position(|byte| *byte == b':')?;
    Some(user[colon + 1..].to_vec())
}

/// Refuses a host that is not loopback, and the origin of a foreign page.
fn check_names(uri: &Uri, headers: &HeaderMap) -> Result<(), Refusal> {
    let mut hosts = headers.get_all(HOST).iter();
    let header = hosts.next().map(|host| host.to_str().unwrap_or_default());
    let authority = uri.authority().map(|authority| authority.as_str());
    let is_good = |name: Option<&str>| name.is_none_or(is_loopback);
    let Some(host) = authority.or(header).filter(|_| hosts.next().is_none() && is_good(authority) && is_good(header))
    else {
        let named = authority.or(header).unwrap_or("no host");
        return Err(Refusal::foreign(format!(
            "the request is for '{named}'; the server answers to localhost, 127.0.0.1 and [::1]"
        )));
    };
    let is_own = |origin: &[u8]| origin.strip_prefix(b"http://").is_some_and(|of| of == host.as_bytes());
    match headers.get_all(ORIGIN).iter().all(|origin| is_own(origin.as_bytes())) {
        true => Ok(()),
        false => Err(Refusal::foreign("the request comes from a web page of another origin".into())),
    }
}

/// Whether a host, with a port or without, is loopback by its text.
fn is_loopback(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|digit| digit.is_ascii_digit()) => name,
        _ => host,
    };
    let address = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    name.eq_ignore_ascii_case("localhost") || address.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_let_in(uri: &str, headers: &[(&str, &str)]) -> bool {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(axum::http::HeaderName::from_bytes(name.as_bytes()).unwrap(), value.parse().unwrap());
        }
        check_names(&uri.parse().unwrap(), &map).is_ok()
    }

    #[test]
    fn hosts_are_loopback_by_their_text() {
        for host in ["localhost", "LOCALHOST:8", "127.0.0.1", "127.0.0.1:8432", "127.3.2.1", "[::1]", "[::1]:8432"] {
            assert!(is_let_in("/query", &[("host", host)]), "{host}");
        }
        for host in
            ["", "evil.org", "localhost.evil.org", "127.0.0.1.evil.org:80", "0.0.0.0", "10.0.0.1", "127.0.0.1:a"]
        {
            assert!(!is_let_in("/query", &[("host", host)]), "{host}");
        }
        assert!(!is_let_in("/query", &[]));
        assert!(!is_let_in("/query", &[("host", "localhost"), ("host", "evil.org")]));
        assert!(!is_let_in("http://evil.org/query", &[("host", "localhost")]));
        assert!(!is_let_in("http://localhost/query", &[("host", "evil.org")]));
        assert!(is_let_in("http://localhost:1/query", &[]));
    }

    #[test]
    fn origins_are_absent_or_the_server() {
        let with = |origin: &str| is_let_in("/query", &[("host", "localhost:8432"), ("origin", origin)]);
        assert!(with("http://localhost:8432"));
        for origin in
            ["null", "", "http://localhost", "http://localhost:1", "https://localhost:8432", "http://evil.org"]
        {
            assert!(!with(origin), "{origin}");
        }
    }

    #[test]
    fn the_scheme_is_bearer_in_any_case() {
        assert_eq!(bearer(b"Bearer abc"), Some(b"abc".as_slice()));
        assert_eq!(bearer(b"bearer  abc "), Some(b"abc".as_slice()));
        assert_eq!(bearer(b"Basic abc"), None);
        assert_eq!(bearer(b"Bear"), None);
        assert_eq!(password(b"basic dTphOmI=").as_deref(), Some(b"a:b".as_slice()));
        assert_eq!(password(b"Basic dTphOmI"), None);
        assert_eq!(password(b"Bearer dTphOmI="), None);
        assert_eq!(password(b"Basic dQ=="), None);
    }
}
