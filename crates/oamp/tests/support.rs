//! A vault in a temporary directory behind the real router.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Method, Request};
use axum::routing::any;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tempfile::TempDir;
use tower::ServiceExt;
use yore_canon::did::Did;
use yore_canon::jws;
use yore_canon::key::{Algorithm, SigningKey};
use yore_domain::class::{Label, Sensitivity};
use yore_domain::grant::{Labels, Verb, Verbs};
use yore_domain::scope::ScopeRule;
use yore_domain::{AgentId, GrantId, MemoryId, TenantId, Timestamp};
use yore_engine::dialect::Registry;
use yore_engine::{
    Call, Engine, FixedClock, GrantRequest, Parts, Secret, Settings, TokenKind, token,
};
use yore_http::{Limits, Surface};
use yore_oamp::{Oamp, Options};
use yore_ump::Ump;
use zeroize::Zeroizing;

/// 2027-01-15T08:00:00Z.
pub(crate) const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);
pub(crate) const NOW_SECONDS: i64 = 1_800_000_000;
/// Whose vault it is.
pub(crate) const USER: &str = "owner";
pub(crate) const LOCAL_KEY: [u8; 32] = [7; 32];

pub(crate) struct Vault {
    pub(crate) engine: Engine,
    pub(crate) clock: Arc<FixedClock>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) oamp: Arc<Oamp>,
    /// The owner's token.
    pub(crate) owner: String,
    /// A token that acts for every user.
    pub(crate) service: String,
    pub(crate) router: Router,
    pub(crate) directory: TempDir,
}

/// An answer over HTTP.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
    pub(crate) body: Value,
}

impl Reply {
    #[track_caller]
    pub(crate) fn expect(self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.text);
        self.body
    }

    pub(crate) fn refusal(&self) -> (u16, &str) {
        (self.status, self.body["code"].as_str().unwrap_or_default())
    }
}

impl Vault {
    pub(crate) async fn new() -> Self {
        Self::with(|_| {}, Options::default()).await
    }

    pub(crate) async fn with(change: impl FnOnce(&mut Settings), options: Options) -> Self {
        Self::limited(change, options, Limits::default()).await
    }

    /// A vault behind a router that gives a request no more than so long.
    pub(crate) async fn hurried(time: Duration) -> Self {
        let limits = Limits { time, heavy_time: time, ..Limits::default() };
        Self::limited(|_| {}, Options::default(), limits).await
    }

    async fn limited(change: impl FnOnce(&mut Settings), options: Options, limits: Limits) -> Self {
        let directory = TempDir::new().unwrap();
        let (store, keeper) = yore_scratch::open(directory.path()).await;
        let clock = Arc::new(FixedClock::at(NOW));
        let mut settings = Settings { strict_audit: true, ..Settings::default() };
        change(&mut settings);
        let engine = Engine::new(Parts {
            store,
            keeper,
            clock: clock.clone(),
            local_key: Zeroizing::new(LOCAL_KEY),
            settings,
        });
        let master = Call::bearer("test", token::proof(&LOCAL_KEY, NOW));
        let owner = engine.issue_token(&master, TokenKind::Owner, None, None).await.unwrap();
        let service = TokenKind::Service(TenantId::DEFAULT);
        let service = engine.issue_token(&master, service, None, None).await.unwrap();
        let oamp = Arc::new(Oamp::new(engine.clone(), options));
        let ump = Ump::new(engine.clone(), yore_ump::Options::default());
        let registry =
            Arc::new(Registry::new(vec![Box::new(ump.clone()), Box::new((*oamp).clone())]));
        let surface = Surface { limits, ..Surface::new(engine.clone(), registry.clone()) };
        let router = yore_oamp::routes(surface.clone(), oamp.clone())
            .merge(yore_ump::routes(surface, Arc::new(ump)))
            .route("/v1", any(yore_oamp::unknown))
            .route("/v1/", any(yore_oamp::unknown))
            .route("/v1/{*rest}", any(yore_oamp::unknown));
        Self { engine, clock, registry, oamp, owner, service, router, directory }
    }

    pub(crate) fn owner_call(&self) -> Call {
        Call::bearer("test", Secret::new(self.owner.clone()))
    }

    /// A token of this server for an agent.
    pub(crate) async fn agent(&self, name: &str, read: &[&str], max: Sensitivity) -> String {
        self.agent_with(name, read, read, max).await.0
    }

