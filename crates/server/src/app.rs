//! The router: every route, and what surrounds each request.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use futures::FutureExt;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;
use yore_client::api::{self, REQUEST_ID, Weight};
use yore_domain::Error;
use yore_engine::Engine;
use yore_engine::dialect::Registry;
use yore_http::{Peer, RequestId, Surface};
use yore_memorywire::{Memorywire, Stores};
use yore_oamp::Oamp;
use yore_omp::Omp;
use yore_uamp::{Fetch as _, Uamp};
use yore_ump::files::Format;
use yore_ump::{Export, Strictness, Ump};

use crate::backup::Copy;
use crate::config::{Config, Limits, Listen, Metrics as Audience};
use crate::guard::{self, Guard};
use crate::metrics::Metrics;
use crate::{dpop, operations, reply};

/// What all requests share.
#[derive(Clone, Debug)]
pub(crate) struct App(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    ump: Arc<Ump>,
    oamp: Arc<Oamp>,
    memorywire: Arc<Memorywire>,
    omp: Arc<Omp>,
    uamp: Uamp,
    surface: Surface,
    operators: Option<yore_web::Operators>,
    config: Config,
    guard: Guard,
    proofs: dpop::Seen,
    metrics: Metrics,
    ready: AtomicBool,
    open: watch::Sender<usize>,
    boot: String,
    requests: AtomicU64,
}

impl App {
    pub(crate) fn new(
        engine: Engine,
        config: Config,
        stores: Option<Stores>,
        operators: Option<yore_web::Operators>,
        stop: CancellationToken,
    ) -> Self {
        let mut boot = [0; 6];
        getrandom::fill(&mut boot).expect("invariant: the system has a source of randomness");
        let Limits { body, heavy_body, depth, request_seconds, heavy_seconds, .. } = config.limits;
        let limits = yore_http::Limits {
            body,
            heavy_body,
            depth,
            time: Duration::from_secs(request_seconds),
            heavy_time: Duration::from_secs(heavy_seconds),
        };
        let ump = Arc::new(Ump::new(engine.clone(), spoken(&config)));
        let oamp = Arc::new(Oamp::new(engine.clone(), config.oamp.options()));
        let require_user = config.memorywire.require_user;
        let options = yore_memorywire::Options { require_user, ..Default::default() };
        let mut memorywire = Memorywire::new(engine.clone(), options);
        if let Some(stores) = stores {
            memorywire = memorywire.with_stores(stores);
        }
        let memorywire = Arc::new(memorywire);
        let omp =
            Arc::new(Omp::new(engine.clone(), config.omp.options(&config.listen, &config.data)));
        let registry = Arc::new(Registry::new(vec![
            Box::new((*ump).clone()),
            Box::new((*oamp).clone()),
            Box::new((*memorywire).clone()),
        ]));
        let fetch = crate::fetch::fetching(&config);
        let options = config.uamp.options();
        let uamp = Uamp::new(engine.clone(), Arc::clone(&registry), options, fetch);
        Self(Arc::new(Inner {
            ump,
            oamp,
            memorywire,
            omp,
            uamp,
            surface: Surface { engine, registry, limits, stop },
            operators,
            guard: Guard::new(&config.listen),
            proofs: dpop::Seen::default(),
            config,
            metrics: Metrics::new(),
            ready: AtomicBool::new(false),
            open: watch::Sender::new(0),
            boot: yore_canon::encode::hex(&boot),
            requests: AtomicU64::new(0),
        }))
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.0.surface.engine
    }

    /// The proofs of keys that counted already.
    pub(crate) fn proofs(&self) -> &dpop::Seen {
        &self.0.proofs
    }

    pub(crate) fn config(&self) -> &Config {
        &self.0.config
    }

    pub(crate) fn guard(&self) -> &Guard {
        &self.0.guard
    }

    /// What every crate with routes gets.
    pub(crate) fn surface(&self) -> &Surface {
        &self.0.surface
    }

    /// The dialect that writes and reads signed grants.
    pub(crate) fn oamp(&self) -> &Oamp {
        &self.0.oamp
    }

    /// The protocol in which agents write to each other.
    pub(crate) fn uamp(&self) -> &Uamp {
        &self.0.uamp
    }

