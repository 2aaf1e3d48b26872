//! Random vaults and random grants on the shipped binary: what comes out of every door is what
//! the one definition of visibility lets out.

use std::collections::BTreeSet;

use rmcp::RoleClient;
use rmcp::model::{CallToolRequestParams, ReadResourceRequestParams};
use rmcp::service::{ClientLifecycleMode, ClientServiceExt, RunningService};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use serde_json::{Value, json};
use yore_canon::did::Did;
use yore_canon::jws;
use yore_canon::key::{Algorithm, SigningKey};
use yore_domain::class::{Class, Sensitivity, Surface};
use yore_domain::grant::{Grant, Verb, Verbs};
use yore_domain::scope::Scope;
use yore_domain::{MemoryId, Timestamp, VaultId};
use yore_engine::dialect::Presented;
use yore_policy::{Evidence, Need, Standing, authorise, verify, visible};

use crate::common::{Home, Server, ask};

const ENTRIES: usize = 24;
/// What a signed grant ends by: 2100-01-01.
const END: i64 = 4_102_444_800;
/// When the policy is asked: before the end.
const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);
const LABELS: [&str; 7] = [
    "work",
    "work.calendar",
    "work.matter",
    "health",
    "health.condition",
    "Odd Label",
    "behaviour",
];

/// The same numbers on every machine.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % most
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    fn labels(&mut self, most: usize) -> Vec<&'static str> {
        (0..self.below(most + 1)).map(|_| self.one(&LABELS)).collect()
    }
}

/// An entry of random class, labels and handling; `ledger` is in all of them.
fn entry(dice: &mut Dice, number: usize) -> Value {
    let mut entry = json!({
        "oamp_version": "1.2.0", "type": "knowledge_entry", "id": MemoryId::random(),
        "user_id": "owner", "category": "fact", "content": format!("ledger note number {number}"),
        "confidence": 0.9, "source": {"session_id": "s", "timestamp": "2026-01-15T07:00:00Z"},
    });
    let way = dice.below(6);
    if way > 0 {
        let class = dice.one(&Sensitivity::ALL).as_str();
        entry["governance"] = json!({"sensitivity_class": class, "labels": dice.labels(3)});
    }
    if way == 1 {
        let mut word = || dice.one(&["governed", "ungoverned"]);
        entry["governance"]["handling"] =
            json!({"retrieval": word(), "export": word(), "stream": word()});
    }
    entry
}

fn signed(key: &SigningKey, agent: usize, dice: &mut Dice) -> String {
    let read = dice.labels(4);
    let claims = json!({
        "sub": "owner", "oamp_agent_id": format!("agent-{agent}"),
        "oamp_grant_id": format!("grant-{agent}"), "oamp_read_labels": read,
        "oamp_write_labels": [], "oamp_sensitivity_max": dice.one(&Sensitivity::ALL).as_str(),
        "exp": END,
    });
    let did = Did::of_key(&key.verifying_key());
    jws::sign(key, did.as_str(), Some("JWT"), claims.to_string().as_bytes())
}

/// What the policy itself says of an entry under a grant on a surface.
fn seen(token: &str, surface: Surface, entry: &Value) -> bool {
    let grant: Grant = match yore_oamp::credential(token) {
        Some(Presented::Claims(claims)) => claims.grant,
        other => panic!("{other:?}"),
    };
    let governance = entry.get("governance").and_then(Value::as_object);
    let governance =
        governance.map(|words| yore_oamp::wire::governance_of(words).unwrap()).unwrap_or_default();
    let class = Class::of(&governance, &Scope::default());
    let claims = yore_policy::Presented::Claims {
        grant: Box::new(grant),
        signature: true,
        issuer: Standing::Configured,
        audience: None,
        subject: true,
        revoked: false,
    };
    let evidence =
        Evidence { vault: VaultId::CATALOG, presented: vec![claims], public_reads: false };
    let principal = verify(&evidence, NOW).unwrap();
    let need = Need::of("test", Verbs::of(&[Verb::Read]), surface);
    visible(authorise(&principal, need, NOW).unwrap().lens(), &class)
}

/// Everything one agent can reach.
struct Agent<'a> {
    home: &'a Home,
    server: &'a Server,
    token: &'a str,
}

fn set(texts: impl Iterator<Item = String>) -> BTreeSet<String> {
    let texts: Vec<String> = texts.collect();
    let set: BTreeSet<String> = texts.iter().cloned().collect();
    assert_eq!(set.len(), texts.len(), "nothing twice: {texts:?}");
    set
}

/// The texts at a pointer in each value of a list.
fn at<'a>(list: impl IntoIterator<Item = &'a Value>, pointer: &str) -> BTreeSet<String> {
    let text = |one: &Value| match one.pointer(pointer).and_then(Value::as_str) {
        Some(text) => text.to_owned(),
        None => panic!("no {pointer} in {one}"),
    };
    set(list.into_iter().map(text))
}

