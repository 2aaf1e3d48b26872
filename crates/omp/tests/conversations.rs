//! Conversations: stored as they were said, appended to, renamed, removed.

use axum::http::Method;
use serde_json::{Value, json};
use yore_domain::MessageId;

use crate::support::{Vault, said, talk};

#[tokio::test]
async fn omp_110_omp_111_a_conversation_comes_back_as_it_was_sent() {
    let vault = Vault::new().await;
    let mut sent = talk("Tea", "How long does tea steep?", "Three minutes");
    sent["tags"] = json!(["kitchen"]);
    sent["x_theirs"] = json!({"kept": [1, 2.5]});
    sent["future_member"] = json!("kept, too");
    sent["extensions"] = json!({"chatgpt_node": "n-1"});
    sent["messages"][0]["x_mood"] = json!("curious");
    let reply = vault.post("/conversations", &sent).await;
    let path = reply.header("location").to_owned();
    assert_eq!(path, format!("/conversations/{}", sent["id"].as_str().unwrap()));
    let (tag, stored) = (reply.tag().to_owned(), reply.expect(201));
    let read = vault.get(&path).await;
    assert_eq!((read.tag(), tag.len()), (tag.as_str(), 34));
    assert_eq!(read.expect(200), stored);
    for name in ["id", "title", "tags", "x_theirs", "future_member", "extensions", "platform"] {
        assert_eq!(stored[name], sent[name], "{name}");
    }
    assert_eq!(stored["message_count"], 2);
    for (stored, sent) in
        stored["messages"].as_array().unwrap().iter().zip(sent["messages"].as_array().unwrap())
    {
        for name in ["id", "role", "content", "timestamp", "x_mood"] {
            assert_eq!(stored[name], sent[name], "{name}");
        }
        assert_eq!(stored["platform"], "chatgpt", "where it was said is known of every message");
    }
    assert!(vault.audited().await.contains(&"converse".to_owned()));
}

#[tokio::test]
async fn omp_110_an_id_is_taken_once_and_a_merge_adds_what_is_new() {
    let vault = Vault::new().await;
    let sent = talk("Tea", "How long does tea steep?", "Three minutes");
    let path = vault.holds(&sent).await;
    let again = vault.post("/conversations", &sent).await;
    assert_eq!(again.refusal(), (409, "conflict"));
    assert_eq!(again.body["error"]["details"]["existing_id"], sent["id"]);
    let mut grown = sent.clone();
    grown["title"] = "Another title".into();
    grown["messages"][1]["model"] = "another-model".into();
    let more = said("user", "And green tea?", "2026-03-15T09:31:00Z");
    grown["messages"].as_array_mut().unwrap().push(more);
    let merged = vault.post("/conversations?merge=true", &grown).await.expect(200);
    assert_eq!(merged["message_count"], 3);
    assert_eq!(merged["title"], "Tea", "what is there wins");
    assert_eq!(merged["messages"][1]["model"], "gpt-5");
    assert_eq!(vault.get(&path).await.expect(200), merged);
    // Merging into nothing begins it.
    vault.post("/conversations?merge=true", &talk("New", "a", "b")).await.expect(201);
}

#[tokio::test]
async fn omp_160_appends_are_all_taken_and_ordered_by_time() {
    let vault = Vault::new().await;
    let path = vault.holds(&talk("Tea", "one", "two")).await;
    let late = said("user", "four", "2026-03-15T11:00:00Z");
    let early = json!([said("user", "three", "2026-03-15T10:00:00Z")]);
    let messages = format!("{path}/messages");
    let (first, second) = tokio::join!(vault.post(&messages, &late), vault.post(&messages, &early));
    assert_eq!(first.expect(200)["appended"], 1);
    assert_eq!(second.expect(200)["appended"], 1);
    let read = vault.get(&path).await.expect(200);
    let texts: Vec<&Value> =
        read["messages"].as_array().unwrap().iter().map(|one| &one["content"]).collect();
    assert_eq!(texts, ["one", "two", "three", "four"]);
    assert_eq!(read["updated_at"], "2026-03-15T11:00:00Z");
    // A message that is there stays; one that says something else is a conflict that is told.
    let mut changed = early.clone();
    changed["content"] = "edited".into();
    let told = vault.post(&messages, &json!([late, changed])).await.expect(200);
    assert_eq!((&told["appended"], &told["skipped"]), (&json!(0), &json!(1)));
    assert_eq!(told["conflicts"], 1);
    let one = format!("{messages}/{}", early["id"].as_str().unwrap());
    assert_eq!(vault.get(&one).await.expect(200)["content"], "three");
    assert_eq!(vault.get(&format!("{messages}/{}", MessageId::random())).await.status, 404);
}

