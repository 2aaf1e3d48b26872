//! The Connector API: a consented client pushes, and another one follows by pulling.

use axum::http::Method;
use serde_json::{Value, json};
use yore_domain::grant::Verb;

use crate::support::{Vault, each, record, said, talk};

async fn pulled(vault: &Vault, cursor: &str) -> Value {
    vault.get(&format!("/changes?limit=200&cursor={cursor}")).await.expect(200)
}

#[tokio::test]
async fn omp_101_a_client_pushes_and_another_follows_from_its_cursor() {
    let vault = Vault::new().await;
    let start = vault.get("/changes").await.expect(200);
    assert_eq!((&start["data"], &start["has_more"]), (&json!([]), &json!(false)));
    let sent = talk("Tea", "one", "two");
    let verbs = [Verb::Read, Verb::Write];
    let pusher = vault.agent("pusher", &verbs).await;
    let push =
        async |path: &str, body: &Value| vault.ask(Method::POST, &pusher, path, &[], body).await;
    push("/conversations?merge=true", &sent).await.expect(201);
    let first = pulled(&vault, start["next_cursor"].as_str().unwrap()).await;
    let kinds = each(&first, "type");
    assert_eq!(kinds.iter().filter(|kind| *kind == "message.created").count(), 2, "{first}");
    assert!(kinds.contains(&"conversation.changed".to_owned()));
    let cursor = first["next_cursor"].as_str().unwrap();
    assert_eq!(pulled(&vault, cursor).await["data"], json!([]));
    // The same push again changes nothing; a longer one adds what is new.
    push("/conversations?merge=true", &sent).await.expect(200);
    assert_eq!(pulled(&vault, cursor).await["data"], json!([]));
    let mut grown = sent.clone();
    let more = said("user", "three", "2026-03-15T09:31:00Z");
    grown["messages"].as_array_mut().unwrap().push(more.clone());
    push("/conversations?merge=true", &grown).await.expect(200);
    let second = pulled(&vault, cursor).await;
    assert!(each(&second, "id").contains(&more["id"].as_str().unwrap().to_owned()));
    let cursor = second["next_cursor"].as_str().unwrap();
    let id = second["data"][0]["conversation_id"].as_str().or(second["data"][0]["id"].as_str());
    vault.delete(&format!("/conversations/{}", id.unwrap())).await.expect(200);
    vault.post("/memories", &record("fact", "x")).await.expect(201);
    let third = pulled(&vault, cursor).await;
    assert_eq!(each(&third, "type"), ["conversation.deleted", "memory.changed"]);
}

#[tokio::test]
async fn omp_101_pages_of_changes_join_and_hidden_ones_tell_nothing() {
    let vault = Vault::new().await;
    for number in 0..3 {
        vault.holds(&talk(&format!("t{number}"), "a", "b")).await;
    }
    let whole = vault.get("/changes?limit=200").await.expect(200);
    let (mut ids, mut path) = (Vec::new(), "/changes?limit=2".to_owned());
    loop {
        let page = vault.get(&path).await.expect(200);
        ids.extend(each(&page, "id"));
        if page["has_more"] == false {
            break;
        }
        path = format!("/changes?limit=2&cursor={}", page["next_cursor"].as_str().unwrap());
    }
    assert_eq!(ids, each(&whole, "id"));
    let reader = vault.agent("reader", &[Verb::Read]).await;
    let theirs = async |path: &str| {
        vault.ask(Method::GET, &reader, path, &[], &Value::Null).await.expect(200)
    };
    let seen = theirs("/changes?limit=200").await;
    let mut secret = talk("Secret", "a", "b");
    secret["x_yore"] = json!({"governance": {"labels": ["health"]}});
    vault.holds(&secret).await;
    assert_eq!(theirs("/changes?limit=200").await, seen, "not a byte differs");
    assert_eq!(vault.get("/changes?cursor=x").await.refusal(), (400, "invalid_request"));
}

