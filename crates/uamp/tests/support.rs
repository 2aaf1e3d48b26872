//! A vault behind the real router, and agents that sign.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Method, Request};
use futures::future::BoxFuture;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tempfile::TempDir;
use tower::ServiceExt;
use yore_canon::did::{Did, KeyId};
use yore_canon::hash::Sha256;
use yore_canon::key::{Algorithm, SigningKey};
use yore_canon::{jcs, jws};
use yore_domain::class::Sensitivity;
use yore_domain::grant::{Labels, Verb, Verbs};
use yore_domain::memory::Draft;
use yore_domain::mutation::Mutation;
use yore_domain::scope::ScopeRule;
use yore_domain::{AgentId, MessageId, Timestamp};
use yore_engine::dialect::Registry;
use yore_engine::{
    Call, Engine, FixedClock, GrantRequest, Parts, Peer as Known, Secret, Settings, TokenKind,
    Wish, token,
};
use yore_http::{Peer, Surface, Way};
use yore_uamp::{Fetch, Options, Uamp};
use yore_ump::Ump;
use zeroize::Zeroizing;

/// 2026-01-02T03:05:00Z, the clock of the vectors.
pub(crate) const NOW: Timestamp = Timestamp::from_millis(1_767_323_100_000);
pub(crate) const SERVER: &str = "did:web:memory.example";
/// How long an answer may pause.
const IDLE: std::time::Duration = std::time::Duration::from_secs(1);
const LOCAL_KEY: [u8; 32] = [7; 32];

/// The one document there is on this web.
struct Pages(Value);

impl Fetch for Pages {
    fn fetch<'a>(&'a self, url: &'a str) -> BoxFuture<'a, Result<Vec<u8>, String>> {
        let found = self.0["url"] == url;
        let text = self.0["document"].to_string().into_bytes();
        Box::pin(async move { if found { Ok(text) } else { Err("there is nothing".to_owned()) } })
    }
}

pub(crate) struct Vault {
    pub(crate) engine: Engine,
    pub(crate) clock: Arc<FixedClock>,
    pub(crate) uamp: Uamp,
    pub(crate) router: Router,
    /// The owner's token.
    pub(crate) owner: String,
    directory: TempDir,
}

/// An agent with a key, and a token for the vault.
pub(crate) struct Agent {
    pub(crate) key: SigningKey,
    pub(crate) did: String,
    pub(crate) token: String,
}

