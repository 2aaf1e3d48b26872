//! A vault in a temporary directory behind the real router.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Method, Request};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tempfile::TempDir;
use tower::ServiceExt;
use yore_domain::audit::Entry;
use yore_domain::class::Sensitivity;
use yore_domain::grant::{Labels, Verb, Verbs};
use yore_domain::hold::{Hold, HoldState};
use yore_domain::memory::Memory;
use yore_domain::scope::ScopeRule;
use yore_domain::{AgentId, MemoryId, Span, TenantId, Timestamp};
use yore_engine::dialect::Registry;
use yore_engine::{
    AuditQuery, Call, Decision, Engine, FixedClock, GrantRequest, Parts, Reference, Secret,
    Settings, TokenKind, token,
};
use yore_http::Surface;
use yore_memorywire::{Memorywire, Options, schema};
use yore_ump::Ump;
use zeroize::Zeroizing;

/// 2027-01-15T08:00:00Z.
pub(crate) const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);
/// The agent of most requests.
pub(crate) const AGENT: &str = "agent-a";
/// The person of most requests.
pub(crate) const USER: &str = "alice";
const LOCAL_KEY: [u8; 32] = [7; 32];

pub(crate) struct Vault {
    pub(crate) engine: Engine,
    pub(crate) clock: Arc<FixedClock>,
    pub(crate) memorywire: Arc<Memorywire>,
    /// The owner's token.
    pub(crate) owner: String,
    /// A token that acts for every user.
    pub(crate) service: String,
    pub(crate) router: Router,
    _directory: TempDir,
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
        (self.status, self.body["error"]["code"].as_str().unwrap_or_default())
    }
}

impl Vault {
    pub(crate) async fn new() -> Self {
        let directory = TempDir::new().unwrap();
        let (store, keeper) = yore_scratch::open(directory.path()).await;
        let clock = Arc::new(FixedClock::at(NOW));
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
        let memorywire = Memorywire::new(engine.clone(), Options::default());
        let (memorywire, router) = served(&engine, memorywire);
        Self { engine, clock, memorywire, owner, service, router, _directory: directory }
    }

    /// Listens until the test ends, and returns the address.
    pub(crate) async fn listen(&self) -> String {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = self.router.clone();
        tokio::spawn(async move { axum::serve(listener, router).await });
        address.to_string()
    }

    /// Lets another speaker of the protocol answer.
    pub(crate) fn speak(&mut self, memorywire: Memorywire) {
        (self.memorywire, self.router) = served(&self.engine, memorywire);
    }

    pub(crate) fn owner_call(&self) -> Call {
        Call::bearer("test", Secret::new(self.owner.clone()))
    }

    /// A token for an agent that may do with its memories what it likes.
    pub(crate) async fn agent(&self, name: &str) -> String {
        self.agent_with(name, &[Verb::Read, Verb::Write, Verb::Erase]).await
    }

    pub(crate) async fn agent_with(&self, name: &str, verbs: &[Verb]) -> String {
        let request = GrantRequest {
            agent: AgentId::new(name).unwrap(),
            verbs: Verbs::of(verbs),
            read: Labels::Any,
            write: Labels::Any,
            ceiling: Sensitivity::Internal,
            scope: ScopeRule::default(),
            ttl: None,
            note: None,
        };
        self.engine.issue_grant(&self.owner_call(), request).await.unwrap().token
    }

