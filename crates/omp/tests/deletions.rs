//! Deleting by filter and deleting everything: shown first, done second.

use axum::http::Method;
use serde_json::{Value, json};
use yore_domain::Span;
use yore_domain::grant::Verb;

use crate::support::{Vault, each, record, talk};

async fn filled() -> Vault {
    let vault = Vault::new().await;
    for platform in ["chatgpt", "chatgpt", "claude"] {
        let mut sent = talk(platform, "one", "two");
        sent["platform"] = platform.into();
        vault.holds(&sent).await;
        let mut memory = record("fact", &format!("from {platform} {}", sent["id"]));
        memory["platform"] = platform.into();
        vault.post("/memories", &memory).await.expect(201);
    }
    vault
}

#[tokio::test]
async fn omp_094_omp_123_a_filter_takes_what_its_preview_showed() {
    let vault = filled().await;
    let asked = json!({"filter": {"platform": "chatgpt"}});
    let shown = vault.post("/deletions/preview", &asked).await.expect(200);
    assert_eq!(shown["scope"], json!({"conversations": 2, "messages": 4, "memories": 2}));
    let mut confirmed = asked.clone();
    confirmed["token"] = shown["token"].clone();
    for (change, refusal) in [
        (asked.clone(), (400, "invalid_request")),
        (json!({"filter": {"platform": "claude"}, "token": shown["token"]}), (409, "conflict")),
        (json!({"filter": {"platform": "chatgpt"}, "token": "x"}), (409, "conflict")),
    ] {
        assert_eq!(vault.post("/deletions", &change).await.refusal(), refusal, "{change}");
    }
    let gone = vault.post("/deletions", &confirmed).await.expect(200);
    assert_eq!((&gone["scope"], &gone["held"]), (&shown["scope"], &json!([])));
    let left = vault.get("/conversations").await.expect(200);
    assert_eq!(each(&left, "title"), ["claude"]);
    let memories = vault.get("/memories").await.expect(200);
    assert_eq!(memories["data"].as_array().unwrap().len(), 1);
    let again = vault.post("/deletions", &confirmed).await;
    assert_eq!(again.refusal(), (409, "conflict"), "what it showed is gone");
}

#[tokio::test]
async fn omp_123_a_preview_that_is_old_or_no_longer_true_deletes_nothing() {
    let vault = filled().await;
    let asked = json!({"vault": true});
    let shown = vault.post("/deletions/preview", &asked).await.expect(200);
    let confirmed = json!({"vault": true, "token": shown["token"]});
    vault.holds(&talk("new", "a", "b")).await;
    let moved = vault.post("/deletions", &confirmed).await;
    assert_eq!(moved.refusal(), (409, "conflict"));
    assert_eq!(moved.body["error"]["details"]["scope"]["conversations"], 4, "what is so now");
    let shown = vault.post("/deletions/preview", &asked).await.expect(200);
    let confirmed = json!({"vault": true, "token": shown["token"]});
    vault.clock.advance(Span::seconds(601));
    assert_eq!(vault.post("/deletions", &confirmed).await.refusal(), (409, "conflict"));
    let shown = vault.post("/deletions/preview", &asked).await.expect(200);
    let confirmed = json!({"vault": true, "token": shown["token"]});
    vault.post("/deletions", &confirmed).await.expect(200);
    assert_eq!(vault.get("/conversations").await.expect(200)["data"], json!([]));
    assert_eq!(vault.get("/memories").await.expect(200)["data"], json!([]));
}

#[tokio::test]
async fn omp_123_everything_goes_only_where_that_is_said() {
    let vault = filled().await;
    for asked in [
        json!({}),
        json!({"filter": {}}),
        json!({"vault": false}),
        json!({"vault": true, "filter": {"platform": "claude"}}),
        json!({"vault": "yes"}),
        json!({"filter": {"platform": "claude"}, "type": "everything"}),
    ] {
        let reply = vault.post("/deletions/preview", &asked).await;
        assert_eq!(reply.refusal(), (400, "invalid_request"), "{asked}");
    }
    let some = json!({"vault": true, "type": "memory"});
    let shown = vault.post("/deletions/preview", &some).await.expect(200);
    assert_eq!(shown["scope"], json!({"conversations": 0, "messages": 0, "memories": 3}));
}

#[tokio::test]
async fn omp_178_a_deletion_passes_over_what_is_held_and_says_so() {
    let vault = filled().await;
    let page = vault.get("/conversations?platform=claude").await.expect(200);
    let held = each(&page, "id").remove(0);
    let id = held.parse().unwrap();
    vault.engine.hold_conversation(&vault.owner_call(), id, true).await.unwrap();
    let shown = vault.post("/deletions/preview", &json!({"vault": true})).await.expect(200);
    let confirmed = json!({"vault": true, "token": shown["token"]});
    let gone = vault.post("/deletions", &confirmed).await.expect(200);
    assert_eq!(gone["held"], json!([{"type": "conversation", "id": held}]));
    assert_eq!(gone["scope"]["conversations"], 2);
    vault.get(&format!("/conversations/{held}")).await.expect(200);
}

#[tokio::test]
async fn omp_151_nobody_shows_or_deletes_without_the_scope() {
    let vault = filled().await;
    let reader = vault.agent("reader", &[Verb::Read, Verb::Write]).await;
    let body = json!({"vault": true});
    let refused = vault.ask(Method::POST, &reader, "/deletions/preview", &[], &body).await;
    assert_eq!(refused.refusal(), (403, "forbidden"));
    assert_eq!(refused.body["error"]["details"]["required_scope"], "omp:delete");
    let shown = vault.post("/deletions/preview", &body).await.expect(200);
    let stolen: Value = json!({"vault": true, "token": shown["token"]});
    let refused = vault.ask(Method::POST, &reader, "/deletions", &[], &stolen).await;
    assert!([403, 409].contains(&refused.status), "a token is its caller's alone");
    assert_eq!(vault.get("/conversations").await.expect(200)["data"].as_array().unwrap().len(), 3);
}
