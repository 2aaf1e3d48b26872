//! Agreement, signatures and reports: what a recall may ask of several stores.

use std::sync::Arc;

use serde_json::{Value, json};
use yore_domain::class::Sensitivity;
use yore_domain::mutation::{Mutation, Relabel};
use yore_engine::{Secret, Wish};
use yore_memorywire::{Memorywire, Options, Stores};
use yore_router::adapters::{Edition, Mem0};
use yore_router::config::StoreConfig;
use yore_router::suite::WordHash;
use yore_router::{InMemory, Question, Record, Router, Slot, Terms, Type, Whose};

use crate::support::{AGENT, NOW, USER, Vault};

fn whose() -> Whose {
    Whose { agent: AGENT.to_owned(), user: Some(USER.to_owned()) }
}

/// A vault with some stores beside it, to which nothing is delivered by itself.
async fn with_stores(slots: Vec<Arc<Slot>>) -> Vault {
    let mut vault = Vault::new().await;
    let owner = vault.owner_call();
    let router = Router::new(slots, yore_router::Options::default()).unwrap();
    let stores = Stores::new(router, Arc::new(move || owner.clone()));
    vault.speak(Memorywire::new(vault.engine.clone(), Options::default()).with_stores(stores));
    vault
}

fn file(name: &str) -> Arc<Slot> {
    let config = StoreConfig::new(name, "sqlite-vec://:memory:");
    Arc::new(config.slot(Arc::new(InMemory::default()), Arc::new(WordHash)).unwrap())
}

/// Something that a store says, whoever wrote it there.
async fn says(slot: &Slot, id: &str, content: &str) {
    let record = Record::new(id, &whose(), Type::Semantic, content, NOW.millis());
    slot.store().remember(&record).await.unwrap();
}

async fn told(vault: &Vault, body: Value) -> Vec<String> {
    let mut texts = vault.texts(body).await;
    texts.sort();
    texts
}

#[tokio::test(flavor = "multi_thread")]
async fn mw_201_with_a_quorum_only_what_enough_stores_have_counts() {
    let (notes, rogue) = (file("notes"), file("rogue"));
    let vault = with_stores(vec![notes.clone(), rogue.clone()]).await;
    let id = vault.fact("the harbour master is Ada").await;
    says(&notes, &id, "the harbour master is Ada").await;
    let hidden = vault.fact("the harbour safe opens with 4711").await;
    // The rogue makes up ids, and takes ids that exist for other words.
    says(&rogue, "00112233445566778899aabbccddeeff", "the harbour master is Mallory").await;
    says(&rogue, &hidden, "the harbour safe is open to everybody").await;
    let ask = |quorum: u32| json!({"query": "who is the harbour master", "quorum_k": quorum});
    assert_eq!(told(&vault, ask(2)).await, ["the harbour master is Ada"]);
    let any = told(&vault, ask(1)).await;
    assert!(any.iter().any(|text| text.contains("Mallory")), "one store is enough: {any:?}");
    assert!(!any.iter().any(|text| text.contains("everybody")), "the vault speaks for itself");
    assert_eq!(told(&vault, ask(3)).await, [""; 0]);
    assert_eq!(vault.refused("recall", ask(0)).await.0, 400);

    let alone = Vault::new().await;
    alone.fact("the harbour master is Ada").await;
    assert_eq!(told(&alone, ask(2)).await, [""; 0], "there is nobody to agree");
}

#[tokio::test(flavor = "multi_thread")]
async fn mw_087_the_answer_says_how_each_store_did_to_whoever_asks() {
    let notes = file("notes");
    let away = Mem0::new("http://127.0.0.1:9", Edition::Server).unwrap();
    let mapping = Arc::new(InMemory::default());
    let away = Arc::new(Slot::new("away", Arc::new(away), mapping, Terms::default()));
    let vault = with_stores(vec![notes.clone(), away]).await;
    let id = vault.fact("the harbour master is Ada").await;
    says(&notes, &id, "the harbour master is Ada").await;
    // A copy of what the caller may not see is not counted either.
    let secret = vault.fact("the harbour safe opens with 4711").await;
    says(&notes, &secret, "the harbour safe opens with 4711").await;
    let mut governance = vault.memory(&secret).await.unwrap().head.content.governance;
    governance.sensitivity = Some(Sensitivity::Restricted);
    let change = Box::new(Relabel { governance: Some(governance), ..Relabel::default() });
    let relabel = Mutation::Relabel { memory: secret.parse().unwrap(), change };
    vault.engine.mutate(&vault.owner_call(), relabel, Wish::default()).await.unwrap();
    let agent = vault.agent(AGENT).await;
    let body = json!({"agent_id": AGENT, "query": "harbour", "report": true});
    let recalled = vault.ask(&agent, "recall", &body).await.expect(200);
    let row = |store: &str, status: &str, count: u8| json!({"store": store, "status": status, "count": count});
    let rows = [row("yore", "ok", 1), row("notes", "ok", 1), row("away", "failed", 0)];
    assert_eq!(recalled["stores"], json!(rows));
    assert_eq!(recalled["results"].as_array().unwrap().len(), 1);
    let plain = vault.ok("recall", json!({"query": "harbour"})).await;
    assert!(plain.get("stores").is_none(), "an answer is as closed as the protocol says");
}

#[tokio::test(flavor = "multi_thread")]
async fn mw_202_signed_hits_are_believed_and_no_others() {
    let vault = Vault::new().await;
    vault.fact("the harbour master is Ada").await;
    vault.fact("the harbour closes at nine").await;
    let did = vault.engine.whoami(&vault.owner_call()).await.unwrap().did;
    let key = did.strip_prefix("did:key:").unwrap().to_owned();
    let mut config = StoreConfig::new("other", format!("yore://{}", vault.listen().await));
    config.deadline_ms = 30_000;
    config.token = Some(Secret::new(vault.owner.clone()));
    config.public_key = Some(key);
    let slot = |config: &StoreConfig| {
        config.slot(Arc::new(InMemory::default()), Arc::new(WordHash)).unwrap()
    };
    let mut question = Question::new(whose(), "when does the harbour close", 5, NOW.millis());
    question.types = vec![Type::Semantic];
    let question = question.fresher_than_days(30);
    let believed = slot(&config).recall(&question).await.unwrap();
    assert_eq!(believed.hits.len(), 2);
    assert_eq!(believed.hits[0].0.content, "the harbour closes at nine");

    let stranger =
        yore_canon::key::SigningKey::from_seed(yore_canon::key::Algorithm::Ed25519, &[9; 32]);
    let mut wrong = config.clone();
    wrong.public_key = Some(stranger.unwrap().verifying_key().to_multibase());
    assert!(slot(&wrong).recall(&question).await.unwrap().hits.is_empty());
    let unsigned = vault.hits(json!({"query": "when does the harbour close"})).await;
    assert!(unsigned[0].get("envelope").is_none());
}