    /// A token for an agent that reads one label only.
    pub(crate) async fn narrow(&self, name: &str, label: &str) -> String {
        let request = GrantRequest {
            agent: AgentId::new(name).unwrap(),
            verbs: Verbs::of(&[Verb::Read]),
            read: Labels::Under(vec![yore_domain::class::Label::new(label).unwrap()]),
            write: Labels::Under(Vec::new()),
            ceiling: Sensitivity::Internal,
            scope: ScopeRule::default(),
            ttl: None,
            note: None,
        };
        self.engine.issue_grant(&self.owner_call(), request).await.unwrap().token
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

    pub(crate) async fn get(&self, path: &str) -> Reply {
        let request = Request::builder().method(Method::GET).uri(path);
        self.send(request.body(Body::empty()).unwrap()).await
    }

    /// Asks for an operation with a bearer token, which may be empty. What is answered must be
    /// as its schema says.
    pub(crate) async fn ask(&self, token: &str, operation: &str, body: &Value) -> Reply {
        self.ask_as(token, operation, body, None).await
    }

    /// The same with an id for the operation.
    pub(crate) async fn ask_as(
        &self,
        token: &str,
        operation: &str,
        body: &Value,
        id: Option<&str>,
    ) -> Reply {
        let path = format!("/memorywire/v0/{operation}");
        let mut request = Request::builder().method(Method::POST).uri(path);
        request = request.header("content-type", "application/json");
        if !token.is_empty() {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        if let Some(id) = id {
            request = request.header("yore-operation-id", id);
        }
        let reply = self.send(request.body(Body::from(body.to_string())).unwrap()).await;
        if reply.status == 200 && schema::OPERATIONS.contains(&operation) {
            valid(operation, body);
            valid(&format!("{operation}.response"), &reply.body);
        }
        reply
    }

    /// Asks as the owner, for the usual agent unless another is named.
    pub(crate) async fn ok(&self, operation: &str, body: Value) -> Value {
        self.ask(&self.owner, operation, &of_agent(body)).await.expect(200)
    }

    /// Asks likewise and is refused.
    pub(crate) async fn refused(&self, operation: &str, body: Value) -> (u16, String) {
        let reply = self.ask(&self.owner, operation, &of_agent(body)).await;
        let (status, code) = reply.refusal();
        (status, code.to_owned())
    }

    /// Remembers a fact of the usual person's and returns its id.
    pub(crate) async fn fact(&self, content: &str) -> String {
        self.holds(json!({"content": content, "user_id": USER})).await
    }

    /// Remembers something, semantic unless it says otherwise, and returns its id.
    pub(crate) async fn holds(&self, mut body: Value) -> String {
        if body.get("type").is_none() {
            body["type"] = "semantic".into();
        }
        let stored = self.ok("remember", body).await;
        stored["id"].as_str().unwrap().to_owned()
    }

    /// What a recall returns.
    pub(crate) async fn hits(&self, body: Value) -> Vec<Value> {
        self.ok("recall", body).await["results"].as_array().unwrap().clone()
    }

    /// The same as texts.
    pub(crate) async fn texts(&self, body: Value) -> Vec<String> {
        let hits = self.hits(body).await;
        hits.iter().map(|hit| hit["content"].as_str().unwrap().to_owned()).collect()
    }

    /// A memory as the engine has it.
    pub(crate) async fn memory(&self, id: &str) -> Option<Memory> {
        let id: MemoryId = id.parse().unwrap();
        self.engine.get(&self.owner_call(), Reference::Memory(id)).await.ok()
    }

    pub(crate) async fn pending(&self) -> Vec<Hold> {
        self.engine.holds(&self.owner_call(), HoldState::Pending, 100).await.unwrap()
    }

    pub(crate) async fn approve(&self, hold: &Hold) {
        self.engine.review(&self.owner_call(), hold.id, Decision::Approve, None).await.unwrap();
    }

    pub(crate) async fn audit(&self, operation: &str) -> Vec<Entry> {
        let query = AuditQuery {
            operation: Some(operation.to_owned()),
            limit: 100,
            newest_first: true,
            ..AuditQuery::default()
        };
        self.engine.audit(&self.owner_call(), query).await.unwrap()
    }

    pub(crate) fn days_pass(&self, days: u64) {
        self.clock.advance(Span::days(days));
    }
}

fn served(engine: &Engine, memorywire: Memorywire) -> (Arc<Memorywire>, Router) {
    let memorywire = Arc::new(memorywire);
    let ump = Ump::new(engine.clone(), yore_ump::Options::default());
    let registry =
        Arc::new(Registry::new(vec![Box::new(ump.clone()), Box::new((*memorywire).clone())]));
    let surface = Surface::new(engine.clone(), registry);
    let router = yore_memorywire::routes(surface.clone(), memorywire.clone())
        .merge(yore_ump::routes(surface, Arc::new(ump)));
    (memorywire, router)
}

/// Fills in the usual agent.
pub(crate) fn of_agent(mut body: Value) -> Value {
    if body.get("agent_id").is_none() {
        body["agent_id"] = AGENT.into();
    }
    body
}

/// Checks a document against a published schema.
#[track_caller]
pub(crate) fn valid(name: &str, document: &Value) {
    let schema = schema::named(name).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let faults: Vec<String> =
        validator.iter_errors(document).map(|error| error.to_string()).collect();
    assert!(faults.is_empty(), "{name}: {faults:?} in {document}");
}

pub(crate) fn ids(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|id| id.as_str().unwrap()).collect()
}