#[tokio::test]
async fn omp_114_omp_152_title_tags_and_summary_change_and_nothing_else() {
    let vault = Vault::new().await;
    let path = vault.holds(&talk("Tea", "one", "two")).await;
    let change =
        json!({"title": "Coffee", "tags": ["a"], "summary": "short", "x_risk_level": "low"});
    let patched = vault.patch(&path, &change).await.expect(200);
    for (name, value) in change.as_object().unwrap() {
        assert_eq!(&patched[name], value, "{name}");
    }
    let removed = vault.patch(&path, &json!({"title": null, "x_risk_level": null})).await;
    let removed = removed.expect(200);
    assert!(removed.get("title").is_none() && removed.get("x_risk_level").is_none());
    for (change, refusal) in [
        (json!({"model": "x"}), (403, "forbidden")),
        (json!({"platform": "x"}), (403, "forbidden")),
        (json!({"messages": []}), (403, "forbidden")),
        (json!({"id": "x"}), (400, "invalid_request")),
        (json!({"tags": "a"}), (400, "invalid_request")),
        (json!({"x_risk_level": "extreme"}), (400, "invalid_request")),
    ] {
        assert_eq!(vault.patch(&path, &change).await.refusal(), refusal, "{change}");
    }
}

#[tokio::test]
async fn omp_113_a_conversation_goes_with_its_messages_and_says_how_many() {
    let vault = Vault::new().await;
    let path = vault.holds(&talk("Tea", "one", "two")).await;
    let scope = json!({"conversations": 1, "messages": 2});
    let shown = vault.delete(&format!("{path}?dry_run=true")).await.expect(200);
    assert_eq!(shown, json!({"deleted": false, "scope": scope}));
    vault.get(&path).await.expect(200);
    let gone = vault.delete(&path).await.expect(200);
    assert_eq!(gone, json!({"deleted": true, "scope": scope}));
    assert_eq!(vault.get(&path).await.refusal(), (404, "not_found"));
    assert_eq!(vault.delete(&path).await.refusal(), (404, "not_found"));
    assert!(vault.audited().await.contains(&"erase-conversation".to_owned()));
}

#[tokio::test]
async fn omp_094_one_message_goes_and_the_others_stay() {
    let vault = Vault::new().await;
    let sent = talk("Tea", "one", "two");
    let path = vault.holds(&sent).await;
    let message = format!("{path}/messages/{}", sent["messages"][0]["id"].as_str().unwrap());
    vault.delete(&format!("{message}?dry_run=true")).await.expect(200);
    assert_eq!(vault.delete(&message).await.expect(200)["scope"]["messages"], 1);
    assert_eq!(vault.get(&message).await.status, 404);
    assert_eq!(vault.get(&path).await.expect(200)["message_count"], 1);
}

#[tokio::test]
async fn omp_178_a_hold_keeps_a_conversation_until_it_is_lifted() {
    let vault = Vault::new().await;
    let sent = talk("Tea", "one", "two");
    let path = vault.holds(&sent).await;
    let id = sent["id"].as_str().unwrap().parse().unwrap();
    vault.engine.hold_conversation(&vault.owner_call(), id, true).await.unwrap();
    let message = format!("{path}/messages/{}", sent["messages"][0]["id"].as_str().unwrap());
    for place in [&path, &message] {
        let reply = vault.delete(place).await;
        assert_eq!(reply.refusal(), (403, "forbidden"));
        assert_eq!(reply.body["error"]["details"]["reason"], "regulatory_hold");
    }
    vault.get(&path).await.expect(200);
    vault.engine.hold_conversation(&vault.owner_call(), id, false).await.unwrap();
    vault.delete(&path).await.expect(200);
}

#[tokio::test]
async fn omp_036_what_is_not_valid_is_refused_whole() {
    let vault = Vault::new().await;
    let wrong = |change: &dyn Fn(&mut Value)| {
        let mut sent = talk("Tea", "one", "two");
        change(&mut sent);
        sent
    };
    for sent in [
        wrong(&|sent| sent["id"] = Value::Null),
        wrong(&|sent| sent["platform"] = Value::Null),
        wrong(&|sent| sent["created_at"] = "yesterday".into()),
        wrong(&|sent| sent["messages"] = Value::Null),
        wrong(&|sent| sent["messages"][1]["role"] = "robot".into()),
        wrong(&|sent| sent["messages"][1]["content"] = Value::Null),
        wrong(&|sent| sent["messages"][1]["content"] = json!([{"text": "no type"}])),
        wrong(&|sent| sent["messages"][1]["content"] = json!([{"type": "code", "text": "x"}])),
        wrong(&|sent| sent["messages"][1]["x_contains_phi"] = "yes".into()),
    ] {
        let reply = vault.post("/conversations", &sent).await;
        assert_eq!(reply.refusal(), (400, "invalid_request"), "{sent}");
    }
    assert_eq!(vault.get("/conversations").await.expect(200)["data"], json!([]));
}

