//! A vault in a temporary directory behind the real router.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Method, Request};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tempfile::TempDir;
use tower::ServiceExt;
use yore_domain::class::{Label, Sensitivity};
use yore_domain::grant::{Labels, Verb, Verbs};
use yore_domain::scope::ScopeRule;
use yore_domain::{AgentId, ConversationId, MemoryId, MessageId, Span, TenantId, Timestamp};
use yore_engine::dialect::Registry;
use yore_engine::{
    AuditQuery, Call, Clock as _, Engine, FixedClock, GrantRequest, Parts, Secret, Settings,
    TokenKind, token,
};
use yore_http::Surface;
use yore_omp::{Omp, Options};
use zeroize::Zeroizing;

use crate::described;

/// 2027-01-15T08:00:00Z.
pub(crate) const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);
const LOCAL_KEY: [u8; 32] = [7; 32];

pub(crate) struct Vault {
    pub(crate) engine: Engine,
    pub(crate) clock: Arc<FixedClock>,
    /// The owner's token.
    pub(crate) owner: String,
    /// A token that acts for every user.
    pub(crate) service: String,
    /// The protocol itself.
    pub(crate) omp: Arc<Omp>,
    router: Router,
    directory: TempDir,
}

/// An answer over HTTP.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) bytes: Vec<u8>,
    pub(crate) body: Value,
}

impl Reply {
    #[track_caller]
    pub(crate) fn expect(self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", String::from_utf8_lossy(&self.bytes));
        self.body
    }

    /// Status and code of a refusal in the protocol's form.
    #[track_caller]
    pub(crate) fn refusal(&self) -> (u16, &str) {
        let error = &self.body["error"];
        assert!(error["message"].is_string() && error["details"].is_object(), "{:?}", self.body);
        (self.status, error["code"].as_str().unwrap())
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    pub(crate) fn tag(&self) -> &str {
        self.header("etag")
    }
}

impl Vault {
    pub(crate) async fn new() -> Self {
        Self::with(Options::default()).await
    }

    pub(crate) async fn with(options: Options) -> Self {
        Self::at(TempDir::new().unwrap(), options).await
    }

    /// Ends the server and starts it again, some time later.
    pub(crate) async fn restarted(self, later: Span) -> Self {
        let Self { engine, clock, directory, router, omp, .. } = self;
        let now = clock.now().plus(later);
        omp.halt().await;
        drop((router, omp));
        engine.close().await.unwrap();
        drop(engine);
        let vault = Self::at(directory, Options::default()).await;
        vault.clock.set(now);
        vault
    }

    async fn at(directory: TempDir, options: Options) -> Self {
        let spool = Some(directory.path().join("spool"));
        let options = Options { spool, ..options };
        let clock = Arc::new(FixedClock::at(NOW));
        let (store, keeper) = yore_scratch::open(directory.path()).await;
        let engine = Engine::new(Parts {
            store,
            keeper,
            clock: clock.clone(),
            local_key: Zeroizing::new(LOCAL_KEY),
            settings: Settings { strict_audit: true, ..Settings::default() },
        });
        let master = Call::bearer("test", token::proof(&LOCAL_KEY, NOW));
        let owner = engine.issue_token(&master, TokenKind::Owner, None, None).await.unwrap();
        let service = TokenKind::Service(TenantId::DEFAULT);
        let service = engine.issue_token(&master, service, None, None).await.unwrap();
        let surface = Surface::new(engine.clone(), Arc::new(Registry::default()));
        let omp = Arc::new(Omp::new(engine.clone(), options));
        let router = yore_omp::routes(surface, Arc::clone(&omp));
        Self { engine, clock, owner, service, omp, router, directory }
    }

    /// A call of whoever holds the master key.
    pub(crate) fn master(&self) -> String {
        token::proof(&LOCAL_KEY, self.clock.now()).expose().to_owned()
    }

    /// A token of somebody who looks after a tenant.
    pub(crate) async fn admin_of(&self, tenant: TenantId) -> String {
        let master = Call::bearer("test", token::proof(&LOCAL_KEY, self.clock.now()));
        self.engine.issue_token(&master, TokenKind::Admin(tenant), None, None).await.unwrap()
    }

    /// A token that acts for every user of a tenant.
    pub(crate) async fn service_of(&self, tenant: TenantId) -> String {
        let master = Call::bearer("test", token::proof(&LOCAL_KEY, self.clock.now()));
        self.engine.issue_token(&master, TokenKind::Service(tenant), None, None).await.unwrap()
    }

