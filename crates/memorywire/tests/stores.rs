//! A store beside the vault: a real sqlite-vec file, kept up to date and asked with it.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::watch;
use yore_domain::grant::Verb;
use yore_memorywire::{Memorywire, Options, Stores};
use yore_router::adapters::Embedder;
use yore_router::config::StoreConfig;
use yore_router::{InMemory, Record, Router, Slot, Type, Whose};

use crate::support::{AGENT, NOW, USER, Vault};

/// Words as numbers: texts with the same words are near.
#[derive(Debug)]
struct Words;

impl Embedder for Words {
    fn embed(&self, text: &str) -> Vec<f32> {
        let mut vector = vec![0.0_f32; yore_router::adapters::DIMENSIONS];
        for word in text.to_lowercase().split_whitespace() {
            let sum = word.bytes().fold(7_usize, |sum, byte| sum * 31 + usize::from(byte));
            vector[sum % yore_router::adapters::DIMENSIONS] += 1.0;
        }
        let length = vector.iter().map(|number| number * number).sum::<f32>().sqrt().max(1.0);
        vector.iter().map(|number| number / length).collect()
    }
}

pub(crate) struct Beside {
    pub(crate) vault: Vault,
    pub(crate) slot: Arc<Slot>,
    halt: watch::Sender<bool>,
    _directory: Option<tempfile::TempDir>,
}

impl Drop for Beside {
    fn drop(&mut self) {
        self.halt.send_replace(true);
    }
}

/// A vault with a file beside it, which is kept up to date.
async fn beside() -> Beside {
    let directory = tempfile::tempdir().unwrap();
    let url = format!("sqlite-vec://{}", directory.path().join("notes.db").display());
    let mut config = StoreConfig::new("notes", url);
    config.deadline_ms = 5000;
    with(config, Some(directory)).await
}

/// A vault with another store beside it, which is kept up to date, and the directory it is in.
pub(crate) async fn with(config: StoreConfig, directory: Option<tempfile::TempDir>) -> Beside {
    let slot = Arc::new(config.slot(Arc::new(InMemory::default()), Arc::new(Words)).unwrap());
    let router = Router::new(vec![slot.clone()], yore_router::Options::default()).unwrap();
    let mut vault = Vault::new().await;
    let owner = vault.owner_call();
    let stores = Stores::new(router, Arc::new(move || owner.clone()));
    let (halt, halted) = watch::channel(false);
    for delivery in stores.deliveries(&vault.engine) {
        let halted = halted.clone();
        tokio::spawn(async move { delivery.run(halted).await });
    }
    vault.speak(Memorywire::new(vault.engine.clone(), Options::default()).with_stores(stores));
    Beside { vault, slot, halt, _directory: directory }
}

/// Something that only the file has.
async fn foreign(slot: &Slot, id: &str, agent: &str, content: &str) {
    let whose = Whose { agent: agent.to_owned(), user: Some(USER.to_owned()) };
    let record = Record::new(id, &whose, Type::Semantic, content, NOW.millis());
    slot.store().remember(&record).await.unwrap();
}