    pub(crate) async fn agent_with(
        &self,
        name: &str,
        read: &[&str],
        write: &[&str],
        max: Sensitivity,
    ) -> (String, GrantId) {
        let under = |names: &[&str]| {
            Labels::Under(names.iter().map(|name| Label::new(*name).unwrap()).collect())
        };
        let verbs = [Verb::Read, Verb::Write, Verb::Derive, Verb::Export, Verb::Erase];
        let request = GrantRequest {
            agent: AgentId::new(name).unwrap(),
            verbs: Verbs::of(&verbs),
            read: under(read),
            write: under(write),
            ceiling: max,
            scope: ScopeRule::default(),
            ttl: None,
            note: None,
        };
        let issued = self.engine.issue_grant(&self.owner_call(), request).await.unwrap();
        (issued.token, issued.grant.id)
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> Reply {
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        assert_ne!(status, 500, "{text}");
        let body = serde_json::from_str(&text).unwrap_or_default();
        Reply { status, headers, text, body }
    }

    /// A request with a bearer token, which may be empty, and a body, which may be null.
    pub(crate) async fn ask(&self, method: Method, token: &str, path: &str, body: &Value) -> Reply {
        let mut request = Request::builder().method(method).uri(path);
        if !token.is_empty() {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let body = if body.is_null() {
            Body::empty()
        } else {
            request = request.header("content-type", "application/json");
            Body::from(body.to_string())
        };
        self.send(request.body(body).unwrap()).await
    }

    pub(crate) async fn get(&self, token: &str, path: &str) -> Reply {
        self.ask(Method::GET, token, path, &Value::Null).await
    }

    pub(crate) async fn post(&self, token: &str, path: &str, body: &Value) -> Reply {
        self.ask(Method::POST, token, path, body).await
    }

    pub(crate) async fn patch(&self, token: &str, id: &str, body: &Value) -> Reply {
        self.ask(Method::PATCH, token, &format!("/v1/knowledge/{id}"), body).await
    }

    pub(crate) async fn delete(&self, token: &str, id: &str) -> Reply {
        self.ask(Method::DELETE, token, &format!("/v1/knowledge/{id}"), &Value::Null).await
    }

    pub(crate) async fn entry(&self, token: &str, id: &str) -> Reply {
        self.get(token, &format!("/v1/knowledge/{id}")).await
    }

    /// Stores an entry as the owner and returns its id.
    pub(crate) async fn holds(&self, entry: &Value) -> String {
        let stored = self.post(&self.owner, "/v1/knowledge", entry).await.expect(201);
        stored["id"].as_str().unwrap().to_owned()
    }

    /// What a list or a search returns, as texts.
    pub(crate) async fn contents(&self, token: &str, query: &str) -> Vec<String> {
        let path = format!("/v1/knowledge?user_id={USER}{query}");
        contents(&self.get(token, &path).await.expect(200))
    }

    pub(crate) async fn export(&self, token: &str) -> Value {
        self.post(token, "/v1/export", &json!({"user_id": USER})).await.expect(200)
    }

    pub(crate) async fn audit(&self, query: &str) -> Vec<Value> {
        let path = format!("/v1/admin/audit?user_id={USER}{query}");
        let lines = self.get(&self.owner, &path).await.expect(200);
        lines.as_array().unwrap().clone()
    }
}

pub(crate) fn contents(entries: &Value) -> Vec<String> {
    let list = entries.as_array().unwrap();
    list.iter().map(|entry| entry["content"].as_str().unwrap().to_owned()).collect()
}

pub(crate) fn id() -> String {
    MemoryId::random().to_string()
}

/// A plain entry of the owner's.
pub(crate) fn fact(content: &str) -> Value {
    json!({
        "oamp_version": "1.0.0",
        "type": "knowledge_entry",
        "id": id(),
        "user_id": USER,
        "category": "fact",
        "content": content,
        "confidence": 0.9,
        "source": {"session_id": "s-1", "timestamp": "2026-05-01T08:00:00Z"},
    })
}

/// An entry with a class and labels.
pub(crate) fn governed(content: &str, class: &str, labels: &[&str]) -> Value {
    let mut entry = fact(content);
    entry["oamp_version"] = "1.2.0".into();
    entry["governance"] = json!({"sensitivity_class": class, "labels": labels});
    entry
}

pub(crate) fn store(entries: &[Value]) -> Value {
    json!({
        "oamp_version": "1.2.0",
        "type": "knowledge_store",
        "user_id": USER,
        "entries": entries,
        "exported_at": "2026-05-08T09:30:00Z",
    })
}

pub(crate) fn key(seed: u8) -> SigningKey {
    SigningKey::generate(Algorithm::Ed25519, &[seed; 32])
}

pub(crate) fn did_of(key: &SigningKey) -> String {
    Did::of_key(&key.verifying_key()).as_str().to_owned()
}

/// The claims of a grant that holds for an hour.
pub(crate) fn claims(agent: &str, read: &[&str], max: &str) -> Value {
    json!({
        "sub": USER,
        "oamp_agent_id": agent,
        "oamp_grant_id": format!("grant-of-{agent}"),
        "oamp_read_labels": read,
        "oamp_write_labels": read,
        "oamp_sensitivity_max": max,
        "oamp_export_full": false,
        "exp": NOW_SECONDS + 3600,
    })
}

/// A token with these claims, signed by a key that it names.
pub(crate) fn jwt(key: &SigningKey, claims: &Value) -> String {
    jws::sign(key, &did_of(key), Some("JWT"), claims.to_string().as_bytes())
}

/// A published example document, where the test data are at hand.
pub(crate) fn published(path: &str) -> Option<Value> {
    let Some(data) = std::env::var_os("YORE_TESTDATA") else {
        println!("NOT RUN: YORE_TESTDATA is not set");
        return None;
    };
    let path = std::path::Path::new(&data).join("oamp").join(path);
    Some(serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap())
}
