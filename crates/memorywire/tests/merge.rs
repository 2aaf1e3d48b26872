use serde_json::{Value, json};
use yore_domain::memory::Status;

use crate::support::{USER, Vault};

async fn fact(vault: &Vault, content: &str, confidence: f64, metadata: Value) -> String {
    let body = json!({"content": content, "confidence": confidence, "metadata": metadata});
    vault.holds(body).await
}

async fn status(vault: &Vault, id: &str) -> Status {
    vault.memory(id).await.unwrap().head.status
}

#[tokio::test]
async fn mw_041_mw_043_the_canonical_memory_stays_word_for_word() {
    let vault = Vault::new().await;
    let first = fact(&vault, "Paris is the duplicate fact one", 0.2, json!({})).await;
    let second = fact(&vault, "Paris is the duplicate fact two", 0.9, json!({})).await;
    let asked = json!({"canonical": first, "duplicates": [second, first]});
    let done = vault.ok("merge", asked).await;
    assert_eq!((&done["canonical"], &done["merged_count"]), (&json!(first), &json!(1)));
    assert_eq!(done["strategy_used"], "keep_canonical");
    assert_eq!(done["stores"], json!(["yore"]));
    assert_eq!(status(&vault, &second).await, Status::Tombstoned);
    let hits = vault.hits(json!({"query": "duplicate fact"})).await;
    assert_eq!(hits.len(), 1);
    assert_eq!(hits[0]["content"], "Paris is the duplicate fact one");
    assert_eq!(hits[0]["confidence"], 0.2);
}

#[tokio::test]
async fn mw_042_keys_are_ids_or_whole_names_of_entities() {
    let vault = Vault::new().await;
    let acme = fact(&vault, "Acme sells anvils", 0.9, json!({"entity_name": "Acme"})).await;
    let limited =
        fact(&vault, "Acme Ltd is in Ohio", 0.9, json!({"entity_name": "Acme Ltd"})).await;
    for asked in [
        json!({"canonical": acme, "duplicates": ["Acm", "acme", "nobody", "0".repeat(32)]}),
        json!({"canonical": "nobody", "duplicates": ["Acme Ltd"]}),
        json!({"canonical": "Acme", "duplicates": [acme]}),
    ] {
        let done = vault.ok("merge", asked.clone()).await;
        assert_eq!(done["merged_count"], 0, "{asked}");
    }
    assert_eq!(status(&vault, &limited).await, Status::Active);
    let done = vault.ok("merge", json!({"canonical": "Acme", "duplicates": ["Acme Ltd"]})).await;
    assert_eq!((&done["canonical"], &done["merged_count"]), (&json!(acme), &json!(1)));
    assert_eq!(status(&vault, &limited).await, Status::Tombstoned);
    let theirs = json!({"agent_id": "agent-b", "canonical": acme, "duplicates": [limited]});
    assert_eq!(vault.ok("merge", theirs).await["merged_count"], 0);
}

#[tokio::test]
async fn mw_044_the_survivor_is_named() {
    let vault = Vault::new().await;
    let unsure = fact(&vault, "the shop opens at nine, maybe", 0.3, json!({})).await;
    vault.days_pass(1);
    let older = fact(&vault, "the shop opens at ten", 0.9, json!({})).await;
    vault.days_pass(1);
    let newer = fact(&vault, "the shop opens at ten sharp", 0.9, json!({})).await;
    let asked = json!({
        "canonical": unsure, "duplicates": [newer, older], "strategy": "keep_highest_confidence",
    });
    let done = vault.ok("merge", asked).await;
    assert_eq!((&done["canonical"], &done["merged_count"]), (&json!(older), &json!(2)));
    assert_eq!(status(&vault, &older).await, Status::Active);
    for gone in [unsure, newer] {
        assert_eq!(status(&vault, &gone).await, Status::Tombstoned);
    }
}

#[tokio::test]
async fn mw_045_contents_are_joined_and_found_by_the_words_of_each() {
    let vault = Vault::new().await;
    let old = fact(&vault, "Acme sells anvils", 0.4, json!({"a": "old", "b": 1})).await;
    vault.days_pass(1);
    let canonical = fact(&vault, "Acme is in Ohio", 0.5, json!({"a": "mid", "c": 2})).await;
    vault.days_pass(1);
    let new = fact(&vault, "Acme was founded by beavers", 0.8, json!({"c": 3})).await;
    let asked = json!({
        "canonical": canonical, "duplicates": [new, old], "strategy": "merge_content",
    });
    let done = vault.ok("merge", asked).await;
    assert_eq!((&done["canonical"], &done["merged_count"]), (&json!(canonical), &json!(2)));
    let hits = vault.hits(json!({"query": "founded by beavers"})).await;
    assert_eq!(hits.len(), 1);
    let hit = &hits[0];
    assert_eq!(hit["id"], json!(canonical));
    let text = "Acme is in Ohio\nAcme sells anvils\nAcme was founded by beavers";
    assert_eq!(hit["content"], text);
    assert_eq!(hit["metadata"], json!({"a": "mid", "b": 1, "c": 3}));
    assert_eq!(hit["confidence"], 0.8);
}

#[tokio::test]
async fn mw_045_what_is_joined_lasts_and_stays_with_its_user() {
    let vault = Vault::new().await;
    let end = crate::support::NOW.millis() + 1000;
    let brief = vault.holds(json!({"content": "Acme is in Ohio", "expires_at": end})).await;
    let lasting = fact(&vault, "Acme sells anvils", 0.5, json!({})).await;
    let bobs = vault.holds(json!({"content": "Acme owes Bob money", "user_id": "bob"})).await;
    let across = json!({
        "canonical": lasting, "duplicates": [bobs], "strategy": "merge_content",
    });
    assert_eq!(vault.refused("merge", across).await.0, 400);
    let narrowed = json!({"canonical": lasting, "duplicates": [bobs], "user_id": USER});
    assert_eq!(vault.ok("merge", narrowed).await["merged_count"], 0);
    let asked = json!({
        "canonical": brief, "duplicates": [lasting], "strategy": "merge_content",
    });
    assert_eq!(vault.ok("merge", asked).await["merged_count"], 1);
    vault.days_pass(1);
    let texts = vault.texts(json!({"query": "Acme sells anvils"})).await;
    assert_eq!(texts.first().map(String::as_str), Some("Acme is in Ohio\nAcme sells anvils"));
}

#[tokio::test]
async fn mw_040_what_breaks_a_rule_is_refused() {
    let vault = Vault::new().await;
    let id = vault.fact("Acme sells anvils").await;
    for spoilt in [
        json!({"canonical": id}),
        json!({"duplicates": [id]}),
        json!({"canonical": "", "duplicates": [id]}),
        json!({"canonical": id, "duplicates": []}),
        json!({"canonical": id, "duplicates": [id], "strategy": "toss_a_coin"}),
    ] {
        assert_eq!(vault.refused("merge", spoilt.clone()).await.0, 400, "{spoilt}");
    }
}
