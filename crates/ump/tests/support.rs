//! A vault in a temporary directory behind the real router.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use http_body_util::BodyExt;
use serde_json::{Map, Value, json};
use tempfile::TempDir;
use tower::ServiceExt;
use yore_canon::captoken;
use yore_canon::did::Did;
use yore_canon::key::{Algorithm, SigningKey};
use yore_domain::class::Sensitivity;
use yore_domain::grant::{Labels, Verb, Verbs};
use yore_domain::scope::ScopeRule;
use yore_domain::{AgentId, Timestamp};
use yore_engine::dialect::Registry;
use yore_engine::{
    Call, Engine, FixedClock, GrantRequest, Parts, Secret, Settings, TokenKind, token,
};
use yore_http::Surface;
use yore_ump::Ump;
use zeroize::Zeroizing;

/// 2027-01-15T08:00:00Z.
pub(crate) const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);
pub(crate) const NOW_TEXT: &str = "2027-01-15T08:00:00Z";
const LOCAL_KEY: [u8; 32] = [7; 32];

pub(crate) struct Vault {
    pub(crate) engine: Engine,
    pub(crate) clock: Arc<FixedClock>,
    pub(crate) ump: Arc<Ump>,
    pub(crate) owner: String,
    /// The owner's DID.
    pub(crate) did: String,
    router: Router,
    _directory: TempDir,
}

/// An answer over HTTP.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: axum::http::HeaderMap,
    pub(crate) body: Value,
}

impl Reply {
    pub(crate) fn ok(self) -> Value {
        assert_eq!(self.status, 200, "{}", self.body);
        self.body
    }

    pub(crate) fn refusal(&self) -> (u16, &str) {
        (self.status, self.body["error"]["code"].as_str().unwrap_or_default())
    }
}

impl Vault {
    pub(crate) async fn new() -> Self {
        Self::with(|_| {}, yore_ump::Options::default()).await
    }

    pub(crate) async fn with(
        change: impl FnOnce(&mut Settings),
        options: yore_ump::Options,
    ) -> Self {
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
        let call = Call::bearer("test", Secret::new(owner.clone()));
        let did = engine.identify(&call, Verb::Read).await.unwrap().did().to_owned();
        let ump = Arc::new(Ump::new(engine.clone(), options));
        let registry = Arc::new(Registry::new(vec![Box::new((*ump).clone())]));
        let router = yore_ump::routes(Surface::new(engine.clone(), registry), ump.clone());
        Self { engine, clock, ump, owner, did, router, _directory: directory }
    }

    pub(crate) fn owner_call(&self) -> Call {
        Call::bearer("test", Secret::new(self.owner.clone()))
    }

    /// A token of ours for an agent.
    pub(crate) async fn agent(&self, name: &str, verbs: &[Verb]) -> String {
        let request = GrantRequest {
            agent: AgentId::new(name).unwrap(),
            verbs: Verbs::of(verbs),
            read: Labels::Any,
            write: Labels::Any,
            ceiling: Sensitivity::Restricted,
            scope: ScopeRule::default(),
            ttl: None,
            note: None,
        };
        self.engine.issue_grant(&self.owner_call(), request).await.unwrap().token
    }

    /// A call with a capability token.
    pub(crate) fn claims(&self, token: &str) -> Call {
        let mut call = Call::anonymous("test");
        match yore_ump::credential(token) {
            Some(yore_engine::dialect::Presented::Claims(claims)) => {
                call.credentials.claims.push(*claims);
            }
            other => panic!("{other:?}"),
        }
        call
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> axum::response::Response {
        self.router.clone().oneshot(request).await.unwrap()
    }

    pub(crate) async fn post(&self, token: &str, path: &str, body: &Value) -> Reply {
        self.post_text(token, path, body.to_string()).await
    }

    pub(crate) async fn post_text(&self, token: &str, path: &str, body: String) -> Reply {
        let mut request = Request::post(path).header("content-type", "application/json");
        if !token.is_empty() {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        reply(self.send(request.body(Body::from(body)).unwrap()).await).await
    }

    pub(crate) async fn get(&self, token: &str, path: &str) -> Reply {
        let mut request = Request::get(path);
        if !token.is_empty() {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        reply(self.send(request.body(Body::empty()).unwrap()).await).await
    }

    pub(crate) async fn record(&self, token: &str, id: &str) -> Reply {
        self.get(token, &format!("/ump/memory/{}", id.replace(':', "%3A"))).await
    }

    /// Remembers as the owner and returns the id.
    pub(crate) async fn remember(&self, record: Value) -> String {
        let answer = self.post(&self.owner, "/ump/remember", &json!({"record": record})).await.ok();
        assert_eq!(answer["result"], "created", "{answer}");
        answer["id"].as_str().unwrap().to_owned()
    }

    /// A plain record of the owner's.
    pub(crate) fn said(&self, text: &str) -> Value {
        json!({
            "kind": "semantic",
            "body": {"text": text},
            "scope": {"owner": self.did, "visibility": "private"},
            "provenance": {"actor": self.did, "actor_kind": "user", "method": "stated"},
        })
    }

    /// The texts a recall returns.
    pub(crate) async fn texts(&self, token: &str, recall: Value) -> Vec<String> {
        let answer = self.post(token, "/ump/recall", &recall).await.ok();
        let results = answer["results"].as_array().unwrap();
        results
            .iter()
            .map(|result| result["record"]["body"]["text"].as_str().unwrap_or("").to_owned())
            .collect()
    }
}

pub(crate) async fn reply(response: axum::response::Response) -> Reply {
    let status = response.status().as_u16();
    let headers = response.headers().clone();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    let body = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
    assert!(status != StatusCode::INTERNAL_SERVER_ERROR.as_u16(), "{body}");
    Reply { status, headers, body }
}

pub(crate) fn key(seed: u8) -> SigningKey {
    SigningKey::generate(Algorithm::Ed25519, &[seed; 32])
}

pub(crate) fn did_of(key: &SigningKey) -> String {
    Did::of_key(&key.verifying_key()).as_str().to_owned()
}

/// A capability token, signed by a key.
pub(crate) fn umpcap(key: &SigningKey, change: impl FnOnce(&mut Map<String, Value>)) -> String {
    let claims = json!({
        "v": "ump-cap/1.0",
        "iss": did_of(key),
        "verbs": ["read", "write", "derive", "export"],
        "scope": {},
        "exp": "2030-01-01T00:00:00Z",
        "jti": "token-1",
    });
    let mut claims = claims.as_object().unwrap().clone();
    change(&mut claims);
    captoken::encode(&claims, key).unwrap()
}

pub(crate) fn vectors() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/vectors/ump/vectors.json");
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

pub(crate) fn object(value: &Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}