fn texts(recalled: &Value) -> Vec<&str> {
    let hits = recalled["results"].as_array().unwrap();
    hits.iter().map(|hit| hit["content"].as_str().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn mw_088_a_fact_in_two_stores_is_one_hit_and_is_forgotten_in_both() {
    let Beside { vault, slot, .. } = &beside().await;
    let body = json!({"type": "semantic", "content": "tea is served at four", "user_id": USER});
    let stored = vault.ok("remember", body).await;
    assert_eq!(stored["stores"], json!(["yore", "notes"]));
    let id = stored["id"].as_str().unwrap();
    assert!(slot.has(id).await.unwrap());
    let recalled = vault.ok("recall", json!({"query": "when is tea served"})).await;
    assert_eq!(recalled["stores_queried"], json!(["yore", "notes"]));
    assert_eq!(texts(&recalled), ["tea is served at four"]);
    assert_eq!(recalled["results"][0]["id"], id);

    let gone = vault.ok("forget", json!({"ids": [id]})).await;
    assert_eq!(gone["forgotten_ids"], json!([id]));
    assert_eq!(gone["stores"][1], json!({"store": "notes", "count": 1, "error": null}));
    assert!(!slot.has(id).await.unwrap());
    let recalled = vault.ok("recall", json!({"query": "when is tea served"})).await;
    assert_eq!(recalled["results"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn mw_083_what_only_another_store_has_is_found_and_can_be_forgotten() {
    let Beside { vault, slot, .. } = &beside().await;
    vault.fact("green tea is in the cupboard").await;
    let id = "00112233445566778899aabbccddeeff";
    foreign(slot, id, AGENT, "black tea is in the drawer").await;
    foreign(slot, "ff112233445566778899aabbccddeeff", "agent-b", "tea of another agent").await;
    let recalled = vault.ok("recall", json!({"query": "where is the tea"})).await;
    let mut found = texts(&recalled);
    found.sort_unstable();
    assert_eq!(found, ["black tea is in the drawer", "green tea is in the cupboard"]);
    let hits = recalled["results"].as_array().unwrap();
    let stranger = hits.iter().find(|hit| hit["id"] == id).unwrap();
    assert_eq!(stranger["source_store"], "notes");
    let gone = vault.ok("forget", json!({"ids": [id]})).await;
    assert_eq!(gone["forgotten_ids"], json!([id]));
    let recalled = vault.ok("recall", json!({"query": "where is the tea"})).await;
    assert_eq!(texts(&recalled), ["green tea is in the cupboard"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn mw_083_no_store_shows_what_the_vault_hides() {
    let Beside { vault, slot, .. } = &beside().await;
    // The owner makes a memory confidential; the file has an earlier copy, and a copy under the
    // memory's own id that nobody keeps track of.
    let id = vault.fact("the tea safe opens with 4711").await;
    let memory = id.parse().unwrap();
    let mut governance = vault.memory(&id).await.unwrap().head.content.governance;
    governance.sensitivity = Some(yore_domain::class::Sensitivity::Confidential);
    let change = yore_domain::mutation::Relabel {
        governance: Some(governance),
        ..yore_domain::mutation::Relabel::default()
    };
    let relabel = yore_domain::mutation::Mutation::Relabel { memory, change: Box::new(change) };
    vault.engine.mutate(&vault.owner_call(), relabel, yore_engine::Wish::default()).await.unwrap();
    let agent = vault.agent_with(AGENT, &[Verb::Read, Verb::Write]).await;
    foreign(slot, &id, AGENT, "the tea safe opens with 4711").await;
    let body = json!({"agent_id": AGENT, "query": "how does the tea safe open", "k": 10});
    let reply = vault.ask(&agent, "recall", &body).await.expect(200);
    assert_eq!(reply["results"], json!([]));
    // Nor is the copy forgotten by whoever cannot see the memory.
    let forget = json!({"agent_id": AGENT, "ids": [id]});
    let reply = vault.ask(&agent, "forget", &forget).await.expect(200);
    assert_eq!(reply["forgotten_ids"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn mw_123_what_waits_is_in_no_store_until_it_is_approved() {
    let Beside { vault, slot, .. } = &beside().await;
    let body = json!({"type": "semantic", "content": "tea for two", "approval_required": true});
    let waits = vault.ok("remember", body).await;
    assert_eq!((&waits["pending_approval"], &waits["stores"]), (&json!(true), &json!([])));
    vault.ok("stores/repair", json!({})).await;
    assert!(copies(slot).await.is_empty(), "a repair does not deliver it either");
    let hold = vault.pending().await.remove(0);
    vault.approve(&hold).await;
    let found = vault.ok("recall", json!({"query": "tea for two"})).await;
    let id = found["results"][0]["id"].as_str().unwrap().to_owned();
    let delivered = async {
        while !slot.has(&id).await.unwrap() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), delivered).await.unwrap();
}

/// The texts of the usual agent that the file has, whoever they are about.
async fn copies(slot: &Slot) -> Vec<String> {
    let whose = Whose { agent: AGENT.to_owned(), user: None };
    let listed = slot.store().list(&whose, None).await.unwrap();
    listed.items.into_iter().map(|found| found.record.content).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn mw_123_a_rejected_write_and_a_held_deletion_reach_no_store() {
    let Beside { vault, slot, .. } = &beside().await;
    let body = json!({"type": "semantic", "content": "tea for three", "approval_required": true});
    vault.ok("remember", body).await;
    let hold = vault.pending().await.remove(0);
    let decide = yore_engine::Decision::Reject;
    vault.engine.review(&vault.owner_call(), hold.id, decide, None).await.unwrap();
    let id = vault.fact("tea for four").await;
    vault.ok("stores/repair", json!({})).await;
    assert_eq!(copies(slot).await, ["tea for four"]);

    let forget = json!({"ids": [id], "approval_required": true});
    assert_eq!(vault.ok("forget", forget).await["pending_approval"], true);
    vault.ok("stores/repair", json!({})).await;
    assert_eq!(copies(slot).await, ["tea for four"], "nobody has approved");
    let hold = vault.pending().await.remove(0);
    vault.approve(&hold).await;
    vault.ok("stores/repair", json!({})).await;
    assert!(copies(slot).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn mw_200_mw_205_what_only_some_may_see_stays_in_the_vault() {
    let Beside { vault, slot, .. } = &beside().await;
    let body = json!({
        "type": "semantic", "content": "tea is a surprise", "user_id": USER,
        "privacy_intent": {"share_with": ["planner"]},
    });
    let stored = vault.ok("remember", body).await;
    assert_eq!(stored["stores"], json!(["yore"]));
    let id = vault.fact("the tea safe opens with 4711").await;
    vault.ok("stores/repair", json!({})).await;
    assert_eq!(copies(slot).await, ["the tea safe opens with 4711"]);
    let labels = vec![yore_domain::class::Label::new("secret.safe").unwrap()];
    let governance = yore_domain::class::Governance { labels, ..Default::default() };
    let change =
        yore_domain::mutation::Relabel { governance: Some(governance), ..Default::default() };
    let memory = id.parse().unwrap();
    let relabel = yore_domain::mutation::Mutation::Relabel { memory, change: Box::new(change) };
    let owner = vault.owner_call();
    vault.engine.mutate(&owner, relabel, yore_engine::Wish::default()).await.unwrap();
    vault.ok("stores/repair", json!({})).await;
    assert!(copies(slot).await.is_empty(), "a secret is taken back");
}

#[tokio::test(flavor = "multi_thread")]
async fn mw_204_no_store_shows_what_a_rule_withholds() {
    let Beside { vault, slot, .. } = &beside().await;
    vault.fact("the tea diagnosis was mumps").await;
    vault.ok("stores/repair", json!({})).await;
    assert_eq!(copies(slot).await.len(), 1);
    let rule = yore_domain::hold::Rule {
        operations: vec!["recall".into()],
        words: vec!["diagnosis".into()],
        ..yore_domain::hold::Rule::new("reads", yore_domain::hold::RuleAction::Hold)
    };
    vault.engine.put_rule(&vault.owner_call(), rule).await.unwrap();
    let agent = vault.agent(AGENT).await;
    let body = json!({"agent_id": AGENT, "query": "tea diagnosis", "k": 10});
    let found = vault.ask(&agent, "recall", &body).await.expect(200);
    assert_eq!((texts(&found), &found["pending_approval"]), (Vec::new(), &json!(true)));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_owner_sees_how_stores_are_and_mends_them() {
    let Beside { vault, slot, .. } = &beside().await;
    let body = json!({"type": "semantic", "content": "tea is hot", "user_id": USER});
    let stored = vault.ok("remember", body).await;
    let health = vault.get("/memorywire/v0/health").await.expect(200);
    assert_eq!((&health["status"], &health["stores"][1]["store"]), (&json!("ok"), &json!("notes")));
    let listed = vault.ok("stores/list", json!({})).await;
    assert_eq!(
        (&listed["stores"][0]["store"], &listed["stores"][0]["status"]),
        (&json!("notes"), &json!("ok"))
    );
    slot.withdraw(stored["id"].as_str().unwrap(), yore_router::Depth::Erase).await.unwrap();
    let repaired = vault.ok("stores/repair", json!({})).await;
    assert_eq!(repaired["stores"][0]["created"], 1, "{repaired}");
    assert!(slot.has(stored["id"].as_str().unwrap()).await.unwrap());
    let agent = vault.agent(AGENT).await;
    let reply = vault.ask(&agent, "stores/list", &json!({})).await;
    assert_eq!(reply.status, 403);
    let other = vault.ok("stores/repair", json!({"store": "notes"})).await;
    assert_eq!(other["stores"][0]["created"], 0);
    let missing = vault.refused("stores/repair", json!({"store": "no such"})).await;
    assert_eq!(missing.0, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn mw_030_an_agent_takes_nothing_away_that_only_another_store_has() {
    let Beside { vault, slot, .. } = &beside().await;
    foreign(slot, "note-1", AGENT, "black tea is in the drawer").await;
    for verbs in [&[Verb::Read][..], &[Verb::Read, Verb::Write, Verb::Erase]] {
        let agent = vault.agent_with(AGENT, verbs).await;
        let body = json!({"agent_id": AGENT, "ids": ["note-1"], "hard_delete": true});
        let reply = vault.ask(&agent, "forget", &body).await;
        assert!(reply.status == 403 || reply.body["forgotten_ids"] == json!([]), "{reply:?}");
    }
    let found = vault.ok("recall", json!({"query": "black tea drawer"})).await;
    assert_eq!(texts(&found), ["black tea is in the drawer"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn mw_084_what_is_hidden_weighs_nothing() {
    let mut scores = Vec::new();
    for hidden in [false, true] {
        let Beside { vault, slot, .. } = &beside().await;
        if hidden {
            let id = vault.fact("the diagnosis was measles and mumps").await;
            let memory = id.parse().unwrap();
            let mut governance = vault.memory(&id).await.unwrap().head.content.governance;
            governance.sensitivity = Some(yore_domain::class::Sensitivity::Internal);
            governance.labels = vec![yore_domain::class::Label::new("health").unwrap()];
            let change = yore_domain::mutation::Relabel {
                governance: Some(governance),
                ..yore_domain::mutation::Relabel::default()
            };
            let change = Box::new(change);
            let relabel = yore_domain::mutation::Mutation::Relabel { memory, change };
            let owner = vault.owner_call();
            vault.engine.mutate(&owner, relabel, yore_engine::Wish::default()).await.unwrap();
            vault.ok("stores/repair", json!({})).await;
            assert!(slot.has(&id).await.unwrap(), "the file has a copy");
        }
        foreign(slot, "11112233445566778899aabbccddeeff", AGENT, "no diagnosis of mumps yet").await;
        let agent = vault.narrow(AGENT, "behaviour").await;
        let body = json!({"agent_id": AGENT, "query": "diagnosis measles mumps", "k": 10});
        let found = vault.ask(&agent, "recall", &body).await.expect(200);
        assert_eq!(texts(&found), ["no diagnosis of mumps yet"]);
        scores.push(found["results"][0]["score"].clone());
    }
    assert_eq!(scores[0], scores[1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn mw_088_a_memory_that_moves_leaves_no_copy_behind() {
    let Beside { vault, slot, .. } = &beside().await;
    let id = vault.fact("the tea is in the safe").await;
    vault.ok("stores/repair", json!({})).await;
    let memory = id.parse().unwrap();
    let mut scope = vault.memory(&id).await.unwrap().head.content.scope;
    scope.agent = Some("agent-b".to_owned());
    let change = yore_domain::mutation::Relabel {
        scope: Some(scope),
        ..yore_domain::mutation::Relabel::default()
    };
    let relabel = yore_domain::mutation::Mutation::Relabel { memory, change: Box::new(change) };
    let owner = vault.owner_call();
    vault.engine.mutate(&owner, relabel, yore_engine::Wish::default()).await.unwrap();
    vault.ok("stores/repair", json!({})).await;
    let whose = |agent: &str| Whose { agent: agent.to_owned(), user: Some(USER.to_owned()) };
    assert!(slot.store().list(&whose(AGENT), None).await.unwrap().items.is_empty());
    assert_eq!(slot.store().list(&whose("agent-b"), None).await.unwrap().items.len(), 1);
    let found = vault.ok("recall", json!({"query": "where is the tea"})).await;
    assert_eq!(texts(&found), Vec::<&str>::new());
}

/// Something that only the file has, with metadata and as sure as it is.
async fn noted(slot: &Slot, id: &str, content: &str, metadata: Value, confidence: f64) {
    let whose = Whose { agent: AGENT.to_owned(), user: Some(USER.to_owned()) };
    let mut record = Record::new(id, &whose, Type::Semantic, content, NOW.millis());
    record.metadata = metadata.as_object().cloned().unwrap();
    record.confidence = confidence;
    slot.store().remember(&record).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn mw_086_a_filter_finds_what_only_another_store_has() {
    let Beside { vault, slot, .. } = &beside().await;
    let body = json!({"type": "semantic", "content": "green tea in the cupboard", "metadata": {"room": "kitchen"}});
    vault.ok("remember", body).await;
    noted(slot, "n1", "black tea in the drawer", json!({"room": "kitchen"}), 1.0).await;
    noted(slot, "n2", "white tea in the desk", json!({"room": "office"}), 1.0).await;
    let filter = json!({"filter": {"room": "kitchen"}});
    let agent = vault.agent_with(AGENT, &[Verb::Read, Verb::Write]).await;
    let mut asked = filter.clone();
    asked["agent_id"] = AGENT.into();
    asked["user_id"] = USER.into();
    let reply = vault.ask(&agent, "forget", &asked).await.expect(200);
    assert_eq!(reply["forgotten_ids"], json!([]), "an agent reaches nothing over there");
    let mut waiting = filter.clone();
    waiting["approval_required"] = true.into();
    waiting["user_id"] = USER.into();
    assert_eq!(vault.refused("forget", waiting).await.0, 400, "over there nothing waits");
    assert_eq!(copies(slot).await.len(), 3);
    let gone = vault.ok("forget", filter).await;
    assert_eq!(gone["forgotten_ids"].as_array().unwrap().len(), 2, "{gone}");
    assert_eq!(gone["stores"][1], json!({"store": "notes", "count": 2, "error": null}));
    assert_eq!(copies(slot).await, ["white tea in the desk"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn mw_053_an_expiry_reaches_what_only_another_store_has() {
    let Beside { vault, slot, .. } = &beside().await;
    noted(slot, "n1", "perhaps tea is in the drawer", json!({}), 0.2).await;
    noted(slot, "n2", "tea is in the cupboard", json!({}), 0.9).await;
    let policy = json!({"policy": {"confidence_below": 0.5}, "action": "demote"});
    let demoted = vault.ok("expire", policy).await;
    assert_eq!(
        (&demoted["matched_count"], &demoted["stores"]),
        (&json!(1), &json!(["yore", "notes"]))
    );
    let found = vault.ok("recall", json!({"query": "perhaps tea is in the drawer"})).await;
    assert_eq!(texts(&found).len(), 2, "what is demoted is still there: {found}");
    let policy = json!({"policy": {"confidence_below": 0.5}});
    assert_eq!(vault.ok("expire", policy.clone()).await["matched_count"], 1);
    assert_eq!(copies(slot).await, ["tea is in the cupboard"]);
    assert_eq!(vault.audit("stores.expire").await.len(), 2);
    assert_eq!(
        vault.ok("expire", policy).await["stores"],
        json!(["yore"]),
        "nothing was left to do"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn mw_042_a_merge_reaches_what_only_another_store_has() {
    let Beside { vault, slot, .. } = &beside().await;
    noted(slot, "n1", "tea comes from Assam", json!({"entity_name": "tea"}), 0.9).await;
    noted(slot, "n2", "tea grows on hills", json!({"entity_name": "leaves"}), 0.5).await;
    let merge = json!({"canonical": "tea", "duplicates": ["leaves"], "strategy": "merge_content"});
    let merged = vault.ok("merge", merge).await;
    assert_eq!((&merged["canonical"], &merged["merged_count"]), (&json!("n1"), &json!(1)));
    assert_eq!(merged["stores"], json!(["notes"]));
    assert_eq!(vault.audit("stores.merge").await[0].draft.detail["count"], 1);
    let found = vault.ok("recall", json!({"query": "where does tea grow"})).await;
    assert_eq!(texts(&found), ["tea comes from Assam\ntea grows on hills"], "and is still found");

    let id = vault.fact("tea is drunk at four").await;
    let mixed = json!({"canonical": id, "duplicates": ["leaves"], "strategy": "merge_content"});
    assert_eq!(
        vault.refused("merge", mixed).await.0,
        400,
        "no words come into the vault like this"
    );
    assert_eq!(copies(slot).await.len(), 2);
    let merged = vault.ok("merge", json!({"canonical": id, "duplicates": ["leaves"]})).await;
    assert_eq!((&merged["canonical"], &merged["merged_count"]), (&json!(id), &json!(1)));
    let found = vault.ok("recall", json!({"query": "tea"})).await;
    assert_eq!(texts(&found), ["tea is drunk at four"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn mw_081_a_store_that_is_only_asked_is_never_changed() {
    let directory = tempfile::tempdir().unwrap();
    let url = format!("sqlite-vec://{}", directory.path().join("notes.db").display());
    let config =
        StoreConfig { read_only: true, deadline_ms: 5000, ..StoreConfig::new("notes", url) };
    let Beside { vault, slot, .. } = &with(config, Some(directory)).await;
    noted(slot, "n1", "black tea is in the drawer", json!({"room": "kitchen"}), 0.2).await;
    let body = json!({"type": "semantic", "content": "green tea is in the cupboard"});
    assert_eq!(vault.ok("remember", body).await["stores"], json!(["yore"]));
    vault.ok("forget", json!({"ids": ["n1"], "filter": {"room": "kitchen"}})).await;
    vault.ok("expire", json!({"policy": {"confidence_below": 0.5}})).await;
    vault.ok("stores/repair", json!({})).await;
    assert_eq!(copies(slot).await, ["black tea is in the drawer"]);
    let found = vault.ok("recall", json!({"query": "where is the black tea"})).await;
    assert!(texts(&found).contains(&"black tea is in the drawer"), "{found}");
}
