//! What every HTTP request passes before it is believed to be MCP: limits, then credentials.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::middleware::Next;
use axum::response::Response;
use bytes::Bytes;
use parking_lot::Mutex;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use yore_canon::hash::Blake3;
use yore_canon::json;
use yore_client::api;
use yore_domain::Error;
use yore_domain::grant::Verb;
use yore_engine::Call;
use yore_engine::token::{self, Shape};
use yore_http::{Peer, Surface, Way};

use crate::PROTOCOL;
use crate::metadata::{refusal, unauthenticated};

/// How long a credential that held is not looked up again. Each operation judges it anew; this
/// look only decides between an answer and a 401.
const TRUST: Duration = Duration::from_secs(30);
/// How many credentials are kept in mind.
const KNOWN: usize = 4096;
/// The frame of JSON-RPC around a tool's arguments.
const FRAME_DEPTH: usize = 4;
/// Bytes of what the transport says in words.
const WORDS: usize = 4096;
/// The most values in one message.
const NODES: usize = 500_000;

/// What stands before the endpoints.
#[derive(Clone, Debug)]
pub(crate) struct Gate(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    surface: Surface,
    known: Mutex<HashMap<Blake3, Instant>>,
}

/// The frame of a message; what it carries is read later.
#[derive(Deserialize)]
struct Frame {
    #[serde(default)]
    id: Value,
    #[serde(rename = "jsonrpc")]
    _version: Option<IgnoredAny>,
}

impl Gate {
    pub(crate) fn new(surface: Surface) -> Self {
        Self(Arc::new(Inner { surface, known: Mutex::default() }))
    }

    /// Reads a message within the limits and returns it with its id.
    async fn take(&self, parts: &Parts, body: Body) -> Result<(Bytes, Value), Response> {
        let limits = self.0.surface.limits;
        let refused = |status, code, error: &dyn std::fmt::Display| {
            refusal(status, Value::Null, code, &error.to_string())
        };
        let body = yore_http::body(&parts.headers, body, limits.body).await.map_err(|error| {
            let status = if matches!(error, Error::TooLarge { .. }) {
                StatusCode::PAYLOAD_TOO_LARGE
            } else {
                StatusCode::BAD_REQUEST
            };
            refused(status, -32600, &error)
        })?;
        let limits =
            json::Limits { bytes: limits.body, depth: limits.depth + FRAME_DEPTH, nodes: NODES };
        let frame = json::parse_as::<Frame>(&body, limits).map_err(|error| match error {
            json::Error::Shape(_) => {
                let reason = "the body is not one JSON-RPC message";
                refused(StatusCode::BAD_REQUEST, -32600, &reason)
            }
            json::Error::TooLarge { .. } => refused(StatusCode::PAYLOAD_TOO_LARGE, -32600, &error),
            json::Error::TooDeep { .. }
            | json::Error::TooMany { .. }
            | json::Error::NotUtf8 { .. }
            | json::Error::Duplicate { .. }
            | json::Error::Syntax { .. } => refused(StatusCode::BAD_REQUEST, -32700, &error),
        })?;
        Ok((body, frame.id))
    }

    /// Finds out whether the credentials hold. What they cover is decided by each operation.
    async fn admit(&self, parts: &Parts, call: &Call) -> Result<(), Error> {
        if is_kin(parts, call) {
            return Ok(());
        }
        let mark = mark(parts);
        let now = Instant::now();
        if self.0.known.lock().get(&mark).is_some_and(|at| now.duration_since(*at) < TRUST) {
            return Ok(());
        }
        let known = self.0.surface.engine.identify(call, Verb::Read).await;
        if let Err(error @ Error::Unauthenticated { .. }) = known {
            return Err(error);
        }
        let mut known = self.0.known.lock();
        if known.len() >= KNOWN {
            known.retain(|_, at| now.duration_since(*at) < TRUST);
        }
        if known.len() < KNOWN {
            known.insert(mark, now);
        }
        Ok(())
    }
}

/// Whether a process of this machine proves the master key through the private socket. Each of
/// its proofs is new, so keeping them in mind would help nobody; its operations are judged like
/// all others.
fn is_kin(parts: &Parts, call: &Call) -> bool {
    let socket = parts.extensions.get::<Peer>().is_some_and(|peer| peer.way == Way::Socket);
    let shape = call.credentials.bearer.as_ref().map(token::shape);
    socket && matches!(shape, Some(Ok(Shape::Proof(_))))
}

/// Tells credentials apart without keeping them.
fn mark(parts: &Parts) -> Blake3 {
    let mut hasher = Blake3::hasher();
    for name in [AUTHORIZATION.as_str(), api::VAULT] {
        for value in parts.headers.get_all(name) {
            hasher.update((value.len() as u64).to_be_bytes()).update(value.as_bytes());
        }
        hasher.update([0xff; 8]);
    }
    hasher.finish()
}

/// Lets a request through, or says why not.
pub(crate) async fn pass(State(gate): State<Gate>, request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    let posted = parts.method == Method::POST;
    let (body, id) = if posted {
        match gate.take(&parts, body).await {
            Ok((body, id)) => (Body::from(body), id),
            Err(refused) => return refused,
        }
    } else {
        (Body::empty(), Value::Null)
    };
    let call = match gate.0.surface.call(&parts, PROTOCOL) {
        Ok(call) => call,
        Err(error) => return refusal(StatusCode::BAD_REQUEST, id, -32600, &error.to_string()),
    };
    if let Err(error) = gate.admit(&parts, &call).await {
        return unauthenticated(&parts, id, &error);
    }
    let sent_json = is_json(&parts.headers);
    let answer = next.run(Request::from_parts(parts, body)).await;
    if posted { spoken(answer, id, sent_json).await } else { answer }
}

/// Says in a message what the transport says in words alone.
async fn spoken(answer: Response, id: Value, sent_json: bool) -> Response {
    let (mut parts, body) = answer.into_parts();
    if !parts.status.is_client_error() || is_json(&parts.headers) {
        return Response::from_parts(parts, body);
    }
    if parts.status == StatusCode::UNSUPPORTED_MEDIA_TYPE && sent_json {
        // Its words would repeat what was sent.
        let reason = "the body is not a message of MCP";
        return refusal(StatusCode::BAD_REQUEST, id, -32600, reason);
    }
    let words = axum::body::to_bytes(body, WORDS).await.unwrap_or_default();
    let refused = refusal(parts.status, id, -32600, &String::from_utf8_lossy(&words));
    let (told, body) = refused.into_parts();
    parts.headers.remove(CONTENT_LENGTH);
    parts.headers.extend(told.headers);
    Response::from_parts(parts, body)
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.trim_start().starts_with("application/json"))
}
