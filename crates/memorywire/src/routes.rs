//! The HTTP binding: everything under `/memorywire/v0/`.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, any, get, post};
use serde_json::Value;
use yore_domain::{Error, Result};
use yore_http::Surface;

use crate::error::Refusal;
use crate::wire::Object;
use crate::{Memorywire, NAME, PREFIX, schema};

/// What all requests share.
#[derive(Clone)]
struct Desk {
    surface: Surface,
    memorywire: Arc<Memorywire>,
}

/// The routes of the protocol.
pub fn routes(surface: Surface, memorywire: Arc<Memorywire>) -> Router {
    let path = |name: &str| format!("{PREFIX}/{name}");
    Router::new()
        .route(&path("remember"), served(post(remember)))
        .route(&path("recall"), served(post(recall)))
        .route(&path("forget"), served(post(forget)))
        .route(&path("merge"), served(post(merge)))
        .route(&path("expire"), served(post(expire)))
        .route(&path("recover"), served(post(recover)))
        .route(&path("restore"), served(post(restore)))
        .route(&path("list"), served(post(list)))
        .route(&path("neighbours"), served(post(neighbours)))
        .route(&path("procedures/{move}"), served(post(procedure)))
        .route(&path("schemas/{*name}"), served(get(described)))
        .route(&path("stores/{what}"), served(post(stores)))
        .route(&path("governance/{what}"), served(post(governance)))
        .route(&path("health"), served(get(health)))
        .route("/memorywire/{*rest}", any(async || Refusal::from(Error::NotFound)))
        .with_state(Desk { surface, memorywire })
}

/// A path that knows no such method is, to this protocol, no path.
fn served(method: MethodRouter<Desk>) -> MethodRouter<Desk> {
    method.fallback(async || Refusal::from(Error::NotFound))
}

macro_rules! operations {
    ($work:ident: $($name:ident)*) => {
        $(async fn $name(State(desk): State<Desk>, request: Request) -> Response {
            desk.answer(Work::$work(stringify!($name)), request).await
        })*
    };
}

operations! { Operation: remember recall forget merge expire recover restore }
operations! { Look: list neighbours }

async fn procedure(
    State(desk): State<Desk>,
    Path(name): Path<String>,
    request: Request,
) -> Response {
    desk.answer(Work::Procedure(&name), request).await
}

async fn described(Path(name): Path<String>) -> Response {
    match schema::named(&name) {
        Some(schema) => answered(&schema, "application/schema+json"),
        None => Refusal::from(Error::NotFound).into_response(),
    }
}

/// Says how the stores are; nothing of it depends on who asks.
async fn health(State(desk): State<Desk>) -> Response {
    answered(&desk.memorywire.health().await, "application/json")
}

async fn stores(State(desk): State<Desk>, Path(what): Path<String>, request: Request) -> Response {
    desk.answer(Work::Stores(&what), request).await
}

async fn governance(
    State(desk): State<Desk>,
    Path(what): Path<String>,
    request: Request,
) -> Response {
    desk.answer(Work::Governance(&what), request).await
}

/// What a request wants.
#[derive(Clone, Copy)]
enum Work<'a> {
    Operation(&'static str),
    Look(&'static str),
    Procedure(&'a str),
    Stores(&'a str),
    Governance(&'a str),
}

impl Desk {
    async fn answer(&self, work: Work<'_>, request: Request) -> Response {
        let limits = self.surface.limits;
        let time = if matches!(work, Work::Stores(_)) { limits.heavy_time } else { limits.time };
        let done = tokio::time::timeout(time, Box::pin(self.perform(work, request))).await;
        let done = done.unwrap_or_else(|_| {
            let reason = format!("no answer within {} s", time.as_secs());
            let retry_after = std::time::Duration::from_secs(1);
            Err(Error::Busy { reason, retry_after })
        });
        match done {
            Ok(value) => answered(&value, "application/json"),
            Err(error) => Refusal::from(error).into_response(),
        }
    }

    async fn perform(&self, work: Work<'_>, request: Request) -> Result<Value> {
        let (parts, body) = request.into_parts();
        let call = self.surface.call(&parts, NAME)?;
        let limits = self.surface.limits;
        let input = yore_http::input::<Object>(&parts, body, limits.body, limits.depth).await;
        let done = match input {
            Err(error) => Err(error),
            Ok(input) => match work {
                Work::Operation(name) => self.memorywire.perform(&call, name, input).await,
                Work::Look(what) => self.memorywire.look(&call, what, input).await,
                Work::Procedure(name) => self.memorywire.procedure(&call, name, input).await,
                Work::Stores(what) => self.memorywire.keep(&call, what, input).await,
                Work::Governance(what) => self.memorywire.govern(&call, what, input).await,
            },
        };
        match done {
            // Whoever is nobody is told that before anything about the input.
            Err(error @ (Error::Invalid { .. } | Error::TooLarge { .. })) => {
                Err(self.memorywire.refused_input(&call, error).await)
            }
            Ok(_) | Err(_) => done,
        }
    }
}

fn answered(value: &Value, kind: &'static str) -> Response {
    let head = [(CONTENT_TYPE, HeaderValue::from_static(kind))];
    (StatusCode::OK, head, value.to_string()).into_response()
}
