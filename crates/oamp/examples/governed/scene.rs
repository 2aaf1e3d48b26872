//! One scene: a vault, its agents under grants, what they write and what they are shown.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::Request;
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
use yore_domain::{AgentId, GrantId, MemoryId, Span, TenantId, Timestamp};
use yore_engine::dialect::Registry;
use yore_engine::{
    Call, Engine, Extension, FixedClock, GrantRequest, Parts, Secret, Settings, TokenKind,
    VaultRef, token,
};
use yore_http::Surface;
use yore_oamp::{Oamp, Options};
use yore_store_sqlite::{Cost, MasterKey, SqliteStore};
use zeroize::Zeroizing;

/// The scenes there are.
pub(crate) const NAMES: [&str; 5] =
    ["wealth-desk", "hospital", "tax-authority", "law-firm", "person"];

type Failed = Box<dyn std::error::Error>;

/// 2027-01-15T08:00:00Z: scenes happen at one moment, whenever they are run.
const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);
const LOCAL_KEY: [u8; 32] = [7; 32];
const HOUR: Span = Span::seconds(3600);

/// A server with nothing in it but a service that may act for everybody.
struct Server {
    engine: Engine,
    oamp: Arc<Oamp>,
    router: Router,
    service: String,
    _directory: TempDir,
}

impl Server {
    async fn start(issuers: Vec<String>) -> Result<Self, Failed> {
        let directory = TempDir::new()?;
        let key = MasterKey::passphrase("a scene");
        let mut place = yore_store_sqlite::Options::new(directory.path(), key);
        place.cost = Cost::Least;
        let store = SqliteStore::open(place)?;
        let engine = Engine::new(Parts {
            store: Arc::new(store.clone()),
            keeper: Arc::new(store),
            clock: Arc::new(FixedClock::at(NOW)),
            local_key: Zeroizing::new(LOCAL_KEY),
            settings: Settings { issuers, ..Settings::default() },
        });
        let master = Call::bearer("scene", token::proof(&LOCAL_KEY, NOW));
        let service = TokenKind::Service(TenantId::DEFAULT);
        let service = engine.issue_token(&master, service, None, None).await?;
        let oamp = Arc::new(Oamp::new(engine.clone(), Options::default()));
        let registry = Arc::new(Registry::new(vec![Box::new((*oamp).clone())]));
        let router = yore_oamp::routes(Surface::new(engine.clone(), registry), oamp.clone());
        Ok(Self { engine, oamp, router, service, _directory: directory })
    }

    /// The person, as the service speaks for them.
    fn person(&self, user: &str) -> Call {
        let call = Call::bearer("scene", Secret::new(self.service.clone()));
        Call { vault: VaultRef::Owner(user.to_owned()), ..call }
    }

    async fn ask(&self, token: &str, request: Value, path: &str) -> Result<(u16, Value), Failed> {
        let builder = Request::builder()
            .uri(path)
            .header("authorization", format!("Bearer {token}"))
            .header("content-type", "application/json");
        let request = if request.is_null() {
            builder.body(Body::empty())?
        } else {
            builder.method("POST").body(Body::from(request.to_string()))?
        };
        let response = self.router.clone().oneshot(request).await?;
        let status = response.status().as_u16();
        let bytes = response.into_body().collect().await?.to_bytes();
        Ok((status, serde_json::from_slice(&bytes).unwrap_or_default()))
    }

    /// What an agent is shown: listed, exported, and found by a question.
    async fn shown(&self, token: &str, user: &str) -> Result<BTreeSet<String>, Failed> {
        let path = format!("/v1/knowledge?user_id={user}&limit=200");
        let (status, listed) = self.ask(token, Value::Null, &path).await?;
        let listed = texts(status, &listed)?;
        let (status, store) = self.ask(token, json!({"user_id": user}), "/v1/export").await?;
        if texts(status, &store["entries"])? != listed {
            return Err("the export differs from the list".into());
        }
        Ok(listed)
    }