impl Agent<'_> {
    /// Runs the command with the agent's token; returns the documents it wrote.
    fn told(&self, args: &[&str]) -> Vec<Value> {
        let url = self.server.url();
        let out = self.home.ok(&[args, &["--url", &url, "--token", self.token]].concat());
        serde_json::Deserializer::from_str(&out).into_iter().map(Result::unwrap).collect()
    }

    /// What the commands show.
    fn commands(&self, entries: &[Value], retrieval: &BTreeSet<String>, export: &BTreeSet<String>) {
        let listed = self.told(&["list", "--all", "--json"]);
        assert_eq!(at(&listed, "/head/body/text"), *retrieval, "list");
        let question = ["recall", "--all", "-n", "100", "--json", "ledger note"];
        let recalled = self.told(&question);
        let hits = recalled[0]["results"].as_array().unwrap();
        assert_eq!(at(hits, "/found/memory/version/body/text"), *retrieval, "recall");
        let frame = ["context", "--all", "-n", "100", "--tokens", "20000", "--json", "ledger note"];
        let frame = self.told(&frame)[0]["frame"].as_str().unwrap().to_owned();
        for entry in entries {
            let text = entry["content"].as_str().unwrap();
            // A number may begin with another one.
            let framed = frame.lines().any(|line| line.split('<').any(|part| part.ends_with(text)));
            assert_eq!(framed, retrieval.contains(text), "context {text}: {frame}");
        }
        let exported = self.told(&["export"]);
        assert_eq!(at(&exported, "/versions/0/body/text"), *export, "export");
        let records = self.told(&["export", "--format", "ndjson"]);
        assert_eq!(at(&records, "/body/text"), *export, "export of records");
        // One that is seen and one that is not, by id.
        for wanted in [true, false] {
            let is = |one: &&Value| retrieval.contains(one["content"].as_str().unwrap()) == wanted;
            let Some(entry) = entries.iter().find(is) else { continue };
            let url = self.server.url();
            let id = entry["id"].as_str().unwrap();
            let ended = self.home.run(&["get", id, "--json", "--url", &url, "--token", self.token]);
            assert_eq!(ended.code == 0, wanted, "get {ended:?}");
            let said = ended.out + &ended.err;
            assert_eq!(said.contains(entry["content"].as_str().unwrap()), wanted, "{said}");
        }
    }

    /// What an MCP client is told.
    async fn tools(&self, entries: &[Value], retrieval: &BTreeSet<String>) {
        let session = self.host().await;
        let listed = call(&session, "oamp.list", json!({"limit": 200})).await.unwrap();
        assert_eq!(at(listed["entries"].as_array().unwrap(), "/content"), *retrieval, "oamp.list");
        let query = json!({"query": "ledger note", "limit": 50});
        let recalled = call(&session, "ump.recall", query).await.unwrap();
        let results = recalled["results"].as_array().unwrap();
        assert_eq!(at(results, "/record/body/text"), *retrieval, "ump.recall");
        let found = call(&session, "search", json!({"query": "ledger note"})).await.unwrap();
        let titles = at(found["results"].as_array().unwrap(), "/title");
        assert!(titles.is_subset(retrieval), "search {titles:?}");
        assert_eq!(titles.is_empty(), retrieval.is_empty(), "search finds something");
        for entry in entries {
            let (id, text) = (entry["id"].as_str().unwrap(), entry["content"].as_str().unwrap());
            let wanted = retrieval.contains(text);
            for tool in ["fetch", "oamp.get", "ump.get"] {
                let got = call(&session, tool, json!({"id": id})).await;
                assert_eq!(got.is_some_and(|got| got.to_string().contains(text)), wanted, "{tool}");
            }
            let read = ReadResourceRequestParams::new(format!("yore://memory/{id}"));
            let read = session.read_resource(read).await;
            assert_eq!(read.is_ok_and(|read| format!("{read:?}").contains(text)), wanted);
        }
        session.cancel().await.unwrap();
    }

    async fn host(&self) -> RunningService<RoleClient, ()> {
        let url = format!("{}/mcp", self.server.url().trim_end_matches('/'));
        let config = StreamableHttpClientTransportConfig::with_uri(url).auth_header(self.token);
        let transport = StreamableHttpClientTransport::from_config(config);
        ().serve_with_lifecycle(transport, ClientLifecycleMode::Initialize).await.unwrap()
    }
}

/// Calls a tool; nothing when it refuses.
async fn call(
    session: &RunningService<RoleClient, ()>,
    tool: &str,
    arguments: Value,
) -> Option<Value> {
    let request = CallToolRequestParams::new(tool.to_owned())
        .with_arguments(arguments.as_object().cloned().unwrap());
    let done = session.call_tool(request).await.ok()?;
    if done.is_error == Some(true) {
        return None;
    }
    done.structured_content
}

#[tokio::test(flavor = "multi_thread")]
async fn oamp_340_oamp_341_oamp_346_commands_and_tools_show_what_the_policy_shows() {
    let full = std::env::var_os("YORE_FULL").is_some();
    let (vaults, grants) = if full { (6, 12) } else { (2, 4) };
    let key = SigningKey::generate(Algorithm::Ed25519, &[1; 32]);
    let issuer = Did::of_key(&key.verifying_key());
    let (mut shown, mut kept) = (0, 0);
    for seed in 1..=vaults {
        let mut dice = Dice(seed);
        let home = Home::new();
        let server = home.serve_trusting(issuer.as_str());
        let owner = server.ready["owner_token"].as_str().unwrap().to_owned();
        let entries: Vec<Value> = (0..ENTRIES).map(|number| entry(&mut dice, number)).collect();
        let store = json!({
            "oamp_version": "1.2.0", "type": "knowledge_store", "user_id": "owner",
            "entries": entries,
        });
        let (status, done) = ask(&server.url(), &owner, "POST /v1/import", &store.to_string());
        assert_eq!(status, 201, "{done}");
        for number in 0..grants {
            let token = signed(&key, number, &mut dice);
            let agent = Agent { home: &home, server: &server, token: &token };
            let out = |surface| {
                let mine = entries.iter().filter(|entry| seen(&token, surface, entry));
                at(mine, "/content")
            };
            let (retrieval, export) = (out(Surface::Retrieval), out(Surface::Export));
            shown += retrieval.len();
            kept += entries.len() - retrieval.len();
            agent.tools(&entries, &retrieval).await;
            tokio::task::block_in_place(|| agent.commands(&entries, &retrieval, &export));
        }
    }
    assert!(shown > 0 && kept > 0, "grants show {shown} and keep {kept}");
}