    /// Where archives wait.
    pub(crate) fn spool(&self) -> std::path::PathBuf {
        self.directory.path().join("spool")
    }

    pub(crate) fn owner_call(&self) -> Call {
        Call::bearer("test", Secret::new(self.owner.clone()))
    }

    /// A token for an agent with these verbs over everything that has no label of its own.
    pub(crate) async fn agent(&self, name: &str, verbs: &[Verb]) -> String {
        let behaviour = || Labels::Under(vec![Label::behaviour()]);
        let request = GrantRequest {
            agent: AgentId::new(name).unwrap(),
            verbs: Verbs::of(verbs),
            read: behaviour(),
            write: behaviour(),
            ceiling: Sensitivity::Internal,
            scope: ScopeRule::default(),
            ttl: None,
            note: None,
        };
        self.engine.issue_grant(&self.owner_call(), request).await.unwrap().token
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> Reply {
        let (method, path) = (request.method().clone(), request.uri().to_string());
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let bytes = response.into_body().collect().await.unwrap().to_bytes().to_vec();
        assert_ne!(status, 500, "{}", String::from_utf8_lossy(&bytes));
        let body = serde_json::from_slice(&bytes).unwrap_or_default();
        let kind = headers.get("content-type").map_or("", |kind| kind.to_str().unwrap());
        described::given(&method, &path, status, kind, &bytes);
        Reply { status, headers, bytes, body }
    }

    /// A request with a bearer token, headers, and a body, which may be null.
    pub(crate) async fn ask(
        &self,
        method: Method,
        token: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &Value,
    ) -> Reply {
        let mut request =
            Request::builder().method(&method).uri(path).header("host", "memory.example");
        if !token.is_empty() {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let sent = if body.is_null() {
            Body::empty()
        } else {
            request = request.header("content-type", "application/json");
            Body::from(body.to_string())
        };
        let reply = self.send(request.body(sent).unwrap()).await;
        if (200..300).contains(&reply.status) && !body.is_null() {
            described::taken(&method, path, body);
        }
        reply
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.ask(Method::GET, &self.owner, path, &[], &Value::Null).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Reply {
        self.ask(Method::POST, &self.owner, path, &[], body).await
    }

    pub(crate) async fn patch(&self, path: &str, body: &Value) -> Reply {
        self.ask(Method::PATCH, &self.owner, path, &[], body).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Reply {
        self.ask(Method::DELETE, &self.owner, path, &[], &Value::Null).await
    }

    /// Stores a conversation as the owner and returns its path.
    pub(crate) async fn holds(&self, conversation: &Value) -> String {
        let reply = self.post("/conversations", conversation).await;
        let path = reply.header("location").to_owned();
        reply.expect(201);
        path
    }

    /// The names of the operations in the audit chain, newest first.
    pub(crate) async fn audited(&self) -> Vec<String> {
        let query = AuditQuery { limit: 50, newest_first: true, ..AuditQuery::default() };
        let entries = self.engine.audit(&self.owner_call(), query).await.unwrap();
        entries.into_iter().map(|entry| entry.draft.operation).collect()
    }
}

pub(crate) fn said(role: &str, text: &str, at: &str) -> Value {
    json!({
        "id": MessageId::random(),
        "role": role,
        "content": text,
        "timestamp": at,
        "model": null,
    })
}

/// A conversation of two turns.
pub(crate) fn talk(title: &str, question: &str, answer: &str) -> Value {
    let mut answer = said("assistant", answer, "2026-03-15T09:30:05Z");
    answer["model"] = "gpt-5".into();
    json!({
        "id": ConversationId::random(),
        "title": title,
        "created_at": "2026-03-15T09:30:00Z",
        "updated_at": "2026-03-15T09:30:05Z",
        "platform": "chatgpt",
        "messages": [said("user", question, "2026-03-15T09:30:00Z"), answer],
        "message_count": 2,
    })
}

pub(crate) fn record(kind: &str, content: &str) -> Value {
    json!({
        "id": MemoryId::random(),
        "record_type": kind,
        "content": content,
        "created_at": "2026-03-15T09:30:00Z",
        "updated_at": "2026-03-15T09:30:00Z",
        "active": true,
    })
}

/// One member of every object of a list.
pub(crate) fn each(list: &Value, name: &str) -> Vec<String> {
    let items = list["data"].as_array().unwrap().iter();
    items.map(|item| item[name].as_str().unwrap_or_default().to_owned()).collect()
}
