//! The HTTP binding: everything under `/v1/`.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::{FromRequestParts, Path, Request, State};
use axum::http::header::{CONTENT_TYPE, HeaderName, SEC_WEBSOCKET_PROTOCOL};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, any, get, post};
use serde_json::{Value, json};
use yore_domain::{Error, Timestamp};
use yore_engine::Call;
use yore_http::{Limits, Surface};

use crate::accept::{self, ENVELOPE, Query, Shape};
use crate::audit::{Asked, Told};
use crate::error::{Refusal, Result};
use crate::operations::{Listed, Wanted, needed};
use crate::stream::SUBPROTOCOL;
use crate::wire::Object;
use crate::{NAME, Oamp, socket};

/// The header that says which moment an answer is about.
const AS_OF: HeaderName = HeaderName::from_static("oamp-as-of");

/// What all requests share.
#[derive(Clone)]
struct Desk {
    surface: Surface,
    oamp: Arc<Oamp>,
}

/// The routes of the protocol.
pub fn routes(surface: Surface, oamp: Arc<Oamp>) -> Router {
    Router::new()
        .route("/v1/knowledge", served(get(list).post(create)))
        .route("/v1/knowledge/{id}", served(get(entry).patch(patch).delete(delete)))
        .route("/v1/user-model", served(post(put_model)))
        .route("/v1/user-model/{user_id}", served(get(model).delete(delete_model)))
        .route("/v1/export", served(post(export)))
        .route("/v1/import", served(post(import)))
        .route("/v1/capabilities", served(get(capabilities)))
        .route("/v1/admin/keys/rotate", served(post(rotate)))
        .route("/v1/admin/audit", served(get(audit)))
        .route("/v1/stream", served(get(stream)))
        .route("/v1", any(nothing))
        .route("/v1/", any(nothing))
        .route("/v1/{*rest}", any(nothing))
        .with_state(Desk { surface, oamp })
}

async fn nothing() -> Refusal {
    Error::NotFound.into()
}

/// A piece of a path. One that is no text names nothing.
struct Segment(String);

impl<S: Send + Sync> FromRequestParts<S> for Segment {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self> {
        match Path::<String>::from_request_parts(parts, state).await {
            Ok(Path(text)) => Ok(Self(text)),
            Err(_) => Err(Error::NotFound.into()),
        }
    }
}

fn served(method: MethodRouter<Desk>) -> MethodRouter<Desk> {
    method.fallback(async || {
        Refusal::new(405, "METHOD_NOT_ALLOWED", "the method is not one of this path")
    })
}

/// A request whose head was read.
struct Asking {
    call: Call,
    query: Query,
    shape: Shape,
}

impl Desk {
    fn asking(&self, parts: &Parts) -> Result<Asking> {
        let shape = accept::shape(&parts.headers)?;
        let call = self.surface.call(parts, NAME)?;
        Ok(Asking { call, query: Query::parse(parts.uri.query())?, shape })
    }

    /// Reads the head and the body of a request that changes something.
    async fn changing(&self, request: Request, bytes: usize) -> Result<(Asking, Object)> {
        let (mut parts, body) = request.into_parts();
        let asking = self.asking(&parts)?;
        asking.query.only_now()?;
        accept::sent(&parts.headers)?;
        // Both media types are JSON to the one parser there is.
        parts.headers.remove(CONTENT_TYPE);
        let depth = self.surface.limits.depth;
        let bytes = self.surface.taken(&asking.call, bytes).await;
        match yore_http::input(&parts, body, bytes, depth).await {
            Ok(input) => Ok((asking, input)),
            Err(error) => Err(self.oamp.refused_input(&asking.call, error).await),
        }
    }

    /// Reads a request that changes something, and does it: a request has so long to arrive,
    /// and its answer as long again.
    async fn change<F>(&self, request: Request, size: Size, work: F) -> Response
    where
        F: AsyncFnOnce(Asking, Object) -> Result<Response>,
    {
        let Limits { body, heavy_body, time, heavy_time, .. } = self.surface.limits;
        let (bytes, time) = match size {
            Size::Plain => (body, time),
            Size::Heavy => (heavy_body, heavy_time),
        };
        let read = Box::pin(self.changing(request, bytes));
        match tokio::time::timeout(time, read).await {
            Ok(Ok((asking, input))) => timed(time, work(asking, input)).await,
            Ok(Err(refusal)) => refusal.into_response(),
            Err(_) => {
                let reason = format!("the request did not arrive within {}", spelt(time));
                Refusal::new(408, "REQUEST_TIMEOUT", reason).into_response()
            }
        }
    }

