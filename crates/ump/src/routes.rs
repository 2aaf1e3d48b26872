//! The HTTP binding: `/ump/*`, the same under `/ump/v0.1/*`, and the well-known document.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, Request, State};
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, any, get, post};
use futures::StreamExt;
use percent_encoding::percent_decode_str;
use serde_json::Value;
use yore_domain::{Error, Result};
use yore_http::{SentEvent, Surface, header};

use crate::error::Refusal;
use crate::wire::{Object, Wire};
use crate::{NAME, Ump, stream};

/// The header in which a client says where its stream broke off.
const LAST_EVENT_ID: &str = "last-event-id";
/// What may narrow a subscription in the query.
const SCOPE: [&str; 6] = ["owner", "user", "project", "agent", "session", "visibility"];

/// What all requests share.
#[derive(Clone)]
struct Desk {
    surface: Surface,
    ump: Arc<Ump>,
    /// The version that the path fixes.
    wire: Option<Wire>,
}

/// The routes of the protocol.
pub fn routes(surface: Surface, ump: Arc<Ump>) -> Router {
    let desk = |wire| Desk { surface: surface.clone(), ump: ump.clone(), wire };
    let mut router = binding("/ump", desk(None));
    router = router.merge(binding("/ump/v0.1", desk(Some(Wire::V0_1))));
    let well_known = served(get(well_known)).with_state(desk(None));
    router
        .route("/.well-known/ump.json", well_known)
        .route("/ump/{*rest}", any(async || refused(&Error::NotFound)))
}

fn binding(prefix: &str, desk: Desk) -> Router {
    let path = |name: &str| format!("{prefix}/{name}");
    Router::new()
        .route(&path("capabilities"), served(get(capabilities).post(capabilities)))
        .route(&path("recall"), served(post(recall)))
        .route(&path("remember"), served(post(remember)))
        .route(&path("revise"), served(post(revise)))
        .route(&path("forget"), served(post(forget)))
        .route(&path("feedback"), served(post(feedback)))
        .route(&path("export"), served(post(export)))
        .route(&path("audit"), served(post(audit)))
        .route(&path("audit/verify"), served(get(verify)))
        .route(&path("memory/{id}"), served(get(memory)))
        .route(&path("subscribe"), served(get(subscribe)))
        .with_state(desk)
}

/// A path that knows no such method is, to this protocol, no path.
fn served(method: MethodRouter<Desk>) -> MethodRouter<Desk> {
    method.fallback(async || refused(&Error::NotFound))
}

macro_rules! operations {
    ($($name:ident)*) => {
        $(async fn $name(State(desk): State<Desk>, request: Request) -> Response {
            desk.answer(stringify!($name), request).await
        })*
    };
}

operations! { capabilities recall remember revise forget feedback export audit }

async fn verify(State(desk): State<Desk>, request: Request) -> Response {
    desk.answer("audit.verify", request).await
}

async fn memory(State(desk): State<Desk>, Path(id): Path<String>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    let looked = async {
        let call = desk.surface.call(&parts, NAME)?;
        let input = Object::from_iter([("id".to_owned(), id.into())]);
        desk.ump.perform(&call, "get", input, Some(desk.wire.unwrap_or_default())).await
    };
    desk.timed(looked).await
}

async fn subscribe(State(desk): State<Desk>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    let opened = async {
        let call = desk.surface.call(&parts, NAME)?;
        let mut input = asked(parts.uri.query().unwrap_or_default())?;
        if let Some(last) = header(&parts.headers, LAST_EVENT_ID)? {
            input.insert("after".into(), last.into());
        }
        stream::follow(&desk.ump, call, input, desk.wire.unwrap_or_default()).await
    };
    match opened.await {
        Err(error) => refused(&error),
        Ok(told) => {
            let events = told.map(|told| SentEvent {
                id: Some(told.cursor),
                event: Some(told.kind),
                data: told.value.to_string(),
            });
            yore_http::events(events.boxed(), &desk.surface.stop)
        }
    }
}

async fn well_known(State(desk): State<Desk>) -> Response {
    json(StatusCode::OK, &desk.ump.well_known(Wire::default()))
}

impl Desk {
    async fn answer(&self, operation: &'static str, request: Request) -> Response {
        let (parts, body) = request.into_parts();
        let done = async {
            let limits = self.surface.limits;
            let call = self.surface.call(&parts, NAME)?;
            let input: Object = yore_http::input(&parts, body, limits.body, limits.depth).await?;
            self.ump.perform(&call, operation, input, self.wire).await
        };
        self.timed(done).await
    }

    async fn timed(&self, work: impl Future<Output = Result<Value>>) -> Response {
        let time = self.surface.limits.time;
        match tokio::time::timeout(time, work).await {
            Ok(Ok(value)) => json(StatusCode::OK, &value),
            Ok(Err(error)) => refused(&error),
            Err(_) => refused(&Error::Busy {
                reason: format!("no answer within {} s", time.as_secs()),
                retry_after: std::time::Duration::from_secs(1),
            }),
        }
    }
}

/// The scope that a query string narrows a subscription to, and where to go on.
fn asked(query: &str) -> Result<Object> {
    let (mut input, mut scope) = (Object::new(), Object::new());
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let value = value.replace('+', " ");
        let value = percent_decode_str(&value).decode_utf8();
        let value = value.map_err(|_| Error::invalid("query", "is not UTF-8"))?;
        if SCOPE.contains(&name) {
            scope.insert(name.to_owned(), (*value).into());
        } else if name == "after" {
            input.insert(name.to_owned(), (*value).into());
        }
    }
    input.insert("scope".into(), scope.into());
    Ok(input)
}

fn refused(error: &Error) -> Response {
    let refusal = Refusal::of(error);
    let status = StatusCode::from_u16(refusal.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = json(status, &refusal.envelope());
    if status == StatusCode::UNAUTHORIZED {
        let challenge = HeaderValue::from_static("Bearer realm=\"yore\"");
        response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
    }
    if let Some(after) = refusal.retry_after {
        let seconds = HeaderValue::from(after.as_secs().max(1));
        response.headers_mut().insert(RETRY_AFTER, seconds);
    }
    response
}

fn json(status: StatusCode, value: &Value) -> Response {
    const JSON: HeaderValue = HeaderValue::from_static("application/json");
    (status, [(CONTENT_TYPE, JSON)], value.to_string()).into_response()
}
