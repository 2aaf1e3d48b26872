use futures::future::join_all;
use serde_json::json;

use crate::support::{NOW, USER, Vault, of_agent, valid};

#[tokio::test]
async fn mw_006_mw_011_a_memory_comes_back_as_it_was_told() {
    let vault = Vault::new().await;
    let later = NOW.millis() + 60_000;
    let stored = vault
        .ok(
            "remember",
            json!({
                "type": "episodic",
                "content": "Alice moved to Lisbon with two cats",
                "user_id": USER,
                "metadata": {"city": {"name": "Lisbon"}, "cats": 2, "list": [1, null]},
                "confidence": 0.75,
                "source": "chat",
                "expires_at": later,
                "event_time": 1_700_000_000_000_i64,
                "participants": ["alice"],
            }),
        )
        .await;
    assert_eq!(stored["stores"], json!(["yore"]));
    assert_eq!(stored["pending_approval"], false);
    assert_eq!(stored["approval_url"], json!(null));

    let hits = vault.hits(json!({"query": "where did Alice move to"})).await;
    let hit = &hits[0];
    valid("types/episodic", hit);
    assert_eq!(hit["id"], stored["id"]);
    assert_eq!(hit["type"], "episodic");
    assert_eq!(hit["content"], "Alice moved to Lisbon with two cats");
    assert_eq!(hit["metadata"], json!({"city": {"name": "Lisbon"}, "cats": 2, "list": [1, null]}));
    assert_eq!((&hit["confidence"], &hit["source"]), (&json!(0.75), &json!("chat")));
    assert_eq!((&hit["user_id"], &hit["expires_at"]), (&json!(USER), &json!(later)));
    assert_eq!(hit["event_time"], 1_700_000_000_000_i64);
    assert_eq!(hit["participants"], json!(["alice"]));
    assert_eq!(hit["source_store"], "yore");
}

#[tokio::test]
async fn mw_001_the_type_is_kept() {
    let vault = Vault::new().await;
    let machine = r#"{"name":"tea","initial":"dry","states":["dry","wet"],"transitions":[]}"#;
    for (kind, content) in [
        ("semantic", "green tea is brewed at 80 degrees"),
        ("episodic", "we drank green tea on Monday"),
        ("emotional", "green tea makes Alice happy"),
        ("procedural", machine),
    ] {
        vault.holds(json!({"type": kind, "content": content})).await;
        let hits = vault.hits(json!({"query": content, "types": [kind]})).await;
        assert_eq!((hits.len(), &hits[0]["type"]), (1, &json!(kind)));
        assert_eq!(hits[0]["content"], content);
    }
    assert_eq!(vault.refused("remember", json!({"type": "working", "content": "x"})).await.0, 400);
}

#[tokio::test]
async fn mw_002_times_are_whole_milliseconds_since_1970() {
    let vault = Vault::new().await;
    let stored = vault.ok("remember", json!({"type": "semantic", "content": "tea time"})).await;
    assert_eq!(stored["stored_at"], NOW.millis());
    let hits = vault.hits(json!({"query": "tea time"})).await;
    assert_eq!(hits[0]["created_at"], NOW.millis());
}

#[tokio::test]
async fn mw_010_what_breaks_a_rule_is_refused_and_nothing_is_stored() {
    let vault = Vault::new().await;
    let long = "x".repeat(257);
    for spoilt in [
        json!({"content": "tea"}),
        json!({"type": "semantic"}),
        json!({"type": "semantic", "content": ""}),
        json!({"type": "semantic", "content": " \n"}),
        json!({"type": "semantic", "content": {"a": 1}}),
        json!({"type": "semantic", "content": "tea", "agent_id": ""}),
        json!({"type": "semantic", "content": "tea", "agent_id": long}),
        json!({"type": "semantic", "content": "tea", "user_id": ""}),
        json!({"type": "semantic", "content": "tea", "user_id": long}),
        json!({"type": "semantic", "content": "tea", "confidence": 1.5}),
        json!({"type": "semantic", "content": "tea", "confidence": -0.1}),
        json!({"type": "semantic", "content": "tea", "metadata": []}),
        json!({"type": "semantic", "content": "tea", "expires_at": "tomorrow"}),
        json!({"type": "semantic", "content": "tea", "approval_required": "yes"}),
    ] {
        assert_eq!(vault.refused("remember", spoilt.clone()).await.0, 400, "{spoilt}");
    }
    assert!(vault.texts(json!({"query": "tea"})).await.is_empty());
    vault.holds(json!({"content": "tea"})).await;
    let hits = vault.hits(json!({"query": "tea"})).await;
    assert_eq!((&hits[0]["confidence"], &hits[0]["metadata"]), (&json!(1.0), &json!({})));
}

#[tokio::test]
async fn mw_004_a_later_version_of_a_request_is_understood() {
    let vault = Vault::new().await;
    let body = json!({"type": "semantic", "content": "tea", "privacy_intent": {"retain": "30d"}});
    vault.ok("remember", body).await;
    vault.ok("recall", json!({"query": "tea", "quorum_k": 2})).await;
    vault.ok("forget", json!({"filter": {"a": 1}, "cascade": true})).await;
}

#[tokio::test]
async fn what_is_said_twice_is_one_memory_that_lasts_as_long_as_either() {
    let vault = Vault::new().await;
    let soon = json!({"content": "tea, no sugar", "expires_at": NOW.millis() + 1000});
    let first = vault.holds(soon).await;
    let again = vault.holds(json!({"content": "tea, no sugar"})).await;
    assert_eq!(first, again);
    vault.days_pass(1);
    assert_eq!(vault.texts(json!({"query": "tea, no sugar"})).await, ["tea, no sugar"]);
    // Of another person, or with other metadata, it is another memory.
    let other = vault.fact("tea, no sugar").await;
    let about = vault.holds(json!({"content": "tea, no sugar", "metadata": {"n": 1}})).await;
    assert!(other != first && about != first && about != other);
}

#[tokio::test]
async fn two_hundred_writers_at_once_lose_nothing() {
    let vault = Vault::new().await;
    let write = |number: usize| {
        let content = format!("city fact number {number} about somewhere");
        vault.ok("remember", json!({"type": "semantic", "content": content}))
    };
    let stored = join_all((0..200).map(write)).await;
    let mut ids: Vec<&str> = stored.iter().map(|one| one["id"].as_str().unwrap()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 200);
    let found = vault.hits(json!({"query": "city fact about somewhere", "k": 1000})).await;
    assert_eq!(found.len(), 200);
    assert!(vault.audit("remember").await.len() >= 100);
}

#[tokio::test]
async fn a_request_that_is_sent_again_is_done_once() {
    let vault = Vault::new().await;
    let body = of_agent(json!({"type": "semantic", "content": "tea"}));
    let first = vault.ask_as(&vault.owner, "remember", &body, Some("op-1")).await.expect(200);
    let again = vault.ask_as(&vault.owner, "remember", &body, Some("op-1")).await.expect(200);
    assert_eq!(first["id"], again["id"]);
    let id = first["id"].as_str().unwrap();
    assert_eq!(vault.memory(id).await.unwrap().head.number, 1);
    let forget = of_agent(json!({"ids": [id], "hard_delete": true}));
    for _ in 0..2 {
        let gone = vault.ask_as(&vault.owner, "forget", &forget, Some("op-2")).await.expect(200);
        assert_eq!(gone["forgotten_ids"], json!([id]));
    }
}