#[tokio::test]
async fn omp_101_a_record_is_put_as_another_host_has_it() {
    let vault = Vault::new().await;
    let mut tea = record("preference", "tea, no sugar");
    tea["tags"] = json!(["kitchen"]);
    let path = format!("/memories/{}", tea["id"].as_str().unwrap());
    let put = async |path: &str, headers: &[(&str, &str)], body: &Value| {
        vault.ask(Method::PUT, &vault.owner, path, headers, body).await
    };
    let made = put(&path, &[], &tea).await;
    assert_eq!(made.status, 201);
    let tag = made.tag().to_owned();
    let read = vault.get(&path).await.expect(200);
    assert_eq!((&read["content"], &read["tags"]), (&tea["content"], &tea["tags"]));

    // A host that knows the record whole says all of it, and nothing else stays.
    let mut theirs = read.clone();
    theirs["content"] = "tea, two sugars".into();
    theirs["record_type"] = "fact".into();
    theirs["tags"] = json!(["sweet"]);
    theirs["x_yore"]["facet"] = "fact".into();
    theirs["x_yore"]["governance"]["labels"] = json!(["home"]);
    theirs["x_note"] = 7.into();
    let done = put(&path, &[("if-match", &tag)], &theirs).await.expect(200);
    for name in ["content", "record_type", "tags", "x_note"] {
        assert_eq!(done[name], theirs[name], "{name}");
    }
    assert_eq!(done["x_yore"]["governance"]["labels"], json!(["home"]));
    assert_eq!(done["created_at"], read["created_at"]);
    assert_eq!(put(&path, &[("if-match", &tag)], &theirs).await.status, 412);
    // One that knows the protocol alone is silent about the rest.
    let plain = json!({
        "id": tea["id"], "record_type": "fact", "content": "tea", "active": true,
        "created_at": read["created_at"], "updated_at": read["updated_at"],
    });
    let done = put(&path, &[], &plain).await.expect(200);
    assert_eq!((&done["content"], &done["tags"]), (&json!("tea"), &Value::Null));
    assert_eq!(done["x_yore"]["governance"]["labels"], json!(["home"]), "labels stay");

    let mut off = plain.clone();
    off["active"] = false.into();
    assert_eq!(put(&path, &[], &off).await.expect(200)["active"], false);
    assert_eq!(put(&path, &[], &plain).await.expect(200)["active"], true);

    let asked = format!("{path}?propose=true");
    let mut other = plain.clone();
    other["content"] = "coffee".into();
    let held = put(&asked, &[], &other).await;
    assert_eq!(held.refusal(), (202, "pending_approval"));
    assert_eq!(vault.get(&path).await.expect(200)["content"], "tea", "nothing is overwritten");
    assert_eq!(vault.delete(&asked).await.refusal(), (202, "pending_approval"));
    let hold: yore_domain::HoldId =
        held.body["error"]["details"]["hold"].as_str().unwrap().parse().unwrap();
    let held = vault.engine.hold(&vault.owner_call(), hold).await.unwrap();
    let reason = serde_json::to_value(&held.reason).unwrap();
    assert_eq!(reason, json!({"sync_conflict": tea["id"]}));
    let strange = format!("/memories/{}", uuid(9));
    assert_eq!(put(&strange, &[], &plain).await.refusal(), (400, "invalid_request"));
}

fn uuid(number: u8) -> String {
    format!("{number:08x}-0000-4000-8000-000000000000")
}

#[tokio::test]
async fn omp_094_101_no_host_brings_back_what_was_deleted_here() {
    let vault = Vault::new().await;
    let tea = talk("Tea", "one", "two");
    let path = vault.holds(&tea).await;
    let first = tea["messages"][0]["id"].as_str().unwrap();
    vault.delete(&format!("{path}/messages/{first}")).await.expect(200);
    let merged = vault.post("/conversations?merge=true", &tea).await.expect(200);
    assert_eq!(merged["messages"].as_array().unwrap().len(), 1, "{merged}");
    vault.delete(&path).await.expect(200);
    let refused = vault.post("/conversations?merge=true", &tea).await;
    assert_eq!(refused.refusal(), (409, "conflict"));
    assert_eq!(refused.body["error"]["details"]["reason"], "deleted");
    assert_eq!(vault.get(&path).await.status, 404);

    let fact = record("fact", "drinks tea");
    let path = format!("/memories/{}", fact["id"].as_str().unwrap());
    vault.post("/memories", &fact).await.expect(201);
    vault.delete(&path).await.expect(200);
    let refused = vault.ask(Method::PUT, &vault.owner, &path, &[], &fact).await;
    assert_eq!(refused.refusal(), (409, "conflict"));
    assert_eq!(refused.body["error"]["details"]["reason"], "deleted");
    assert_eq!(vault.get(&path).await.status, 404);
}
