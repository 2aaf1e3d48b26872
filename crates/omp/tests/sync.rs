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