#[tokio::test]
async fn omp_003_other_ids_are_mapped_unless_that_is_refused() {
    let vault = Vault::new().await;
    let mut sent = talk("Tea", "one", "two");
    sent["id"] = "conv-1".into();
    sent["messages"][0]["id"] = "msg-001".into();
    let strict = vault.post("/conversations?strict_ids=true", &sent).await;
    assert_eq!(strict.refusal(), (400, "invalid_request"));
    let stored = vault.post("/conversations", &sent).await.expect(201);
    assert_ne!(stored["id"], "conv-1");
    assert_eq!(stored["extensions"]["chatgpt_conversation_id"], "conv-1");
    assert_eq!(stored["messages"][0]["extensions"]["chatgpt_message_id"], "msg-001");
    assert_eq!(vault.post("/conversations", &sent).await.status, 409, "the same id every time");
    // The same native message is the same message when it is appended later.
    let path = format!("/conversations/{}/messages", stored["id"].as_str().unwrap());
    let told = vault.post(&path, &sent["messages"][0]).await.expect(200);
    assert_eq!(told["appended"], 0);
    assert_eq!(told["message_ids"][0], stored["messages"][0]["id"]);
}

#[tokio::test]
async fn omp_042_attachments_are_stored_once_and_go_out_as_addresses() {
    let vault = Vault::new().await;
    let mut sent = talk("Tea", "look", "nice");
    sent["messages"][0]["attachments"] = json!([
        {"filename": "tea.txt", "media_type": "text/plain", "data": "Z3JlZW4gdGVh"},
        {"filename": "far.png", "media_type": "image/png", "data": "https://a.example/far.png"},
        {"filename": "lost.png", "media_type": "image/png", "data": ""},
    ]);
    let stored = vault.post("/omp/v2/conversations", &sent).await.expect(201);
    let attachments = &stored["messages"][0]["attachments"];
    let address = attachments[0]["data"].as_str().unwrap().to_owned();
    let path = address.strip_prefix("https://memory.example").unwrap();
    assert!(path.starts_with("/omp/v2/attachments/"), "{path}");
    assert_eq!(attachments[0]["size_bytes"], 9);
    assert_eq!(attachments[1]["data"], "https://a.example/far.png");
    assert_eq!(attachments[2]["x_missing"], true);
    let bytes = vault.get(path).await;
    assert_eq!((bytes.status, &bytes.bytes[..]), (200, &b"green tea"[..]));
    assert_eq!(bytes.header("content-type"), "application/octet-stream");
    // What came out goes in again: the address is understood.
    let mut copy = talk("Copy", "look", "again");
    copy["messages"][0]["attachments"] = json!([attachments[0]]);
    let copied = vault.post("/omp/v2/conversations", &copy).await.expect(201);
    assert_eq!(copied["messages"][0]["attachments"][0]["data"], address.as_str());
    let broken = json!([{"filename": "x", "media_type": "text/plain", "data": "not base64!"}]);
    copy["id"] = "another".into();
    copy["messages"][0]["attachments"] = broken;
    assert_eq!(vault.post("/conversations", &copy).await.status, 400);
    let none = format!("/attachments/{}", "0".repeat(64));
    assert_eq!(vault.get(&none).await.refusal(), (404, "not_found"));
}

#[tokio::test]
async fn omp_060_branches_are_kept_apart_and_not_counted() {
    let vault = Vault::new().await;
    let mut sent = talk("Tea", "one", "two");
    let left = said("assistant", "two, otherwise", "2026-03-15T09:30:04Z");
    sent["extensions"] = json!({"chatgpt_branches": [left]});
    let stored = vault.post("/conversations", &sent).await.expect(201);
    assert_eq!(stored["message_count"], 2);
    assert_eq!(stored["extensions"]["chatgpt_branches"][0]["content"], "two, otherwise");
    let listed = vault.get("/conversations").await.expect(200);
    assert_eq!(listed["data"][0]["message_count"], 2);
    let path = format!("/conversations/{}?dry_run=true", stored["id"].as_str().unwrap());
    let dry = vault.ask(Method::DELETE, &vault.owner, &path, &[], &Value::Null).await;
    assert_eq!(dry.expect(200)["scope"]["messages"], 3, "branches go, too");
}