/// An answer over HTTP.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl Reply {
    #[track_caller]
    pub(crate) fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}", self.text);
        self
    }

    pub(crate) fn location(&self) -> String {
        self.headers["location"].to_str().unwrap().to_owned()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap()
    }

    /// What a signed error says.
    pub(crate) fn refusal(&self) -> Value {
        let envelope = self.json();
        assert_eq!(envelope["intent"], "error", "{}", self.text);
        serde_json::from_str(envelope["body"]["content"].as_str().unwrap()).unwrap()
    }

    /// The frames of an event stream.
    pub(crate) fn frames(&self) -> Vec<Value> {
        let lines = self.text.lines().filter_map(|line| line.strip_prefix("data: "));
        lines.map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

pub(crate) fn vectors() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/vectors/uamp/vectors.json");
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

pub(crate) fn key(seed: u8) -> SigningKey {
    SigningKey::generate(Algorithm::Ed25519, &[seed; 32])
}

pub(crate) fn did_of(key: &SigningKey) -> String {
    Did::of_key(&key.verifying_key()).as_str().to_owned()
}

impl Vault {
    pub(crate) async fn new() -> Self {
        Self::with(|_| {}).await
    }

    pub(crate) async fn with(change: impl FnOnce(&mut Options)) -> Self {
        Self::open(TempDir::new().unwrap(), Arc::new(FixedClock::at(NOW)), change, None).await
    }

    /// With so many messages an hour for each sender.
    pub(crate) async fn limited(messages: u32) -> Self {
        let (place, clock) = (TempDir::new().unwrap(), Arc::new(FixedClock::at(NOW)));
        Self::open(place, clock, |_| {}, Some(messages)).await
    }

    /// Ends the process, so to speak, and begins another on the same vault a second later.
    pub(crate) async fn restarted(self) -> Self {
        let Self { engine, clock, uamp, router, directory, .. } = self;
        uamp.stop().await;
        drop((uamp, router));
        engine.close().await.unwrap();
        drop(engine);
        clock.advance(yore_domain::Span::seconds(1));
        Self::open(directory, clock, |_| {}, None).await
    }

    async fn open(
        directory: TempDir,
        clock: Arc<FixedClock>,
        change: impl FnOnce(&mut Options),
        messages_per_hour: Option<u32>,
    ) -> Self {
        let (store, keeper) = yore_scratch::open(directory.path()).await;
        let alice = vectors()["keys"]["alice"]["did"].as_str().unwrap().to_owned();
        let settings = Settings {
            strict_audit: true,
            did: SERVER.into(),
            issuers: vec![alice],
            messages_per_hour,
            ..Settings::default()
        };
        let engine = Engine::new(Parts {
            store,
            keeper,
            clock: clock.clone(),
            local_key: Zeroizing::new(LOCAL_KEY),
            settings,
        });
        let master = Call::bearer("test", token::proof(&LOCAL_KEY, engine.now()));
        let owner = engine.issue_token(&master, TokenKind::Owner, None, None).await.unwrap();
        let ump = Ump::new(engine.clone(), yore_ump::Options::default());
        let registry = Arc::new(Registry::new(vec![Box::new(ump)]));
        let patience = std::time::Duration::from_millis(200);
        let mut options = Options { patience, ..Options::default() };
        change(&mut options);
        let pages = Arc::new(Pages(vectors()["documents"]["did_web"].clone()));
        let uamp = Uamp::new(engine.clone(), registry.clone(), options, pages);
        let surface = Surface::new(engine.clone(), registry);
        let router = yore_uamp::routes(surface, uamp.clone());
        Self { engine, clock, uamp, router, owner, directory }
    }

    pub(crate) fn owner_call(&self) -> Call {
        Call::bearer("test", Secret::new(self.owner.clone()))
    }

    /// A token of this server for an agent by name.
    pub(crate) async fn token(&self, name: &str, verbs: &[Verb]) -> String {
        let request = GrantRequest {
            agent: AgentId::new(name).unwrap(),
            verbs: Verbs::of(verbs),
            read: Labels::Any,
            write: Labels::Any,
            ceiling: Sensitivity::Confidential,
            scope: ScopeRule::default(),
            ttl: None,
            note: None,
        };
        self.engine.issue_grant(&self.owner_call(), request).await.unwrap().token
    }

    pub(crate) async fn register(&self, did: &str, name: Option<&str>) {
        let peer = Known {
            did: did.to_owned(),
            agent: name.map(|name| AgentId::new(name).unwrap()),
            recorded: true,
            registered: NOW,
        };
        self.engine.register_peer(&self.owner_call(), peer).await.unwrap();
    }

    /// A registered agent with these verbs.
    pub(crate) async fn agent_with(&self, name: &str, seed: u8, verbs: &[Verb]) -> Agent {
        let key = key(seed);
        let did = did_of(&key);
        self.register(&did, Some(name)).await;
        let token = self.token(name, verbs).await;
        Agent { key, did, token }
    }

    pub(crate) async fn agent(&self, name: &str, seed: u8) -> Agent {
        let verbs = [Verb::Read, Verb::Write, Verb::Derive];
        self.agent_with(name, seed, &verbs).await
    }

    pub(crate) async fn remembers(&self, text: &str) {
        let draft = Box::new(Draft::text(text));
        let mutation = Mutation::Remember { draft, id: None };
        self.engine.mutate(&self.owner_call(), mutation, Wish::default()).await.unwrap();
    }

    pub(crate) async fn send(&self, mut request: Request<Body>) -> Reply {
        let address: SocketAddr = "127.0.0.1:9".parse().unwrap();
        request.extensions_mut().insert(Peer { way: Way::Tls, address: Some(address) });
        self.send_as_is(request).await
    }

    pub(crate) async fn send_as_is(&self, request: Request<Body>) -> Reply {
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let (mut body, mut bytes) = (response.into_body(), Vec::new());
        // A stream that has not ended is read for as long as something comes.
        while let Ok(Some(frame)) = tokio::time::timeout(IDLE, body.frame()).await {
            bytes.extend_from_slice(frame.unwrap().data_ref().unwrap());
        }
        Reply { status, headers, text: String::from_utf8(bytes).unwrap() }
    }

    pub(crate) async fn post(&self, token: &str, body: impl Into<String>) -> Reply {
        self.post_with(token, body, &[]).await
    }

    pub(crate) async fn post_with(
        &self,
        token: &str,
        body: impl Into<String>,
        headers: &[(&str, &str)],
    ) -> Reply {
        let mut request = Request::builder()
            .method(Method::POST)
            .uri("/v1/messages")
            .header("content-type", "application/uamp+json;v=1");
        if !token.is_empty() {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.send(request.body(Body::from(body.into())).unwrap()).await
    }

    /// Signs and posts an envelope.
    pub(crate) async fn say(&self, agent: &Agent, envelope: &Value) -> Reply {
        self.post(&agent.token, agent.sign(envelope)).await
    }

    pub(crate) async fn get(&self, token: &str, path: &str, headers: &[(&str, &str)]) -> Reply {
        let mut request = Request::builder().uri(path);
        if !token.is_empty() {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.send(request.body(Body::empty()).unwrap()).await
    }

    /// Asks, follows the stream as a browser would, and returns all frames.
    pub(crate) async fn answer(&self, agent: &Agent, envelope: &Value) -> Vec<Value> {
        let place = self.say(agent, envelope).await.expect(202).location();
        self.all(agent, &place).await
    }

    /// Follows a stream, coming back after every full window, until it has ended.
    pub(crate) async fn all(&self, agent: &Agent, place: &str) -> Vec<Value> {
        let mut frames: Vec<Value> = Vec::new();
        loop {
            let last = frames.last().map(|frame| frame["delta_seq"].to_string());
            let header: Vec<(&str, &str)> =
                last.iter().map(|last| ("last-event-id", last.as_str())).collect();
            let reply = self.get(&agent.token, place, &header).await;
            if reply.status == 204 {
                return frames;
            }
            let more = reply.expect(200).frames();
            frames.extend(more);
        }
    }

    /// The operations of the audit chain, oldest first.
    pub(crate) async fn audit(&self) -> Vec<(String, Value)> {
        let query = yore_engine::AuditQuery { limit: 1000, ..Default::default() };
        let entries = self.engine.audit(&self.owner_call(), query).await.unwrap();
        let line = |entry: yore_domain::audit::Entry| {
            (entry.draft.operation, serde_json::to_value(entry.draft.outcome).unwrap())
        };
        entries.into_iter().map(line).collect()
    }
}

impl Agent {
    /// An ask in plain words.
    pub(crate) fn ask(&self, question: &str) -> Value {
        self.envelope("ask", &json!({"type": "text/plain", "content": question}))
    }

    pub(crate) fn envelope(&self, intent: &str, body: &Value) -> Value {
        json!({
            "id": format!("urn:uuid:{}", MessageId::random()),
            "ts": "2026-01-02T03:05:00Z",
            "from": self.did,
            "to": [SERVER],
            "intent": intent,
            "body": body,
        })
    }

    /// An acknowledgement of everything up to a frame.
    pub(crate) fn ack(&self, stream: &str, last: u64) -> Value {
        let content = json!({ "ack": last }).to_string();
        let body = json!({"type": "application/json", "content": content});
        let mut envelope = self.envelope("progress", &body);
        envelope["stream_id"] = stream.into();
        envelope
    }

    pub(crate) fn sign(&self, envelope: &Value) -> String {
        let mut object = envelope.as_object().unwrap().clone();
        let digest = Sha256::of(jcs::canonical_without(&object, &["sig"]));
        let kid = KeyId::of_key(&self.key.verifying_key()).to_string();
        let payload = jws::digest_payload(&digest);
        let sig = jws::sign_detached(&self.key, &kid, payload.as_bytes());
        object.insert("sig".into(), sig.into());
        Value::Object(object).to_string()
    }
}

pub(crate) fn kinds(frames: &[Value]) -> Vec<&str> {
    frames.iter().map(|frame| frame["type"].as_str().unwrap()).collect()
}