    /// The routes of every protocol besides the native one, and of the web app.
    fn protocols(&self) -> Router<Self> {
        let surface = self.surface();
        let Listen { hosts, origins, .. } = &self.config().listen;
        let mcp = yore_mcp::Options {
            hosts: hosts.clone(),
            origins: origins.clone(),
            issues_tokens: true,
            ..yore_mcp::Options::default()
        };
        let web = yore_web::Options {
            spool: Some(self.config().data.join("spool")),
            upload_bytes: self.config().omp.archive_bytes,
            copies: Some(self.copies()),
            fetch: Some(self.fetch()),
            operators: self.0.operators.clone(),
            document: Some(self.document()),
            ..yore_web::Options::default()
        };
        yore_ump::routes(surface.clone(), Arc::clone(&self.0.ump))
            .merge(yore_oamp::routes(surface.clone(), Arc::clone(&self.0.oamp)))
            .merge(yore_memorywire::routes(surface.clone(), Arc::clone(&self.0.memorywire)))
            .merge(yore_omp::routes(surface.clone(), Arc::clone(&self.0.omp)))
            .merge(yore_mcp::routes(surface.clone(), mcp))
            .merge(yore_uamp::routes(surface.clone(), self.0.uamp.clone()))
            // Two protocols live under `/v1`. Each answers for the paths it claims and for what lies
            // below them; the rest is nobody's, and is answered in the words of the older tenant.
            .route("/v1", any(yore_oamp::unknown))
            .route("/v1/", any(yore_oamp::unknown))
            .route("/v1/{*rest}", any(yore_oamp::unknown))
            .merge(yore_web::routes(surface.clone(), web))
            .with_state(())
    }

    /// How the web app fetches what clients say of themselves.
    fn fetch(&self) -> yore_web::Fetch {
        let web = Arc::new(yore_uamp::Web::new(self.config().uamp.private_hosts.clone()));
        yore_web::Fetch(Arc::new(move |url| -> yore_web::Fetched {
            let web = Arc::clone(&web);
            Box::pin(async move { web.fetch(&url).await })
        }))
    }

    /// The description of everything REST.
    fn document(&self) -> yore_web::Document {
        let registry = Arc::clone(&self.surface().registry);
        yore_web::Document(Arc::new(move || crate::describe::document(&registry)))
    }

    /// Where copies of the vaults lie.
    fn copies(&self) -> yore_web::Copies {
        let Config { data, backup, .. } = self.config();
        yore_web::Copies {
            folder: backup.folder(data),
            every: backup.every.as_str(),
            keep: backup.keep,
            name: Copy::name,
            told: |path| Copy::at(path.to_owned()).map(|copy| (copy.vault, copy.made)),
        }
    }

    /// The number of open connections.
    pub(crate) fn open(&self) -> &watch::Sender<usize> {
        &self.0.open
    }

    /// The protocol whose jobs outlive a server.
    pub(crate) fn omp(&self) -> &Omp {
        &self.0.omp
    }

    pub(crate) fn set_ready(&self, ready: bool) {
        self.0.ready.store(ready, Ordering::SeqCst);
    }

    /// How large a request of this weight may be, and how long it may take.
    pub(crate) fn bounds(&self, weight: Weight) -> (usize, Duration) {
        let limits = self.0.surface.limits;
        match weight {
            Weight::Light => (limits.body, limits.time),
            Weight::Heavy => (limits.heavy_body, limits.heavy_time),
        }
    }

    fn request_id(&self, headers: &HeaderMap) -> RequestId {
        let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
        let given = headers.get(REQUEST_ID).and_then(|value| value.to_str().ok());
        let given =
            given.filter(|id| (1..=128).contains(&id.len()) && id.as_bytes().iter().all(plain));
        RequestId(given.map_or_else(
            || {
                let number = self.0.requests.fetch_add(1, Ordering::Relaxed);
                format!("{}-{number:x}", self.0.boot)
            },
            str::to_owned,
        ))
    }
}

/// What the operator decided about the Universal Memory Protocol.
fn spoken(config: &Config) -> yore_ump::Options {
    let exports = config.publish.url.as_ref().and_then(|_| config.publish.exports().ok());
    let listed =
        |(format, url): (Format, String)| Export { url, format: format.as_str().to_owned() };
    yore_ump::Options {
        endpoint: config.ump.endpoint.clone(),
        owner: None,
        exports: exports.into_iter().flatten().map(listed).collect(),
        strict: if config.ump.strict { Strictness::Strict } else { Strictness::Lenient },
    }
}

