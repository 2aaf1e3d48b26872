//! The HTTP binding: messages in, streams out, and what anybody may learn of the server.

use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::{FromRequestParts, Path, Request, State};
use axum::http::header::{
    ACCEPT, CACHE_CONTROL, CONTENT_TYPE, ETAG, HeaderName, IF_NONE_MATCH, LOCATION, RETRY_AFTER,
    WWW_AUTHENTICATE,
};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, any, get, post};
use futures::StreamExt;
use futures::stream;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use yore_canon::hash::Sha256;
use yore_canon::jws;
use yore_domain::Error;
use yore_domain::grant::Verb;
use yore_engine::Call;
use yore_http::{Peer, SentEvent, Surface, Way};

use crate::delta::Kind;
use crate::discovery::AGE;
use crate::envelope::Rejected;
use crate::intent::Intent;
use crate::receive::{Receipt, inbox_key};
use crate::refusal::{Code, Refusal, Result};
use crate::reply::Reply;
use crate::{ClearText, MEDIA_TYPE, NAME, Uamp, framing, grpc, socket};

/// The paths that this protocol claims. What lies below them is its own, too.
pub const PATHS: [&str; 12] = [
    "/v1/messages",
    "/v1/stream/{id}",
    "/uamp/1/ws",
    "/uamp/1/inbox",
    "/.well-known/agent-manifest.json",
    "/.well-known/agent-hub.json",
    "/.well-known/agent-card.json",
    "/.well-known/did.json",
    "/uamp.v1.Agent/{*method}",
    "/grpc.health.v1.Health/{*method}",
    "/grpc.reflection.v1.ServerReflection/{*method}",
    "/grpc.reflection.v1alpha.ServerReflection/{*method}",
];

/// After how long a client comes back that was cut off.
const RETRY: Duration = Duration::from_secs(2);
/// How long a request may wait for its answer.
const LONGEST_WAIT: u64 = 30;
/// Letters that are handed out at once, and how often an inbox is looked into again.
const LETTERS: usize = 64;
const LOOK: Duration = Duration::from_secs(30);
/// What stands in a path as it is.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// What all requests share.
#[derive(Clone)]
pub(crate) struct Desk {
    surface: Surface,
    uamp: Uamp,
}

/// The routes of the protocol.
pub fn routes(surface: Surface, uamp: Uamp) -> Router {
    let desk = Desk { surface, uamp };
    Router::new()
        .route("/v1/messages", served(post(message)))
        .route("/v1/messages/{*rest}", any(nothing))
        .route("/v1/stream/{id}", served(get(follow)))
        .route("/v1/stream/{id}/{*rest}", any(nothing))
        .route("/uamp/1/ws", any(upgrade))
        .route("/uamp/1/inbox", served(get(inbox)))
        .route("/uamp/{*rest}", any(nothing))
        .route("/.well-known/agent-manifest.json", get(manifest))
        .route("/.well-known/agent-hub.json", get(hub))
        .route("/.well-known/agent-card.json", get(card))
        .route("/.well-known/did.json", get(did))
        .merge(grpc::routes(&desk))
        .with_state(desk)
}

fn served(method: MethodRouter<Desk>) -> MethodRouter<Desk> {
    method.fallback(wrong_method)
}

async fn wrong_method(State(desk): State<Desk>) -> Response {
    let refusal = Refusal::new(Code::Malformed, "the method is not one of this path");
    let mut response = desk.refused(&refusal.into()).await;
    *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
    response
}

async fn nothing(State(desk): State<Desk>) -> Response {
    desk.refused(&Refusal::from(Error::NotFound).into()).await
}

impl Desk {
    pub(crate) const fn uamp(&self) -> &Uamp {
        &self.uamp
    }

    /// Cancelled when the server ends.
    pub(crate) const fn stop(&self) -> &CancellationToken {
        &self.surface.stop
    }

