//! The HTTP binding: at the specification's root paths and under `/omp/v2`.

mod admin;
mod archives;
mod records;
mod talks;
mod tenants;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{FromRequestParts, Path, Request};
use axum::http::header::{CONTENT_TYPE, ETAG};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, any, delete, get, post};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use yore_domain::Error;
use yore_engine::{Call, Identity};
use yore_http::{Peer, Surface, Way};

use crate::accept::{self, Kind};
use crate::condition::{self, Expected};
use crate::cursor::Roll;
use crate::error::{Refusal, Result};
use crate::links::Links;
use crate::map::{Ids, Object};
use crate::params::Params;
use crate::scope::Scope;
use crate::{NAME, Omp};

/// Where the surface lies: at the root, as the specification has it, and apart.
pub const PREFIXES: [&str; 2] = ["", "/omp/v2"];

/// Every path of the surface below a prefix.
pub const PATHS: [&str; 33] = [
    "/conversations",
    "/conversations/{id}",
    "/conversations/{id}/messages",
    "/conversations/{id}/messages/{message}",
    "/memories",
    "/memories/{id}",
    "/search",
    "/changes",
    "/attachments/{blob}",
    "/backup",
    "/backup/schedules",
    "/backup/{job}",
    "/backup/{job}/download",
    "/restore",
    "/restore/{job}",
    "/import/{name}",
    "/deletions",
    "/deletions/preview",
    "/admin/grants",
    "/admin/grants/{id}",
    "/admin/holds",
    "/admin/audit",
    "/admin/tenants",
    "/admin/tenants/{tenant}/users",
    "/admin/tenants/{tenant}/users/{user}",
    "/admin/retention",
    "/admin/reports/models",
    "/admin/webhooks",
    "/admin/webhooks/{id}",
    "/admin/keys/rotate",
    "/admin/guardianship",
    "/admin/guardianship/stop",
    "/.well-known/omp",
];

/// What all requests below one prefix share.
#[derive(Clone)]
struct Desk {
    surface: Surface,
    omp: Arc<Omp>,
    prefix: &'static str,
}

/// The routes of the protocol.
pub fn routes(surface: Surface, omp: Arc<Omp>) -> Router {
    let mut all = Router::new().route("/omp/v2/{*rest}", any(nothing));
    for prefix in PREFIXES {
        let desk = Desk { surface: surface.clone(), omp: Arc::clone(&omp), prefix };
        let mut router = Router::new();
        for path in PATHS {
            router = router.route(&format!("{prefix}{path}"), served(methods(path)));
        }
        all = all.merge(router.with_state(desk));
    }
    all
}

/// What each path answers to.
fn methods(path: &str) -> MethodRouter<Desk> {
    match path {
        "/conversations" => get(talks::conversations).post(talks::create_conversation),
        "/conversations/{id}" => get(talks::conversation)
            .patch(talks::patch_conversation)
            .delete(talks::delete_conversation),
        "/conversations/{id}/messages" => post(talks::append),
        "/conversations/{id}/messages/{message}" => {
            get(talks::message).delete(talks::delete_message)
        }
        "/attachments/{blob}" => get(talks::attachment),
        "/memories" => get(records::memories).post(records::create_memory),
        "/memories/{id}" => get(records::memory)
            .put(records::put_memory)
            .patch(records::patch_memory)
            .delete(records::delete_memory),
        "/search" => get(records::search),
        "/changes" => get(records::changes),
        "/backup" => post(archives::begin_backup),
        "/backup/schedules" => get(archives::schedules).post(archives::set_schedule),
        "/backup/{job}" => get(archives::backup),
        "/backup/{job}/download" => get(archives::download),
        "/restore" => post(archives::begin_restore),
        "/restore/{job}" => get(archives::restore),
        "/import/{name}" => post(archives::begin_import).get(archives::restore),
        "/deletions" => post(archives::delete),
        "/deletions/preview" => post(archives::preview),
        "/admin/grants" => get(admin::grants).post(admin::give),
        "/admin/grants/{id}" => delete(admin::take_back),
        "/admin/holds" => post(admin::hold),
        "/admin/audit" => get(admin::audit),
        "/admin/tenants" => get(tenants::tenants).post(tenants::add_tenant),
        "/admin/tenants/{tenant}/users" => get(tenants::users).post(tenants::add_user),
        "/admin/tenants/{tenant}/users/{user}" => get(tenants::user).delete(tenants::remove_user),
        "/admin/retention" => get(tenants::retention).post(tenants::set_retention),
        "/admin/reports/models" => get(tenants::model_report),
        "/admin/webhooks" => get(admin::listeners).post(admin::listen),
        "/admin/webhooks/{id}" => delete(admin::stop_listening).patch(admin::switch_listener),
        "/admin/keys/rotate" => post(admin::rotate),
        "/admin/guardianship" => get(tenants::guardianship).post(tenants::set_guardianship),
        "/admin/guardianship/stop" => post(tenants::stop),
        "/.well-known/omp" => get(records::discovery),
        _ => MethodRouter::new(),
    }
}