    async fn grant(&self, user: &str, agent: &Value) -> Result<(GrantId, String), Failed> {
        let labels = |name: &str| -> Result<Labels, Failed> {
            let words = agent[name].as_array().into_iter().flatten().filter_map(Value::as_str);
            Ok(Labels::Under(words.map(Label::new).collect::<Result<_, _>>()?))
        };
        let verbs = [Verb::Read, Verb::Write, Verb::Derive, Verb::Export, Verb::Erase];
        let request = GrantRequest {
            agent: AgentId::new(said(&agent["name"]))?,
            verbs: Verbs::of(&verbs),
            read: labels("read")?,
            write: labels("write")?,
            ceiling: Sensitivity::parse(said(&agent["max"]))?,
            scope: ScopeRule::default(),
            ttl: Some(HOUR),
            note: None,
        };
        let issued = self.engine.issue_grant(&self.person(user), request).await?;
        let signed = self.oamp.signed_grant(&self.person(user), issued.grant.id).await?;
        Ok((issued.grant.id, signed))
    }
}

/// Plays a scene and tells it; fails where anybody is shown more or less than the scene says.
pub(crate) async fn play(name: &str) -> Result<String, Failed> {
    let place = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/governed");
    let scene: Value = serde_json::from_slice(&std::fs::read(format!("{place}/{name}.json"))?)?;
    let server = Server::start(Vec::new()).await?;
    let user = said(&scene["user"]);
    let mut told = format!("{}\n", said(&scene["title"]));
    // The person comes first: a grant is given over something.
    let (own, by_agents): (Vec<&Value>, Vec<&Value>) =
        list(&scene["memories"]).partition(|memory| memory.get("by").is_none());
    let mut first = entry(user, "The vault was opened", None);
    first["governance"] = json!({"sensitivity_class": "restricted", "labels": ["x.scene"]});
    stored(server.ask(&server.service, first, "/v1/knowledge").await?)?;
    for memory in own {
        let entry = entry(user, said(&memory["text"]), Some(memory));
        stored(server.ask(&server.service, entry, "/v1/knowledge").await?)?;
    }
    let mut agents = Vec::new();
    for agent in list(&scene["agents"]) {
        let (grant, token) = server.grant(user, agent).await?;
        agents.push((said(&agent["name"]), grant, token));
    }
    let token_of = |name: &str| {
        let found = agents.iter().find(|(agent, ..)| *agent == name);
        found.map(|(_, grant, token)| (*grant, token.clone())).ok_or("no such agent")
    };
    for memory in by_agents {
        let (_, token) = token_of(said(&memory["by"]))?;
        let entry = entry(user, said(&memory["text"]), Some(memory));
        stored(server.ask(&token, entry, "/v1/knowledge").await?)?;
    }
    for (name, _, token) in &agents {
        let shown = server.shown(token, user).await?;
        expect(name, &shown, &scene["sees"][name])?;
        let question = said(&scene["asks"]).replace(' ', "%20");
        let path = format!("/v1/knowledge?user_id={user}&query={question}");
        let (status, found) = server.ask(token, Value::Null, &path).await?;
        let found = texts(status, &found)?;
        if !found.is_subset(&shown) {
            return Err(format!("{name} found what it is not shown").into());
        }
        writeln!(told, "  {name} is shown {}:", shown.len())?;
        for text in &shown {
            writeln!(told, "    {}{text}", if found.contains(text) { "* " } else { "  " })?;
        }
    }
    if let Some(extend) = scene.get("extend") {
        let name = said(&extend["agent"]);
        let (grant, _) = token_of(name)?;
        let read = list(&extend["read"]).filter_map(Value::as_str).map(Label::new);
        let extension = Extension {
            ttl: Span::seconds(60 * extend["minutes"].as_u64().unwrap_or(30)),
            read: read.collect::<Result<_, _>>()?,
            write: Vec::new(),
            ceiling: Some(Sensitivity::parse(said(&extend["max"]))?),
            note: None,
        };
        let person = server.person(user);
        let wider = server.engine.widen_grant(&person, grant, extension).await?;
        let token = server.oamp.signed_grant(&person, wider.grant.id).await?;
        let shown = server.shown(&token, user).await?;
        expect(name, &shown, &extend["sees"])?;
        writeln!(
            told,
            "  {name}, extended for {} min, is shown {}",
            extend["minutes"],
            shown.len()
        )?;
    }
    if let Some(name) = scene["revoke"].as_str() {
        let (grant, token) = token_of(name)?;
        server.engine.revoke_grant(&server.person(user), grant).await?;
        let path = format!("/v1/knowledge?user_id={user}");
        let (status, _) = server.ask(&token, Value::Null, &path).await?;
        if status != 401 {
            return Err(format!("{name} was revoked and still gets {status}").into());
        }
        writeln!(told, "  {name} was revoked and is shown nothing any more")?;
    }
    told.push('\n');
    Ok(told)
}