/// All routes.
pub(crate) fn router(app: App) -> Router {
    operations::routes()
        .route("/health", get(health))
        .route("/ready", get(ready))
        .route("/metrics", get(metrics))
        .merge(app.protocols())
        .fallback(async || reply::refusal(&Error::NotFound))
        .method_not_allowed_fallback(async || {
            let status = StatusCode::METHOD_NOT_ALLOWED;
            reply::refused(status, "invalid", "the method is not one of this path")
        })
        .layer(from_fn_with_state(app.clone(), dpop::look))
        .layer(from_fn_with_state(app.clone(), guard::check))
        .layer(from_fn_with_state(app.clone(), observe))
        .with_state(app)
}

/// Names, times, counts and logs a request, and survives its panics. What a request says is
/// neither logged nor counted: of its path only the pattern that matched.
async fn observe(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let matched = request.extensions().get::<MatchedPath>().cloned();
    let pattern = matched.as_ref().map_or("unmatched", MatchedPath::as_str);
    let operation = pattern.trim_start_matches(api::PREFIX);
    let id = app.request_id(request.headers());
    let span =
        tracing::info_span!("request", request.id = %id.0, protocol = "native", op = operation);
    request.extensions_mut().insert(id.clone());
    let begun = Instant::now();
    let answered = AssertUnwindSafe(next.run(request)).catch_unwind().instrument(span.clone());
    let mut response = answered.await.unwrap_or_else(|_| {
        span.in_scope(|| tracing::error!("a request panicked"));
        reply::refused(StatusCode::INTERNAL_SERVER_ERROR, "internal", "internal error")
    });
    let (status, took) = (response.status().as_u16(), begun.elapsed());
    app.0.metrics.answered(operation, status, took);
    span.in_scope(|| tracing::info!(status, micros = took.as_micros(), "answered"));
    let headers = response.headers_mut();
    if let Ok(id) = HeaderValue::from_str(&id.0) {
        headers.insert(HeaderName::from_static(REQUEST_ID), id);
    }
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

async fn health() -> Response {
    reply::json(StatusCode::OK, &serde_json::json!({ "status": "ok" }))
}

async fn ready(State(app): State<App>) -> Response {
    if app.0.ready.load(Ordering::SeqCst) {
        return reply::json(StatusCode::OK, &serde_json::json!({ "status": "ready" }));
    }
    reply::refusal(&Error::Busy {
        reason: "the server is starting or ending".into(),
        retry_after: Duration::from_secs(1),
    })
}

async fn metrics(State(app): State<App>, request: Request) -> Response {
    let local = request.extensions().get::<Peer>().is_some_and(Peer::is_local);
    let allowed = match app.0.config.metrics {
        Audience::Off => false,
        Audience::Loopback => local,
        Audience::All => true,
    };
    if !allowed {
        return reply::refusal(&Error::NotFound);
    }
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    let folder = app.0.config.backup.folder(&app.0.config.data);
    // What cannot be read is told by the doctor; the other numbers are worth having without it.
    let copies = crate::backup::deliveries(&folder).unwrap_or_default();
    let text = app.0.metrics.print(*app.0.open.borrow(), copies);
    ([(CONTENT_TYPE, HeaderValue::from_static(kind))], text).into_response()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    #[test]
    fn uamp_045_no_two_protocols_claim_one_route() {
        let claims: Vec<&str> = yore_oamp::PATHS.into_iter().chain(yore_uamp::PATHS).collect();
        // A blank is a blank, whatever it is called.
        let shape = |path: &str| -> String {
            let part = |part: &str| if part.starts_with('{') { "*" } else { part }.to_owned();
            path.split('/').map(part).collect::<Vec<_>>().join("/")
        };
        let shapes: BTreeSet<String> = claims.iter().map(|path| shape(path)).collect();
        assert_eq!(shapes.len(), claims.len(), "{claims:?}");
        let others = ["/api/", "/ump", "/mcp", yore_memorywire::PREFIX, "/.well-known/ump.json"];
        for path in claims {
            assert!(others.iter().all(|other| !path.starts_with(other)), "{path}");
        }
    }
}