    async fn timed(&self, work: impl Future<Output = Result<Response>>) -> Response {
        timed(self.surface.limits.time, work).await
    }

    async fn timed_long(&self, work: impl Future<Output = Result<Response>>) -> Response {
        timed(self.surface.limits.heavy_time, work).await
    }
}

/// How much a request that changes something may bring.
#[derive(Clone, Copy, Debug)]
enum Size {
    Plain,
    Heavy,
}

async fn timed(time: Duration, work: impl Future<Output = Result<Response>>) -> Response {
    match tokio::time::timeout(time, Box::pin(work)).await {
        Ok(Ok(response)) => response,
        Ok(Err(refusal)) => refusal.into_response(),
        Err(_) => {
            let reason = format!("no answer within {}", spelt(time));
            let retry_after = Duration::from_secs(1);
            Refusal::from(Error::Busy { reason, retry_after }).into_response()
        }
    }
}

fn spelt(time: Duration) -> String {
    format!("{} s", time.as_secs())
}

async fn create(State(desk): State<Desk>, request: Request) -> Response {
    desk.change(request, Size::Plain, async |asking, input| {
        let entry = desk.oamp.create(&asking.call, &input).await?;
        Ok(json_of(StatusCode::CREATED, &entry.into()))
    })
    .await
}

async fn list(State(desk): State<Desk>, request: Request) -> Response {
    desk.timed(async {
        let (parts, _) = request.into_parts();
        let Asking { call, query, shape } = desk.asking(&parts)?;
        let wanted = match Wanted::of(&query, desk.surface.engine.now()) {
            Ok(wanted) => wanted,
            Err(refusal) => {
                desk.oamp.known(&call).await?;
                return Err(refusal);
            }
        };
        if wanted.user.is_none() {
            desk.oamp.known(&call).await?;
            return Err(Refusal::invalid("user_id", "is required"));
        }
        let listed = desk.oamp.list(&call, &wanted, shape == Shape::Envelope).await?;
        Ok(as_of(listing(listed, &wanted, shape), wanted.filter.as_of))
    })
    .await
}

fn listing(listed: Listed, wanted: &Wanted, shape: Shape) -> Response {
    let Listed { entries, total } = listed;
    let entries: Vec<Value> = entries.into_iter().map(Value::Object).collect();
    match shape {
        Shape::Plain => json_of(StatusCode::OK, &entries.into()),
        Shape::Envelope => {
            let total = total.unwrap_or_default();
            let body = json!({
                "has_more": total > (wanted.offset + entries.len()) as u64,
                "entries": entries,
                "total": total,
                "limit": wanted.limit,
                "offset": wanted.offset,
            });
            with_type(json_of(StatusCode::OK, &body), ENVELOPE)
        }
    }
}

async fn entry(State(desk): State<Desk>, Segment(id): Segment, request: Request) -> Response {
    desk.timed(async {
        let (parts, _) = request.into_parts();
        let Asking { call, query, .. } = desk.asking(&parts)?;
        let at = query.as_of(desk.surface.engine.now())?;
        let entry = desk.oamp.entry(&call, &id, query.one("user_id"), at).await?;
        Ok(as_of(json_of(StatusCode::OK, &entry.into()), at))
    })
    .await
}

async fn patch(State(desk): State<Desk>, Segment(id): Segment, request: Request) -> Response {
    desk.change(request, Size::Plain, async |asking, input| {
        let user = asking.query.one("user_id");
        let entry = desk.oamp.patch(&asking.call, &id, user, &input).await?;
        Ok(json_of(StatusCode::OK, &entry.into()))
    })
    .await
}

async fn delete(State(desk): State<Desk>, Segment(id): Segment, request: Request) -> Response {
    desk.timed(async {
        let (parts, _) = request.into_parts();
        let Asking { call, query, .. } = desk.asking(&parts)?;
        query.only_now()?;
        desk.oamp.delete(&call, &id, query.one("user_id")).await?;
        Ok(StatusCode::NO_CONTENT.into_response())
    })
    .await
}

async fn put_model(State(desk): State<Desk>, request: Request) -> Response {
    desk.change(request, Size::Plain, async |asking, input| {
        let (first, model) = desk.oamp.put_model(&asking.call, input).await?;
        let status = if first { StatusCode::CREATED } else { StatusCode::OK };
        Ok(json_of(status, &model.into()))
    })
    .await
}

async fn model(State(desk): State<Desk>, Segment(user): Segment, request: Request) -> Response {
    desk.timed(async {
        let (parts, _) = request.into_parts();
        let Asking { call, query, .. } = desk.asking(&parts)?;
        let at = query.as_of(desk.surface.engine.now())?;
        let model = desk.oamp.model(&call, Some(&user), at).await?;
        Ok(as_of(json_of(StatusCode::OK, &model.into()), at))
    })
    .await
}

