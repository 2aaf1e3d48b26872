//! From a request's head to the engine's call, and from its body to an input.

use axum::body::Body;
use axum::http::header::{AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName};
use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::de::DeserializeOwned;
use yore_canon::json;
use yore_client::api;
use yore_domain::{Error, Result};
use yore_engine::{Call, Credentials, Secret, VaultRef};

use crate::app::RequestId;
use crate::listen::{Peer, Way};

/// What the audit chain calls the native API.
const PROTOCOL: &str = "native";
/// The longest header of ours that is taken.
const HEADER: usize = 256;
/// The most values in one document: an import of 500 long conversations stays below it.
const NODES: usize = 2_000_000;

/// Builds the engine's call from a request's head.
pub(crate) fn call(parts: &Parts) -> Result<Call> {
    let peer = parts.extensions.get::<Peer>();
    let vault = match header(&parts.headers, api::VAULT)? {
        None => VaultRef::Default,
        Some(text) => text.parse().map_or_else(|_| VaultRef::Owner(text.into()), VaultRef::Id),
    };
    Ok(Call {
        credentials: credentials(&parts.headers),
        vault,
        protocol: PROTOCOL,
        request: parts.extensions.get::<RequestId>().map(|id| id.0.clone()),
        source: peer.map(|peer| match (peer.way, peer.address) {
            (Way::Socket, _) | (_, None) => "socket".to_owned(),
            (Way::Plain | Way::Tls, Some(address)) => address.ip().to_string(),
        }),
        operation: header(&parts.headers, api::OPERATION_ID)?.map(str::to_owned),
    })
}

fn credentials(headers: &HeaderMap) -> Credentials {
    let mut lines = headers.get_all(AUTHORIZATION).iter();
    let Some(line) = lines.next() else { return Credentials::default() };
    let token =
        line.to_str().ok().and_then(|line| line.split_once(' ')).and_then(|(scheme, token)| {
            scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
        });
    match (token, lines.next()) {
        (Some(token), None) if !token.is_empty() => {
            Credentials { bearer: Some(Secret::new(token)), ..Credentials::default() }
        }
        _ => Credentials {
            unreadable: Some("the authorization header is not one bearer token"),
            ..Credentials::default()
        },
    }
}

fn header<'a>(headers: &'a HeaderMap, name: &'static str) -> Result<Option<&'a str>> {
    let mut values = headers.get_all(HeaderName::from_static(name)).iter();
    let Some(value) = values.next() else { return Ok(None) };
    let text = std::str::from_utf8(value.as_bytes())
        .ok()
        .filter(|text| (1..=HEADER).contains(&text.len()) && !text.contains(char::is_control));
    match (text, values.next()) {
        (Some(text), None) => Ok(Some(text)),
        _ => Err(Error::invalid(name, format!("must be one text of 1 to {HEADER} bytes"))),
    }
}

/// Reads a body and what it says. A body that is too long is refused before it is read, or
/// where it says nothing of its length, as soon as it is too long; an absent one is `{}`.
pub(crate) async fn input<T: DeserializeOwned>(
    parts: &Parts,
    body: Body,
    bytes: usize,
    depth: usize,
) -> Result<T> {
    if let Some(kind) = parts.headers.get(CONTENT_TYPE)
        && !is_json(kind.as_bytes())
    {
        return Err(Error::invalid("content-type", "must be application/json"));
    }
    let body = read(&parts.headers, body, bytes).await?;
    let body = if body.is_empty() { Bytes::from_static(b"{}") } else { body };
    let limits = json::Limits { bytes, depth, nodes: NODES };
    json::parse_as(&body, limits).map_err(|error| match error {
        json::Error::TooLarge { limit, .. } => too_large(limit),
        // The parser repeats values it did not expect, and an answer may be logged by others.
        json::Error::Shape(reason) => Error::invalid("body", unquoted(&reason)),
        error @ (json::Error::TooDeep { .. }
        | json::Error::TooMany { .. }
        | json::Error::NotUtf8 { .. }
        | json::Error::Duplicate { .. }
        | json::Error::Syntax { .. }) => Error::invalid("body", error.to_string()),
    })
}

async fn read(headers: &HeaderMap, body: Body, limit: usize) -> Result<Bytes> {
    let stated = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
    if stated.is_some_and(|stated: u64| stated > limit as u64) {
        return Err(too_large(limit));
    }
    match Limited::new(body, limit).collect().await {
        Ok(read) => Ok(read.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(too_large(limit)),
        Err(_) => Err(Error::invalid("body", "it ended early")),
    }
}

fn too_large(limit: usize) -> Error {
    Error::too_large("the request", format!("{limit} bytes"))
}

fn is_json(kind: &[u8]) -> bool {
    let essence = kind.split(|byte| *byte == b';').next().unwrap_or(kind).trim_ascii();
    essence.eq_ignore_ascii_case(b"application/json")
}

/// Keeps the parser's words and drops the caller's, which stand in double quotes.
fn unquoted(reason: &str) -> String {
    reason.split('"').step_by(2).collect::<Vec<_>>().join("…")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_one_bearer_token_or_unreadable() {
        let read = |lines: &[&str]| {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append(AUTHORIZATION, line.parse().unwrap());
            }
            credentials(&headers)
        };
        assert!(read(&[]).bearer.is_none() && read(&[]).unreadable.is_none());
        for line in ["Bearer x", "bearer  x", "BEARER x "] {
            assert_eq!(read(&[line]).bearer.unwrap().expose(), "x", "{line}");
        }
        for lines in [&["Basic x"][..], &["Bearer"], &["Bearer "], &["Bearer a", "Bearer b"]] {
            assert!(read(lines).bearer.is_none() && read(lines).unreadable.is_some(), "{lines:?}");
        }
    }

    #[test]
    fn values_are_not_repeated() {
        let said = "invalid type: string \"my secret\", expected u32";
        assert_eq!(unquoted(said), "invalid type: string …, expected u32");
    }
}
