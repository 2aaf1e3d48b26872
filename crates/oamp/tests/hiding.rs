//! What a grant hides is hidden on every surface, and cannot be asked about on any.
//!
//! The random tests compare each surface with the one definition of visibility. The probes try
//! to learn of what is hidden; `YORE_PROBES` says how many there are.

mod probes;
mod timing;

use std::collections::BTreeSet;

use futures::StreamExt;
use serde_json::{Value, json};
use yore_domain::class::{Class, Label, Sensitivity, Surface};
use yore_domain::grant::{Grant, Verb, Verbs};
use yore_domain::scope::Scope;
use yore_domain::{Timestamp, VaultId};
use yore_engine::dialect::Presented;
use yore_engine::{Call, Settings};
use yore_oamp::Options;
use yore_policy::{Evidence, Need, Standing, authorise, verify, visible};

use crate::support::{NOW, USER, Vault, claims, contents, did_of, governed, id, jwt, key};

const LABELS: [&str; 8] = [
    "work",
    "work.calendar",
    "work.matter.privileged",
    "health",
    "health.condition",
    "finance",
    "Odd Label",
    "behaviour",
];

/// A small generator: the same numbers on every machine.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub(crate) fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap() % most
    }

    pub(crate) fn one<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }

    fn some(&mut self, most: usize) -> Vec<&'static str> {
        (0..self.below(most + 1)).map(|_| *self.one(&LABELS)).collect()
    }
}

/// A vault that believes grants of the first key.
pub(crate) async fn trusting(strict: bool) -> Vault {
    let issuer = did_of(&key(1));
    let change = |settings: &mut Settings| {
        settings.issuers.push(issuer);
        settings.strict_audit = strict;
    };
    Vault::with(change, Options::default()).await
}

/// An entry of random labels, class and handling. The word `ledger` is in all of them.
fn random_entry(dice: &mut Dice, number: usize) -> Value {
    let class = dice.one(&Sensitivity::ALL).as_str();
    let labels = dice.some(3);
    let mut entry = governed(&format!("ledger note number {number}"), class, &labels);
    match dice.below(6) {
        0 => drop(entry.as_object_mut().unwrap().remove("governance")),
        1 => {
            let word = |dice: &mut Dice| *dice.one(&["governed", "ungoverned"]);
            entry["governance"]["handling"] = json!({
                "retrieval": word(dice), "export": word(dice), "stream": word(dice),
            });
        }
        _ => {}
    }
    entry
}

fn class_of(entry: &Value) -> Class {
    let governance = entry.get("governance").and_then(Value::as_object);
    let governance =
        governance.map(|words| yore_oamp::wire::governance_of(words).unwrap()).unwrap_or_default();
    Class::of(&governance, &Scope::default())
}

fn granted(token: &str) -> Grant {
    match yore_oamp::credential(token) {
        Some(Presented::Claims(claims)) => claims.grant,
        other => panic!("{other:?}"),
    }
}

/// What the policy itself says of a class under a grant on a surface.
fn seen(grant: &Grant, surface: Surface, class: &Class, now: Timestamp) -> bool {
    let claims = yore_policy::Presented::Claims {
        grant: Box::new(grant.clone()),
        signature: true,
        issuer: Standing::Configured,
        audience: None,
        subject: true,
        revoked: false,
    };
    let evidence =
        Evidence { vault: VaultId::CATALOG, presented: vec![claims], public_reads: false };
    let principal = verify(&evidence, now).unwrap();
    let need = Need::of("test", Verbs::of(&[Verb::Read]), surface);
    visible(authorise(&principal, need, now).unwrap().lens(), class)
}

fn set(texts: Vec<String>) -> BTreeSet<String> {
    let count = texts.len();
    let set: BTreeSet<String> = texts.into_iter().collect();
    assert_eq!(set.len(), count, "nothing twice");
    set
}