async fn nothing() -> Refusal {
    Error::NotFound.into()
}

fn served(methods: MethodRouter<Desk>) -> MethodRouter<Desk> {
    methods.fallback(async || {
        Refusal::new(405, "method_not_allowed", "the method is not one of this path")
    })
}

/// The pieces of a path. What is no text names nothing.
struct Segments<T>(T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for Segments<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self> {
        match Path::<T>::from_request_parts(parts, state).await {
            Ok(Path(segments)) => Ok(Self(segments)),
            Err(_) => Err(Error::NotFound.into()),
        }
    }
}

/// A request whose head was read.
pub(crate) struct Asking {
    pub(crate) call: Call,
    pub(crate) params: Params,
    pub(crate) links: Links,
    headers: HeaderMap,
    media_type: &'static str,
}

impl Asking {
    /// Whether ids that are not the protocol's are taken.
    pub(crate) fn ids(&self) -> Result<Ids> {
        Ok(match self.params.flag("strict_ids")? {
            Some(true) => Ids::Strict,
            Some(false) | None => Ids::Mapped,
        })
    }

    /// Whether only the scope of a deletion is asked for.
    pub(crate) fn dry_run(&self) -> Result<bool> {
        Ok(self.params.flag("dry_run")?.unwrap_or(false))
    }

    /// Answers with a document.
    fn document(&self, status: StatusCode, body: &Value) -> Response {
        let kind = HeaderValue::from_static(self.media_type);
        (status, [(CONTENT_TYPE, kind)], body.to_string()).into_response()
    }

    /// Answers with a document that has a tag, unless the client has it already.
    fn tagged(&self, status: StatusCode, tag: &str, body: Object) -> Response {
        if tag.is_empty() {
            return self.document(status, &body.into());
        }
        let quoted = format!("\"{tag}\"");
        if status == StatusCode::OK && condition::known(&self.headers, tag) {
            return with(StatusCode::NOT_MODIFIED.into_response(), ETAG, &quoted);
        }
        with(self.document(status, &body.into()), ETAG, &quoted)
    }
}

fn with(mut response: Response, name: HeaderName, value: &str) -> Response {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
    response
}

impl Desk {
    fn asking(&self, parts: &Parts, kind: Kind) -> Result<Asking> {
        let plain = parts.extensions.get::<Peer>().is_some_and(|peer| peer.way == Way::Plain);
        if plain && !self.omp.options.clear_text {
            return Err(self.omp.only_over_tls());
        }
        Ok(Asking {
            media_type: kind.accepted(&parts.headers)?,
            call: self.surface.call(parts, NAME)?,
            params: Params::of(&parts.uri)?,
            links: Links::of(parts, self.prefix),
            headers: parts.headers.clone(),
        })
    }