async fn delete_model(
    State(desk): State<Desk>,
    Segment(user): Segment,
    request: Request,
) -> Response {
    desk.timed_long(async {
        let (parts, _) = request.into_parts();
        let Asking { call, query, .. } = desk.asking(&parts)?;
        query.only_now()?;
        desk.oamp.delete_model(&call, &user).await?;
        Ok(StatusCode::NO_CONTENT.into_response())
    })
    .await
}

async fn export(State(desk): State<Desk>, request: Request) -> Response {
    desk.change(request, Size::Plain, async |asking, input| {
        let user = match needed(&input, "user_id") {
            Ok(user) => user,
            Err(refusal) => {
                desk.oamp.known(&asking.call).await?;
                return Err(refusal);
            }
        };
        let pieces = desk.oamp.export(&asking.call, &user).await?;
        let body = Body::from_stream(pieces);
        Ok(with_type(body.into_response(), "application/json"))
    })
    .await
}

async fn import(State(desk): State<Desk>, request: Request) -> Response {
    desk.change(request, Size::Heavy, async |asking, input| {
        let summary = desk.oamp.import(&asking.call, input).await?;
        Ok(json_of(StatusCode::CREATED, &summary))
    })
    .await
}

async fn capabilities(State(desk): State<Desk>, request: Request) -> Response {
    match accept::shape(request.headers()) {
        Ok(_) => json_of(StatusCode::OK, &desk.oamp.capabilities()),
        Err(refusal) => refusal.into_response(),
    }
}

async fn rotate(State(desk): State<Desk>, request: Request) -> Response {
    desk.timed_long(async {
        let (parts, _) = request.into_parts();
        let Asking { call, query, .. } = desk.asking(&parts)?;
        query.only_now()?;
        let rotated = desk.oamp.rotate(&call, query.one("user_id")).await?;
        Ok(json_of(StatusCode::OK, &rotated))
    })
    .await
}

async fn audit(State(desk): State<Desk>, request: Request) -> Response {
    desk.timed(async {
        let (parts, _) = request.into_parts();
        let Asking { call, query, shape } = desk.asking(&parts)?;
        let count = shape == Shape::Envelope;
        let Told { lines, total } = desk.oamp.audit(&call, &Asked::of(&query)?, count).await?;
        Ok(match shape {
            Shape::Plain => json_of(StatusCode::OK, &lines.into()),
            Shape::Envelope => {
                let body = json!({"total": total, "entries": lines});
                with_type(json_of(StatusCode::OK, &body), ENVELOPE)
            }
        })
    })
    .await
}

async fn stream(State(desk): State<Desk>, request: Request) -> Response {
    let (mut parts, _) = request.into_parts();
    let opened = async {
        let offered = parts.headers.get_all(SEC_WEBSOCKET_PROTOCOL).iter();
        let spoken = offered
            .filter_map(|line| line.to_str().ok())
            .flat_map(|line| line.split(','))
            .any(|name| name.trim() == SUBPROTOCOL);
        if !spoken {
            let reason = "must offer oamp.v1";
            return Err(Refusal::invalid("sec-websocket-protocol", reason));
        }
        let call = desk.surface.call(&parts, NAME)?;
        desk.oamp.known(&call).await?;
        let upgrade = WebSocketUpgrade::from_request_parts(&mut parts, &()).await;
        let upgrade = upgrade.map_err(|_| Refusal::invalid("upgrade", "must be a WebSocket"))?;
        Ok((call, upgrade))
    };
    match opened.await {
        Err(refusal) => refusal.into_response(),
        Ok((call, upgrade)) => {
            let (oamp, stop) = ((*desk.oamp).clone(), desk.surface.stop.clone());
            upgrade
                .protocols([SUBPROTOCOL])
                .max_message_size(desk.surface.limits.body.min(1 << 20))
                .on_upgrade(move |socket| socket::serve(oamp, call, socket, stop))
        }
    }
}

fn json_of(status: StatusCode, value: &Value) -> Response {
    with_type((status, value.to_string()).into_response(), "application/json")
}

fn with_type(mut response: Response, kind: &'static str) -> Response {
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// Says which moment an answer is about.
fn as_of(mut response: Response, at: Option<Timestamp>) -> Response {
    if let Some(at) = at.and_then(|at| HeaderValue::from_str(&at.to_string()).ok()) {
        response.headers_mut().insert(AS_OF, at);
    }
    response
}