#[tokio::test(flavor = "multi_thread")]
async fn oamp_340_oamp_341_oamp_346_oamp_350_every_surface_shows_what_the_policy_shows() {
    let full = std::env::var_os("YORE_FULL").is_some();
    let (vaults, grants) = if full { (20, 40) } else { (3, 8) };
    for seed in 1..=vaults {
        let mut dice = Dice::new(seed);
        let vault = trusting(false).await;
        let entries: Vec<Value> = (0..40).map(|number| random_entry(&mut dice, number)).collect();
        let done = vault.post(&vault.owner, "/v1/import", &crate::support::store(&entries)).await;
        assert_eq!(done.expect(201)["imported"], entries.len());
        for number in 0..grants {
            let read = dice.some(4);
            let max = dice.one(&Sensitivity::ALL).as_str();
            let token = jwt(&key(1), &claims(&format!("agent-{number}"), &read, max));
            compare(&vault, &entries, &token).await;
        }
    }
}

/// Compares every way out with what the policy says.
async fn compare(vault: &Vault, entries: &[Value], token: &str) {
    let grant = granted(token);
    let expected = |surface| -> BTreeSet<String> {
        entries
            .iter()
            .filter(|entry| seen(&grant, surface, &class_of(entry), NOW))
            .map(|entry| entry["content"].as_str().unwrap().to_owned())
            .collect()
    };
    let retrieval = expected(Surface::Retrieval);
    let context = format!("{:?} {:?}", grant.read, grant.ceiling);
    assert_eq!(set(vault.contents(token, "&limit=200").await), retrieval, "list {context}");
    let found = set(vault.contents(token, "&limit=200&query=ledger%20note").await);
    assert_eq!(found, retrieval, "search {context}");
    let now = format!("&limit=200&as_of={NOW}");
    assert_eq!(set(vault.contents(token, &now).await), retrieval, "as of {context}");
    for entry in entries {
        let id = entry["id"].as_str().unwrap();
        let status = vault.entry(token, id).await.status;
        let text = entry["content"].as_str().unwrap();
        assert_eq!(status == 200, retrieval.contains(text), "get {context} {entry}");
        assert!(status == 200 || status == 404);
    }
    let exported = contents(&vault.export(token).await["entries"]);
    assert_eq!(set(exported), expected(Surface::Export), "export {context}");
    let call = presented(token);
    let oamp = vault.registry.get("oamp").unwrap();
    let mut stream =
        oamp.subscribe(call.clone(), json!({"include_initial_snapshot": true})).await.unwrap();
    let snapshot = stream.next().await.unwrap();
    let told = contents(&snapshot["payload"]["entries"]);
    assert_eq!(set(told), expected(Surface::Stream), "stream {context}");
    // The same grant through other dialects, as MCP carries them.
    let listed = oamp.call(call.clone(), "list", json!({"limit": 200})).await.unwrap();
    assert_eq!(set(contents(&listed["entries"])), retrieval, "dialect {context}");
    let ump = vault.registry.get("ump").unwrap();
    let recall = json!({"query": "ledger note", "limit": 50});
    let recalled = ump.call(call, "recall", recall).await.unwrap();
    let texts = recalled["results"].as_array().unwrap().iter();
    let texts = texts.map(|result| result["record"]["body"]["text"].as_str().unwrap().to_owned());
    assert_eq!(set(texts.collect()), retrieval, "UMP {context}");
}

/// A call that presents a grant.
fn presented(token: &str) -> Call {
    let mut call = Call::anonymous("test");
    match yore_oamp::credential(token) {
        Some(Presented::Claims(claims)) => call.credentials.claims.push(*claims),
        other => panic!("{other:?}"),
    }
    call
}

#[tokio::test]
async fn oamp_341_adding_what_is_hidden_changes_no_byte_of_any_answer() {
    let vault = trusting(false).await;
    for number in 0..5 {
        let text = format!("harbour report {number}");
        vault.holds(&governed(&text, "internal", &["work"])).await;
    }
    let token = jwt(&key(1), &claims("scheduler", &["work"], "internal"));
    let paths = [
        format!("/v1/knowledge?user_id={USER}"),
        format!("/v1/knowledge?user_id={USER}&limit=2&offset=2"),
        format!("/v1/knowledge?user_id={USER}&query=harbour"),
        format!("/v1/knowledge?user_id={USER}&query=diagnosis"),
        format!("/v1/knowledge?user_id={USER}&governance_label=health"),
        format!("/v1/knowledge?user_id={USER}&sensitivity_class=restricted&query=harbour"),
    ];
    let answers = async || {
        let mut answers = Vec::new();
        for path in &paths {
            answers.push(vault.get(&token, path).await.text);
        }
        answers.push(vault.export(&token).await["entries"].to_string());
        answers
    };
    let before = answers().await;
    for number in 0..20 {
        let text = format!("harbour diagnosis {number} report");
        vault.holds(&governed(&text, "restricted", &["health"])).await;
    }
    assert_eq!(answers().await, before);
}

