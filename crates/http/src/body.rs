//! From a request's body to an input.

use axum::body::Body;
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::request::Parts;
use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::de::DeserializeOwned;
use yore_canon::json;
use yore_domain::{Error, Result};

/// The most values in one document: an import of 500 long conversations stays below it.
const NODES: usize = 2_000_000;

/// Reads a body and what it says. A body that is too long is refused before it is read, or
/// where it says nothing of its length, as soon as it is too long; an absent one is `{}`.
pub async fn input<T: DeserializeOwned>(
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
    let body = self::body(&parts.headers, body, bytes).await?;
    parse(if body.is_empty() { b"{}" } else { &body }, bytes, depth)
}

/// Reads what a body says: within limits, and every member once.
pub fn parse<T: DeserializeOwned>(body: &[u8], bytes: usize, depth: usize) -> Result<T> {
    let limits = json::Limits { bytes, depth, nodes: NODES };
    json::parse_as(body, limits).map_err(|error| match error {
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

/// Reads a body of at most so many bytes.
pub async fn body(headers: &HeaderMap, body: Body, limit: usize) -> Result<Bytes> {
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

/// Whether a media type is JSON.
#[must_use]
pub fn is_json(kind: &[u8]) -> bool {
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
    fn values_are_not_repeated() {
        let said = "invalid type: string \"my secret\", expected u32";
        assert_eq!(unquoted(said), "invalid type: string …, expected u32");
    }
}