    /// Answers a request that has no body.
    async fn look<F>(&self, request: Request, scope: Scope, kind: Kind, work: F) -> Response
    where
        F: AsyncFnOnce(Asking) -> Result<Response>,
    {
        let (parts, _) = request.into_parts();
        let asked = match self.asking(&parts, kind) {
            Ok(asking) => timed(self.surface.limits.time, work(asking)).await,
            Err(refusal) => Err(refusal),
        };
        asked.unwrap_or_else(|refusal| refusal.at(scope).into_response())
    }

    /// Answers a request that brings a document: it has so long to arrive, and its answer as
    /// long again.
    async fn change<T, F>(&self, request: Request, kind: Kind, work: F) -> Response
    where
        T: DeserializeOwned,
        F: AsyncFnOnce(Asking, T) -> Result<Response>,
    {
        self.act(request, Scope::Write, kind, work).await
    }

    /// The same for a change that another scope covers.
    async fn act<T, F>(&self, request: Request, scope: Scope, kind: Kind, work: F) -> Response
    where
        T: DeserializeOwned,
        F: AsyncFnOnce(Asking, T) -> Result<Response>,
    {
        let time = self.surface.limits.heavy_time;
        let changed = match tokio::time::timeout(time, Box::pin(self.read(request, kind))).await {
            Ok(Ok((asking, input))) => timed(time, work(asking, input)).await,
            Ok(Err(refusal)) => Err(refusal),
            Err(_) => {
                let reason = format!("the request did not arrive within {} s", time.as_secs());
                Err(Refusal::new(408, "request_timeout", reason))
            }
        };
        changed.unwrap_or_else(|refusal| refusal.at(scope).into_response())
    }

    async fn read<T: DeserializeOwned>(&self, request: Request, kind: Kind) -> Result<(Asking, T)> {
        let (mut parts, body) = request.into_parts();
        let asking = self.asking(&parts, kind)?;
        accept::sent(&parts.headers)?;
        // All media types are JSON to the one parser there is.
        parts.headers.remove(CONTENT_TYPE);
        let limits = self.surface.limits;
        let bytes = self.surface.taken(&asking.call, limits.heavy_body).await;
        let input = yore_http::input(&parts, body, bytes, limits.depth).await?;
        Ok((asking, input))
    }

    /// What a request demands that may also make something: then there is no state to name.
    fn expected_of_any(&self, asking: &Asking) -> Result<Expected> {
        Expected::of(&asking.headers, false)
    }

    fn expected(&self, asking: &Asking) -> Result<Expected> {
        Expected::of(&asking.headers, self.omp.options.require_if_match)
    }
}

async fn timed(time: Duration, work: impl Future<Output = Result<Response>>) -> Result<Response> {
    match tokio::time::timeout(time, Box::pin(work)).await {
        Ok(answer) => answer,
        Err(_) => {
            let reason = format!("no answer within {} s", time.as_secs());
            Err(Error::Busy { reason, retry_after: Duration::from_secs(1) }.into())
        }
    }
}

impl Omp {
    /// What is told to those who ask in clear text, which the protocol forbids.
    fn only_over_tls(&self) -> Refusal {
        let refusal = Refusal::new(403, "forbidden", "this protocol is spoken over TLS only")
            .with("reason", "tls_required");
        match &self.options.tls_at {
            Some(url) => refusal.with("url", url.as_str()),
            None => refusal,
        }
    }

    /// One list as one caller sees it.
    pub(crate) fn roll<'a>(&'a self, identity: &'a Identity, list: String) -> Roll<'a> {
        Roll::new(&self.engine, identity, list)
    }
}

/// A page of a list.
pub(crate) struct Sheet {
    pub(crate) data: Vec<Object>,
    pub(crate) next: Option<String>,
}

impl Sheet {
    fn body(self) -> Value {
        let more = self.next.is_some();
        self.body_with(more)
    }

    /// The same where a cursor is told though there is nothing more yet.
    fn body_with(self, more: bool) -> Value {
        json!({"data": self.data, "has_more": more, "next_cursor": self.next})
    }
}
