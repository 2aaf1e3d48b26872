//! Memory records: stored under their ids, adjusted, superseded, removed.

use axum::http::Method;
use serde_json::{Value, json};

use crate::support::{Vault, record};

#[tokio::test]
async fn omp_115_a_record_comes_back_as_it_was_sent() {
    let vault = Vault::new().await;
    let mut sent = record("preference", "Tea without sugar");
    sent["confidence"] = json!(0.75);
    sent["tags"] = json!(["drink"]);
    sent["platform"] = "claude".into();
    sent["expires_at"] = "2028-01-01T00:00:00Z".into();
    sent["source_conversations"] = json!(["550e8400-e29b-41d4-a716-446655440000"]);
    sent["x_theirs"] = json!({"kept": true});
    let reply = vault.post("/memories", &sent).await;
    let path = reply.header("location").to_owned();
    let stored = reply.expect(201);
    for (name, value) in sent.as_object().unwrap() {
        assert_eq!(&stored[name], value, "{name}");
    }
    assert_eq!(vault.get(&path).await.expect(200), stored);
    let mut other = record("fact", "another");
    other["id"] = sent["id"].clone();
    let taken = vault.post("/memories", &other).await;
    assert_eq!(taken.refusal(), (409, "conflict"));
    assert_eq!(taken.body["error"]["details"]["existing_id"], sent["id"]);
    assert_eq!(vault.delete(&path).await.expect(200)["deleted"], true);
    assert_eq!(vault.get(&path).await.refusal(), (404, "not_found"));
    assert_eq!(vault.get("/memories/none").await.refusal(), (404, "not_found"));
}

#[tokio::test]
async fn omp_116_content_tags_state_and_expiry_change_and_the_time_of_making_stays() {
    let vault = Vault::new().await;
    let sent = record("fact", "The office is in Kyiv");
    let path = format!("/memories/{}", sent["id"].as_str().unwrap());
    vault.post("/memories", &sent).await.expect(201);
    let change = json!({"content": "The office is in Lviv", "tags": ["work"],
        "expires_at": "2028-01-01T00:00:00Z", "x_human_review": true});
    let patched = vault.patch(&path, &change).await.expect(200);
    for (name, value) in change.as_object().unwrap() {
        assert_eq!(&patched[name], value, "{name}");
    }
    assert_eq!(patched["created_at"], sent["created_at"]);
    assert_eq!(patched["updated_at"], "2027-01-15T08:00:00Z");
    let off = vault.patch(&path, &json!({"active": false})).await.expect(200);
    assert_eq!((&off["active"], &off["content"]), (&json!(false), &patched["content"]));
    let on = vault.patch(&path, &json!({"active": true, "expires_at": null})).await.expect(200);
    assert_eq!((&on["active"], on.get("expires_at")), (&json!(true), None));
    for change in [
        json!({"record_type": "fact"}),
        json!({"id": "x"}),
        json!({"active": "no"}),
        json!({"content": 7}),
        json!({"expires_at": "soon"}),
    ] {
        let reply = vault.patch(&path, &change).await;
        assert_eq!(reply.refusal(), (400, "invalid_request"), "{change}");
    }
}

#[tokio::test]
async fn omp_161_who_supersedes_first_wins_and_the_second_learns_who() {
    let vault = Vault::new().await;
    let old = record("fact", "The office is in Kyiv");
    vault.post("/memories", &old).await.expect(201);
    let successor = |content: &str| {
        let mut next = record("fact", content);
        next["supersedes"] = old["id"].clone();
        next
    };
    let winner = successor("The office is in Lviv");
    let stored = vault.post("/memories", &winner).await.expect(201);
    assert_eq!(stored["supersedes"], old["id"]);
    let before = format!("/memories/{}", old["id"].as_str().unwrap());
    assert_eq!(vault.get(&before).await.expect(200)["active"], false);
    let second = successor("The office is in Odesa");
    let lost = vault.post("/memories", &second).await;
    assert_eq!(lost.refusal(), (409, "conflict"));
    assert_eq!(lost.body["error"]["details"]["winning_id"], winner["id"]);
    let none = format!("/memories/{}", second["id"].as_str().unwrap());
    assert_eq!(vault.get(&none).await.status, 404, "nothing of the loser stays");
    // The loser may try again, after the winner.
    let mut retry = second.clone();
    retry["supersedes"] = winner["id"].clone();
    vault.post("/memories", &retry).await.expect(201);
}

#[tokio::test]
async fn omp_162_records_have_tags_too() {
    let vault = Vault::new().await;
    let sent = record("fact", "one");
    let reply = vault.post("/memories", &sent).await;
    let (path, tag) = (reply.header("location").to_owned(), reply.tag().to_owned());
    let ask = async |method: Method, name: &str, tag: &str, body: &Value| {
        vault.ask(method, &vault.owner, &path, &[(name, tag)], body).await
    };
    assert_eq!(ask(Method::GET, "if-none-match", &tag, &Value::Null).await.status, 304);
    let changed = ask(Method::PATCH, "if-match", &tag, &json!({"content": "two"})).await;
    let fresh = changed.tag().to_owned();
    changed.expect(200);
    assert_ne!(fresh, tag);
    let stale = ask(Method::PATCH, "if-match", &tag, &json!({"content": "three"})).await;
    assert_eq!(stale.refusal(), (412, "precondition_failed"));
    let stale = ask(Method::DELETE, "if-match", &tag, &Value::Null).await;
    assert_eq!(stale.refusal(), (412, "precondition_failed"));
    ask(Method::DELETE, "if-match", &fresh, &Value::Null).await.expect(200);
}

#[tokio::test]
async fn omp_070_records_that_lack_something_are_refused() {
    let vault = Vault::new().await;
    for name in ["id", "record_type", "content", "created_at", "updated_at", "active"] {
        let mut sent = record("fact", "one");
        sent.as_object_mut().unwrap().remove(name);
        assert_eq!(
            vault.post("/memories", &sent).await.refusal(),
            (400, "invalid_request"),
            "{name}"
        );
    }
    let mut sent = record("mood", "one");
    assert_eq!(vault.post("/memories", &sent).await.status, 400);
    sent["record_type"] = "fact".into();
    sent["x_contains_npi"] = "yes".into();
    assert_eq!(vault.post("/memories", &sent).await.status, 400);
}