/// Two servers, each of which lets the other's agents in under grants the other one signed.
pub(crate) async fn bilateral() -> Result<String, Failed> {
    let keys = [1, 2].map(|seed| SigningKey::generate(Algorithm::Ed25519, &[seed; 32]));
    let did = |key: &SigningKey| Did::of_key(&key.verifying_key()).as_str().to_owned();
    let mut told = "Two servers under bilateral grants\n".to_owned();
    for (home, foreign, stranger) in [(0, 1, 0), (1, 0, 1)] {
        let server = Server::start(vec![did(&keys[foreign])]).await?;
        let user = format!("resident-{home}");
        for (text, class, label) in [
            ("The permit was granted in spring", "internal", "work.case_status"),
            ("The appeal names a witness", "restricted", "work.case_file"),
        ] {
            let mut entry = entry(&user, text, None);
            entry["governance"] = json!({"sensitivity_class": class, "labels": [label]});
            stored(server.ask(&server.service, entry, "/v1/knowledge").await?)?;
        }
        let claims = json!({
            "sub": user,
            "oamp_agent_id": "liaison",
            "oamp_grant_id": format!("treaty-{home}"),
            "oamp_read_labels": ["work.case_status"],
            "oamp_write_labels": [],
            "oamp_sensitivity_max": "internal",
            "exp": NOW.plus(HOUR).millis() / 1000,
        });
        let signed = |key: &SigningKey| {
            jws::sign(key, &did(key), Some("JWT"), claims.to_string().as_bytes())
        };
        let shown = server.shown(&signed(&keys[foreign]), &user).await?;
        expect("liaison", &shown, &json!(["The permit was granted in spring"]))?;
        let path = format!("/v1/knowledge?user_id={user}");
        let (status, _) = server.ask(&signed(&keys[stranger]), Value::Null, &path).await?;
        if status != 401 {
            return Err("a grant that no treaty covers was believed".into());
        }
        writeln!(told, "  server {home} shows the other's liaison {} of 2", shown.len())?;
    }
    Ok(told)
}

fn entry(user: &str, text: &str, memory: Option<&Value>) -> Value {
    let mut entry = json!({
        "oamp_version": "1.2.0",
        "type": "knowledge_entry",
        "id": MemoryId::random().to_string(),
        "user_id": user,
        "category": "fact",
        "content": text,
        "confidence": 0.9,
        "source": {"session_id": "scene", "timestamp": "2027-01-15T07:00:00Z"},
    });
    if let Some(memory) = memory {
        if let Some(agent) = memory.get("by") {
            entry["source"]["agent_id"] = agent.clone();
        }
        if let Some(class) = memory.get("class") {
            entry["governance"] = json!({"sensitivity_class": class, "labels": memory["labels"]});
        }
    }
    entry
}

fn stored((status, body): (u16, Value)) -> Result<(), Failed> {
    if status == 201 { Ok(()) } else { Err(format!("not stored: {status} {body}").into()) }
}

fn texts(status: u16, entries: &Value) -> Result<BTreeSet<String>, Failed> {
    if status != 200 {
        return Err(format!("refused: {status} {entries}").into());
    }
    Ok(list(entries).map(|entry| said(&entry["content"]).to_owned()).collect())
}

fn expect(name: &str, shown: &BTreeSet<String>, wanted: &Value) -> Result<(), Failed> {
    let wanted: BTreeSet<String> = list(wanted).map(|text| said(text).to_owned()).collect();
    if *shown == wanted { Ok(()) } else { Err(format!("{name} is shown {shown:?}").into()) }
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn said(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
