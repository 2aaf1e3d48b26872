//! The scenarios of the reference's suite, none of which passes on an empty answer: by the routes,
//! and once more, with the thirteenth, by the interface that every store has.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use yore_engine::Secret;
use yore_router::adapters::{Server, Yore};
use yore_router::suite::{BEYOND, CONFORMANCE, run};
use yore_router::{InMemory, Slot, Terms};

use crate::support::{USER, Vault};

async fn recalled(vault: &Vault, query: &str, k: u64) -> Vec<String> {
    vault.texts(json!({"query": query, "k": k, "user_id": USER})).await
}

fn any(texts: &[String], word: &str) -> bool {
    texts.iter().any(|text| text.to_lowercase().contains(word))
}

#[tokio::test]
async fn scenario_01_what_is_remembered_is_recalled() {
    let vault = Vault::new().await;
    vault.fact("The capital of France is Paris.").await;
    let texts = recalled(&vault, "capital France", 3).await;
    assert!(any(&texts, "paris"), "{texts:?}");
}

#[tokio::test]
async fn scenario_02_a_user_sees_no_other() {
    let vault = Vault::new().await;
    vault.fact("My favorite color is blue.").await;
    vault.holds(json!({"content": "My favorite color is purple.", "user_id": "bob"})).await;
    let texts = recalled(&vault, "favorite color", 5).await;
    assert!(any(&texts, "blue") && !any(&texts, "purple"), "{texts:?}");
}

#[tokio::test]
async fn scenario_03_types_filter() {
    let vault = Vault::new().await;
    vault.fact("Tax season is in April.").await;
    let episode = "Had a meeting about taxes last Tuesday.";
    vault.holds(json!({"content": episode, "type": "episodic", "user_id": USER})).await;
    let asked = json!({"query": "meeting taxes", "types": ["semantic"], "k": 5, "user_id": USER});
    let hits = vault.hits(asked).await;
    assert!(!hits.is_empty() && hits.iter().all(|hit| hit["type"] == "semantic"), "{hits:?}");
}

#[tokio::test]
async fn scenario_04_forgotten_ids_are_gone() {
    let vault = Vault::new().await;
    let mut ids = Vec::new();
    for content in ["The sky is blue.", "Water is wet.", "Trees are green."] {
        ids.push(vault.fact(content).await);
    }
    vault.fact("The tree house is painted sky blue.").await;
    vault.ok("forget", json!({"ids": ids})).await;
    let texts = recalled(&vault, "sky water tree", 5).await;
    assert_eq!(texts, ["The tree house is painted sky blue."]);
}

#[tokio::test]
async fn scenarios_05_06_07_guards_refuse() {
    let vault = Vault::new().await;
    let id = vault.fact("still here").await;
    assert_eq!(vault.refused("forget", json!({})).await.0, 400);
    assert_eq!(vault.refused("expire", json!({})).await.0, 400);
    assert_eq!(vault.refused("expire", json!({"policy": {}})).await.0, 400);
    assert!(vault.memory(&id).await.unwrap().head.status.is_live());
}

#[tokio::test]
async fn scenario_08_expiry_by_age() {
    let vault = Vault::new().await;
    vault.fact("An ancient fact from long ago.").await;
    vault.days_pass(365);
    vault.fact("A fresh fact from today.").await;
    vault.ok("expire", json!({"policy": {"older_than_days": 180}})).await;
    let texts = recalled(&vault, "ancient fresh fact", 5).await;
    assert!(any(&texts, "fresh") && !any(&texts, "ancient"), "{texts:?}");
}

#[tokio::test]
async fn scenario_09_merged_duplicates_are_one() {
    let vault = Vault::new().await;
    let mut ids = Vec::new();
    for number in ["one", "two", "three"] {
        ids.push(vault.fact(&format!("Paris is the duplicate fact {number}.")).await);
    }
    vault.ok("merge", json!({"canonical": ids[0], "duplicates": ids[1..]})).await;
    let texts = recalled(&vault, "duplicate fact", 10).await;
    assert_eq!(texts, ["Paris is the duplicate fact one."]);
}

#[tokio::test]
async fn scenario_10_what_needs_approval_waits() {
    let vault = Vault::new().await;
    vault.fact("An approved fact of the governance test.").await;
    let content = "A pending fact of the governance test.";
    let body = json!({
        "type": "semantic", "content": content, "user_id": USER, "approval_required": true,
    });
    assert_eq!(vault.ok("remember", body).await["pending_approval"], true);
    let texts = recalled(&vault, content, 5).await;
    assert_eq!(texts, ["An approved fact of the governance test."]);
}

#[tokio::test]
async fn scenarios_11_12_the_store_says_what_it_can_and_how_it_is() {
    const KNOWN: [&str; 9] = [
        "semantic",
        "episodic",
        "procedural",
        "emotional",
        "fts",
        "vector",
        "graph",
        "governance",
        "recall_tracking",
    ];
    let vault = Vault::new().await;
    let health = vault.get("/memorywire/v0/health").await.expect(200);
    assert_eq!((&health["status"], &health["backend"]), (&json!("ok"), &json!("yore")));
    let capabilities = health["capabilities"].as_array().unwrap();
    assert!(!capabilities.is_empty());
    assert!(capabilities.iter().all(|name| KNOWN.contains(&name.as_str().unwrap())));
}

#[tokio::test]
async fn scenario_14_hits_carry_score_type_content_and_store() {
    let vault = Vault::new().await;
    vault.fact("The sun shines bright over the field.").await;
    let asked = json!({"query": "sun bright shines", "k": 3, "user_id": USER});
    let hit: Value = vault.hits(asked).await.remove(0);
    assert!(hit["score"].is_number());
    assert_eq!((&hit["type"], &hit["source_store"]), (&json!("semantic"), &json!("yore")));
    assert_eq!(hit["content"], "The sun shines bright over the field.");
}

#[tokio::test]
async fn scenario_15_fresh_rows_only() {
    let vault = Vault::new().await;
    vault.fact("ancient news from long ago.").await;
    vault.days_pass(365);
    vault.fact("fresh news from today.").await;
    let asked = json!({
        "query": "ancient news fresh news", "k": 5, "user_id": USER, "fresher_than_days": 30,
    });
    assert_eq!(vault.texts(asked).await, ["fresh news from today."]);
}

#[tokio::test]
async fn scenario_16_many_rows_are_found() {
    let vault = Vault::new().await;
    for number in 0..10 {
        vault.fact(&format!("city fact number {number:02} about somewhere.")).await;
    }
    assert_eq!(recalled(&vault, "city fact", 10).await.len(), 10);
}

#[tokio::test(flavor = "multi_thread")]
async fn mw_conformance_yore_as_a_store_among_others() {
    let vault = Vault::new().await;
    let url = format!("http://{}", vault.listen().await);
    let store =
        Yore::new(Server::from(url).with_token(Some(Secret::new(vault.owner.clone()))), None)
            .unwrap();
    assert!(!format!("{store:?}").contains(&vault.owner), "the token is not shown");
    let terms = Terms { deadline: Duration::from_secs(60), ..Terms::default() };
    let slot = Slot::new("other", Arc::new(store), Arc::new(InMemory::default()), terms);
    let mut failed = run(&slot, "yore", &CONFORMANCE).await;
    failed.extend(run(&slot, "yore", &BEYOND).await);
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