    /// Reads the head of a request: who calls, and whether the way is one that may be taken.
    pub(crate) fn call(&self, parts: &Parts) -> Result<Call> {
        let core = &self.uamp.0;
        let fine = match parts.extensions.get::<Peer>() {
            Some(Peer { way: Way::Tls | Way::Socket, .. }) => true,
            Some(peer @ Peer { way: Way::Plain, .. }) => {
                core.options.clear_text == ClearText::Loopback && peer.is_local()
            }
            None => false,
        };
        if !fine {
            let reason = "this protocol is spoken over TLS only: use the server's https address";
            return Err(Refusal::new(Code::Forbidden, reason));
        }
        Ok(self.surface.call(parts, NAME)?)
    }

    async fn refused(&self, rejected: &Rejected) -> Response {
        let refusal = &rejected.refusal;
        let status = StatusCode::from_u16(refusal.http());
        let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = match self.uamp.0.error(rejected).await {
            Ok(envelope) => envelope_of(status, envelope),
            Err(error) => {
                tracing::error!(%error, "an error could not be signed");
                status.into_response()
            }
        };
        let headers = response.headers_mut();
        if refusal.code == Code::Unauthenticated {
            let challenge = HeaderValue::from_static("Bearer realm=\"yore\"");
            headers.insert(WWW_AUTHENTICATE, challenge);
        }
        if let Some(seconds) = refusal.retry_after {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }

    async fn take(&self, request: Request) -> Result<Response, Rejected> {
        let (parts, body) = request.into_parts();
        let call = self.call(&parts)?;
        media_type(&parts.headers)?;
        let largest = self.uamp.0.options.largest;
        let read = yore_http::body(&parts.headers, body, largest);
        let read = tokio::time::timeout(self.surface.limits.time, read).await;
        let late = |_| Refusal::new(Code::Busy, "the message did not arrive in time");
        let bytes = read.map_err(late)?.map_err(Refusal::from)?;
        let receipt = self.uamp.receive(&call, &bytes).await?;
        if let Some(wait) = wish_to_wait(&parts.headers)
            && let Some(stream) = &receipt.stream
            && let Some(answer) = self.waited(&call, &receipt, stream, wait).await?
        {
            return Ok(answer);
        }
        self.accepted(&parts.headers, &receipt).await.map_err(Rejected::from)
    }

    async fn accepted(&self, headers: &HeaderMap, receipt: &Receipt) -> Result<Response> {
        let mut response = if accepts(headers, "application/uamp+json") {
            envelope_of(StatusCode::ACCEPTED, self.uamp.0.accepted(receipt).await?)
        } else {
            StatusCode::ACCEPTED.into_response()
        };
        if let Some(stream) = &receipt.stream {
            let place = format!("/v1/stream/{}", utf8_percent_encode(stream, SEGMENT));
            let place = HeaderValue::from_str(&place).map_err(Error::internal)?;
            response.headers_mut().insert(LOCATION, place);
        }
        Ok(response)
    }

    /// Waits for the whole answer, for a while.
    async fn waited(
        &self,
        call: &Call,
        receipt: &Receipt,
        stream: &str,
        wait: Duration,
    ) -> Result<Option<Response>> {
        let mut delivery = self.uamp.follow(call, stream, None, Some(wait)).await?;
        let mut deltas: Vec<Value> = Vec::new();
        let collected = async {
            while let Some(frame) = delivery.next().await {
                deltas.push(serde_json::from_slice(&frame?.bytes).map_err(Error::internal)?);
            }
            Ok::<_, Refusal>(())
        };
        match tokio::time::timeout(wait, collected).await {
            Err(_) => return Ok(None),
            Ok(collected) => collected?,
        }
        let ended = deltas.last().and_then(|last| last["type"].as_str());
        let intent = match ended {
            Some(kind) if kind == Kind::Done.as_str() => Intent::Confirm,
            Some(kind) if kind == Kind::Error.as_str() => Intent::Error,
            Some(_) | None => return Ok(None),
        };
        let reply = Reply {
            to: &receipt.from,
            intent,
            reply_to: Some(&receipt.id),
            stream: Some(stream),
            content: &json!({ "deltas": deltas }),
        };
        Ok(Some(envelope_of(StatusCode::OK, self.uamp.0.envelope(reply).await?)))
    }

    async fn stream(&self, id: &str, parts: &Parts) -> Result<Response> {
        let call = self.call(parts)?;
        self.known(&call).await?;
        let after = last_seen(parts)?;
        let patience = Some(self.uamp.0.options.patience);
        let delivery = self.uamp.follow(&call, id, after, patience).await?;
        if delivery.is_complete().await? {
            return Ok(StatusCode::NO_CONTENT.into_response());
        }
        let events = stream::unfold(delivery, |mut delivery| async move {
            let frame = delivery.next().await?.ok()?;
            let data = String::from_utf8(frame.bytes).ok()?;
            let id = Some(frame.number.to_string());
            Some((SentEvent { id, event: None, data }, delivery))
        });
        Ok(yore_http::events_with_retry(RETRY, events.boxed(), &self.surface.stop))
    }

    /// Hands out letters as they come, until the client has enough.
    async fn letters(&self, parts: &Parts) -> Result<Response> {
        let call = self.call(parts)?;
        self.known(&call).await?;
        let did = query(parts, "did").ok_or_else(|| Refusal::malformed("did", "is required"))?;
        let uamp = self.uamp.clone();
        // Who may not look into the inbox is told so at once.
        let first = uamp.letters(&call, &did, LETTERS).await?;
        let moved = self.uamp.0.hub.wait(&inbox_key(&did));
        let state = (uamp, call, did, moved, Some(first));
        let events = stream::unfold(state, |(uamp, call, did, mut moved, first)| async move {
            let mut letters = first.unwrap_or_default();
            while letters.is_empty() {
                // A change that is missed here is found at the next look.
                let _ = tokio::time::timeout(LOOK, moved.changed()).await;
                letters = uamp.letters(&call, &did, LETTERS).await.ok()?;
            }
            let events: Vec<SentEvent> = letters
                .into_iter()
                .filter_map(|letter| {
                    let id = letter.id.split(' ').next().map(str::to_owned);
                    let data = String::from_utf8(letter.bytes).ok()?;
                    Some(SentEvent { id, event: None, data })
                })
                .collect();
            Some((stream::iter(events), (uamp, call, did, moved, None)))
        });
        let events = events.flatten().boxed();
        Ok(yore_http::events_with_retry(RETRY, events, &self.surface.stop))
    }

    /// Refuses who presents nothing that holds.
    async fn known(&self, call: &Call) -> Result<()> {
        self.uamp.0.engine.identify(call, Verb::Read).await?;
        Ok(())
    }
}

async fn message(State(desk): State<Desk>, request: Request) -> Response {
    match Box::pin(desk.take(request)).await {
        Ok(response) => response,
        Err(rejected) => desk.refused(&rejected).await,
    }
}

async fn follow(State(desk): State<Desk>, Path(id): Path<String>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    match desk.stream(&id, &parts).await {
        Ok(response) => response,
        Err(refusal) => desk.refused(&refusal.into()).await,
    }
}

async fn inbox(State(desk): State<Desk>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    match desk.letters(&parts).await {
        Ok(response) => response,
        Err(refusal) => desk.refused(&refusal.into()).await,
    }
}

async fn upgrade(State(desk): State<Desk>, request: Request) -> Response {
    let (mut parts, _) = request.into_parts();
    let opened = async {
        let call = desk.call(&parts)?;
        desk.known(&call).await?;
        let upgrade = WebSocketUpgrade::from_request_parts(&mut parts, &()).await;
        let upgrade = upgrade.map_err(|_| Refusal::malformed("upgrade", "must be a WebSocket"))?;
        Ok::<_, Refusal>((call, upgrade))
    };
    match opened.await {
        Err(refusal) => desk.refused(&refusal.into()).await,
        Ok((call, upgrade)) => {
            let (uamp, stop) = (desk.uamp.clone(), desk.surface.stop.clone());
            let largest = uamp.0.options.largest + framing::HEADER;
            upgrade
                .max_message_size(largest)
                .protocols([socket::SUBPROTOCOL])
                .on_upgrade(|socket| socket::serve(uamp, call, socket, stop))
        }
    }
}

async fn manifest(State(desk): State<Desk>, headers: HeaderMap) -> Response {
    let document = desk.uamp.0.manifest();
    signed(&desk, &headers, "manifest+jws", &document).await
}

async fn hub(State(desk): State<Desk>, headers: HeaderMap) -> Response {
    match desk.uamp.0.hub_document().await {
        Ok(document) => signed(&desk, &headers, "hub+jws", &document).await,
        Err(error) => desk.refused(&Refusal::from(error).into()).await,
    }
}

async fn card(State(desk): State<Desk>, headers: HeaderMap) -> Response {
    published(&headers, "application/json", desk.uamp.0.agent_card().to_string())
}

async fn did(State(desk): State<Desk>, headers: HeaderMap) -> Response {
    match desk.uamp.0.did_document().await {
        Ok(document) => published(&headers, "application/did+json", document.to_string()),
        Err(error) => desk.refused(&Refusal::from(error).into()).await,
    }
}

/// A signed document, compact or as the JSON form of the same.
async fn signed(desk: &Desk, headers: &HeaderMap, typ: &str, document: &Value) -> Response {
    let compact = match desk.uamp.0.signed(typ, document).await {
        Ok(compact) => compact,
        Err(error) => return desk.refused(&Refusal::from(error).into()).await,
    };
    let json = ["application/json", "application/jose+json"];
    match json.into_iter().find(|kind| accepts(headers, kind)) {
        None => published(headers, &format!("application/{typ}"), compact),
        Some(kind) => match jws::flattened(&compact) {
            Ok(flattened) => published(headers, kind, flattened.to_string()),
            Err(error) => desk.refused(&Refusal::from(Error::internal(error)).into()).await,
        },
    }
}

/// A document that may be kept for a while.
fn published(headers: &HeaderMap, kind: &str, text: String) -> Response {
    let tag = format!("\"{}\"", Sha256::of(&text).to_hex());
    let known = headers.get(IF_NONE_MATCH).is_some_and(|value| value.as_bytes() == tag.as_bytes());
    let mut response = match known {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => Body::from(text).into_response(),
    };
    let lines: [(HeaderName, String); 3] =
        [(CONTENT_TYPE, kind.to_owned()), (ETAG, tag), (CACHE_CONTROL, format!("max-age={AGE}"))];
    for (name, value) in lines {
        if let Ok(value) = HeaderValue::from_str(&value) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

fn envelope_of(status: StatusCode, text: String) -> Response {
    (status, [(CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE))], text).into_response()
}

fn essence(value: &str) -> &str {
    value.split(';').next().unwrap_or(value).trim()
}

fn media_type(headers: &HeaderMap) -> Result<()> {
    let Some(kind) = headers.get(CONTENT_TYPE) else { return Ok(()) };
    let known = ["application/uamp+json", "application/json"];
    let kind = kind.to_str().map(essence).unwrap_or_default();
    if known.iter().any(|known| kind.eq_ignore_ascii_case(known)) {
        return Ok(());
    }
    Err(Refusal::new(Code::Unsupported, "a message is application/uamp+json"))
}

fn accepts(headers: &HeaderMap, kind: &str) -> bool {
    let lines = headers.get_all(ACCEPT).iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).any(|one| essence(one).eq_ignore_ascii_case(kind))
}

fn wish_to_wait(headers: &HeaderMap) -> Option<Duration> {
    let lines = headers.get_all("prefer").iter().filter_map(|line| line.to_str().ok());
    let mut wishes = lines.flat_map(|line| line.split(','));
    let wait = wishes.find_map(|wish| wish.trim().strip_prefix("wait=")?.parse::<u64>().ok())?;
    Some(Duration::from_secs(wait.min(LONGEST_WAIT)))
}

/// The frame that a client has last: browsers say it in a header, others may in the query.
fn last_seen(parts: &Parts) -> Result<Option<u64>> {
    let header = parts.headers.get("last-event-id").and_then(|value| value.to_str().ok());
    let Some(text) = header.map(str::to_owned).or_else(|| query(parts, "after")) else {
        return Ok(None);
    };
    let wrong = || Refusal::malformed("last-event-id", "is not the number of a frame");
    text.trim().parse().map(Some).map_err(|_| wrong())
}

fn query(parts: &Parts, name: &str) -> Option<String> {
    let pairs = parts.uri.query()?.split('&').filter_map(|pair| pair.split_once('='));
    let value = pairs.into_iter().find(|(key, _)| *key == name)?.1;
    percent_decode_str(value).decode_utf8().ok().map(|text| text.into_owned())
}