#[tokio::test]
async fn oamp_342_hidden_and_missing_ids_get_the_same_answer_whatever_is_asked() {
    let vault = trusting(true).await;
    let hidden = governed("the diagnosis", "restricted", &["health"]);
    let hidden_id = vault.holds(&hidden).await;
    let mut annas = governed("Anna's", "public", &["work"]);
    annas["user_id"] = "anna".into();
    let annas = vault.post(&vault.service, "/v1/knowledge", &annas).await.expect(201);
    let annas = annas["id"].as_str().unwrap().to_owned();
    let token = jwt(&key(1), &claims("scheduler", &["work"], "internal"));
    let ask = async |id: &str| {
        let mut said = Vec::new();
        let mut note = |reply: crate::support::Reply| {
            let mut headers: Vec<String> =
                reply.headers.iter().map(|(name, value)| format!("{name}: {value:?}")).collect();
            headers.sort();
            said.push(format!("{} {headers:?} {}", reply.status, reply.text.replace(id, "ID")));
        };
        note(vault.entry(&token, id).await);
        note(vault.get(&token, &format!("/v1/knowledge/{id}?user_id={USER}")).await);
        note(vault.get(&token, &format!("/v1/knowledge/{id}?as_of={NOW}")).await);
        note(vault.patch(&token, id, &json!({"confidence": 0.5})).await);
        note(vault.delete(&token, id).await);
        let path = format!("/ump/memory/{id}");
        note(vault.get(&token, &path).await);
        let mut mine = governed("under that id", "internal", &["work"]);
        mine["id"] = id.into();
        note(vault.post(&token, "/v1/knowledge", &mine).await);
        note(vault.post(&token, "/v1/knowledge", &mine).await);
        note(vault.entry(&token, id).await);
        note(vault.delete(&token, id).await);
        note(vault.post(&token, "/v1/import", &crate::support::store(&[mine])).await);
        note(vault.delete(&token, id).await);
        said
    };
    let missing = ask(&id()).await;
    assert_eq!(ask(&hidden_id).await, missing);
    assert_eq!(ask(&annas).await, missing);
    assert_eq!(vault.entry(&vault.owner, &hidden_id).await.expect(200), hidden);
}

#[tokio::test]
async fn oamp_330_oamp_331_labels_cover_what_lies_below_them() {
    let vault = trusting(false).await;
    for label in ["health", "health.condition", "healthy", "finance.income", "finance.holdings"] {
        vault.holds(&governed(label, "internal", &[label])).await;
    }
    let sees = async |labels: &[&str]| {
        let token = jwt(&key(1), &claims("a", labels, "internal"));
        set(vault.contents(&token, "").await).into_iter().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(sees(&["health"]).await, "health health.condition");
    assert_eq!(sees(&["health.condition"]).await, "health.condition");
    assert_eq!(sees(&["finance.income", "healthy"]).await, "finance.income healthy");
    assert_eq!(sees(&["finance"]).await, "finance.holdings finance.income");
    assert!(Label::new("work").unwrap().covers(&Label::new("work.x_y").unwrap()));
}

#[tokio::test]
async fn oamp_321_oamp_322_what_declares_nothing_is_internal_behaviour() {
    let vault = trusting(false).await;
    vault.holds(&crate::support::fact("undeclared")).await;
    vault.holds(&governed("class only", "public", &[])).await;
    for (labels, max, count) in [
        (&["behaviour"][..], "internal", 2),
        (&["behaviour"], "public", 1),
        (&["work"], "restricted", 0),
    ] {
        let token = jwt(&key(1), &claims("a", labels, max));
        assert_eq!(vault.contents(&token, "").await.len(), count, "{labels:?} {max}");
    }
}
