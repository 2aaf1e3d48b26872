//! Turns away requests that a web page could have made somebody's browser send.
//!
//! A page that re-binds its name to the loopback address reaches the server under a foreign
//! name, so the name is checked; a page that just posts is given away by its origin.

use std::collections::BTreeSet;
use std::net::IpAddr;

use axum::extract::{Request, State};
use axum::http::header::{HOST, ORIGIN};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::Response;
use yore_http::{Peer, Way};

use crate::app::App;
use crate::config::{Bind, Listen};
use crate::reply;

/// Who may be asked for, and from where.
#[derive(Debug)]
pub(crate) struct Guard {
    hosts: BTreeSet<String>,
    origins: BTreeSet<String>,
}

impl Guard {
    pub(crate) fn new(listen: &Listen) -> Self {
        let mut hosts: BTreeSet<String> =
            ["localhost", "127.0.0.1", "::1"].map(str::to_owned).into();
        hosts.extend(listen.hosts.iter().map(|host| host.to_ascii_lowercase()));
        for bind in [listen.http, listen.https] {
            if let Bind::At(address) = bind
                && !address.ip().is_unspecified()
            {
                hosts.insert(address.ip().to_string());
            }
        }
        let trimmed = |origin: &String| origin.trim_end_matches('/').to_ascii_lowercase();
        Self { hosts, origins: listen.origins.iter().map(trimmed).collect() }
    }

    /// Says what is wrong with where a request is addressed to and comes from.
    pub(crate) fn objection(
        &self,
        way: Way,
        uri: &Uri,
        headers: &HeaderMap,
    ) -> Option<&'static str> {
        let Some(authority) = addressed(uri, headers) else {
            return Some("the request names no host, or several");
        };
        if !self.hosts.contains(&bare(&authority)) {
            return Some("the server does not answer to this host name");
        }
        let mut origins = headers.get_all(ORIGIN).iter();
        let origin = origins.next()?;
        let scheme = if way == Way::Tls { "https" } else { "http" };
        let own = format!("{scheme}://{authority}").to_ascii_lowercase();
        let known = origin.to_str().is_ok_and(|origin| {
            let origin = origin.to_ascii_lowercase();
            origin == own || self.origins.contains(&origin)
        });
        (!known || origins.next().is_some()).then_some("requests from this origin are not allowed")
    }
}

/// The one host a request is addressed to.
fn addressed(uri: &Uri, headers: &HeaderMap) -> Option<Authority> {
    let mut named = headers.get_all(HOST).iter();
    let header = match named.next() {
        Some(value) => Some(value.to_str().ok()?.parse::<Authority>().ok()?),
        None => None,
    };
    if named.next().is_some() {
        return None;
    }
    match (header, uri.authority().cloned()) {
        (Some(header), Some(uri)) => (header == uri).then_some(uri),
        (header, uri) => header.or(uri),
    }
}

/// The host in its one spelling, without port and brackets.
fn bare(authority: &Authority) -> String {
    let host = authority.host().trim_start_matches('[').trim_end_matches(']');
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    host.parse::<IpAddr>().map_or(host, |address| address.to_string())
}

/// Refuses what the guard objects to.
pub(crate) async fn check(State(app): State<App>, request: Request, next: Next) -> Response {
    let way = request.extensions().get::<Peer>().map_or(Way::Plain, |peer| peer.way);
    match app.guard().objection(way, request.uri(), request.headers()) {
        None => next.run(request).await,
        Some(reason) => reply::refused(StatusCode::FORBIDDEN, "forbidden", reason),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Case<'a> = (Way, &'a str, &'a [(&'a str, &'a str)]);

    fn objects(listen: &Listen, way: Way, uri: &str, lines: &[(&str, &str)]) -> bool {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            let name: axum::http::HeaderName = name.parse().unwrap();
            headers.append(name, value.parse().unwrap());
        }
        Guard::new(listen).objection(way, &uri.parse().unwrap(), &headers).is_some()
    }

    #[test]
    fn names_and_origins() {
        let listen = Listen {
            hosts: vec!["Memory.example".into()],
            origins: vec!["https://app.example/".into()],
            ..Listen::default()
        };
        let fine: &[Case<'_>] = &[
            (Way::Plain, "/", &[("host", "127.0.0.1:7070")]),
            (Way::Plain, "/", &[("host", "LOCALHOST:9")]),
            (Way::Plain, "/", &[("host", "[::1]:7070")]),
            (Way::Socket, "/", &[("host", "localhost")]),
            (Way::Tls, "https://memory.example/", &[]),
            (Way::Tls, "/", &[("host", "memory.example"), ("origin", "https://memory.example")]),
            (Way::Plain, "/", &[("host", "localhost:7070"), ("origin", "http://localhost:7070")]),
            (Way::Plain, "/", &[("host", "localhost"), ("origin", "https://app.example")]),
        ];
        for (way, uri, lines) in fine {
            assert!(!objects(&listen, *way, uri, lines), "{uri} {lines:?}");
        }
        let wrong: &[Case<'_>] = &[
            (Way::Plain, "/", &[]),
            (Way::Plain, "/", &[("host", "evil.example")]),
            (Way::Plain, "/", &[("host", "localhost.evil.example")]),
            (Way::Plain, "/", &[("host", "127.0.0.1.evil.example")]),
            (Way::Socket, "/", &[("host", "evil.example")]),
            (Way::Plain, "/", &[("host", "localhost"), ("host", "evil.example")]),
            (Way::Plain, "http://evil.example/", &[("host", "localhost")]),
            (Way::Plain, "/", &[("host", "localhost"), ("origin", "https://evil.example")]),
            (Way::Plain, "/", &[("host", "localhost"), ("origin", "null")]),
            (Way::Plain, "/", &[("host", "localhost:7070"), ("origin", "http://localhost:8080")]),
            (Way::Tls, "/", &[("host", "localhost"), ("origin", "http://localhost")]),
            (
                Way::Plain,
                "/",
                &[
                    ("host", "localhost"),
                    ("origin", "http://localhost"),
                    ("origin", "https://evil.example"),
                ],
            ),
        ];
        for (way, uri, lines) in wrong {
            assert!(objects(&listen, *way, uri, lines), "{uri} {lines:?}");
        }
    }
}
