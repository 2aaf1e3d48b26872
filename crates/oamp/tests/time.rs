//! The past, as it was known then.

use axum::http::Method;
use serde_json::{Value, json};
use yore_domain::{Span, Timestamp};

use crate::model::model;
use crate::support::{NOW, USER, Vault, contents, fact};

fn at(time: Timestamp) -> String {
    format!("as_of={time}")
}

#[tokio::test]
async fn oamp_270_oamp_272_oamp_273_oamp_275_the_past_answers_as_it_did() {
    let vault = Vault::new().await;
    let owner = &vault.owner;
    let before = NOW.minus(Span::seconds(1));
    let entry = fact("harbour opens at nine");
    let one = vault.holds(&entry).await;
    vault.post(owner, "/v1/user-model", &model(1)).await.expect(201);
    vault.clock.advance(Span::seconds(10));
    vault.patch(owner, &one, &json!({"confidence": 0.2, "tags": ["later"]})).await.expect(200);
    vault.holds(&fact("harbour closes at five")).await;
    vault.post(owner, "/v1/user-model", &model(2)).await.expect(200);

    let then = at(NOW.plus(Span::seconds(5)));
    let reply = vault.get(owner, &format!("/v1/knowledge/{one}?{then}")).await;
    assert_eq!(reply.headers["oamp-as-of"], NOW.plus(Span::seconds(5)).to_string());
    assert_eq!(reply.expect(200), entry);
    let listed = vault.get(owner, &format!("/v1/knowledge?user_id={USER}&{then}")).await;
    assert!(listed.headers.contains_key("oamp-as-of"));
    assert_eq!(listed.expect(200), json!([entry]));
    let found =
        vault.get(owner, &format!("/v1/knowledge?user_id={USER}&query=harbour&{then}")).await;
    assert_eq!(contents(&found.expect(200)), ["harbour opens at nine"]);
    let old = vault.get(owner, &format!("/v1/user-model/owner?{then}")).await;
    assert_eq!(old.expect(200)["model_version"], 1);

    let early = at(before);
    let listed = vault.get(owner, &format!("/v1/knowledge?user_id={USER}&{early}")).await;
    assert_eq!(listed.expect(200), json!([]), "empty, not missing");
    for path in [format!("/v1/knowledge/{one}?{early}"), format!("/v1/user-model/owner?{early}")] {
        assert_eq!(vault.get(owner, &path).await.refusal(), (404, "NOT_FOUND"));
    }
}

#[tokio::test]
async fn oamp_274_the_future_is_now() {
    let vault = Vault::new().await;
    let one = vault.holds(&fact("now")).await;
    let future = at(NOW.plus(Span::days(400)));
    let reply = vault.get(&vault.owner, &format!("/v1/knowledge/{one}?{future}")).await;
    assert_eq!(reply.headers["oamp-as-of"], NOW.to_string());
    assert_eq!(reply.expect(200)["content"], "now");
}

#[tokio::test]
async fn oamp_102_oamp_271_the_past_cannot_be_changed() {
    let vault = Vault::new().await;
    let one = vault.holds(&fact("stays")).await;
    let then = at(NOW);
    let knowledge = format!("/v1/knowledge/{one}?{then}");
    let asks = [
        (Method::POST, format!("/v1/knowledge?{then}"), fact("x")),
        (Method::PATCH, knowledge.clone(), json!({"confidence": 0.1})),
        (Method::DELETE, knowledge, Value::Null),
        (Method::POST, format!("/v1/user-model?{then}"), model(1)),
        (Method::DELETE, format!("/v1/user-model/owner?{then}"), Value::Null),
        (Method::POST, format!("/v1/import?{then}"), crate::support::store(&[])),
        (Method::POST, format!("/v1/export?{then}"), json!({"user_id": USER})),
        (Method::POST, format!("/v1/admin/keys/rotate?{then}"), Value::Null),
    ];
    for (method, path, body) in asks {
        let reply = vault.ask(method, &vault.owner, &path, &body).await;
        assert_eq!(reply.refusal(), (400, "VALIDATION_ERROR"), "{path}");
    }
    assert_eq!(vault.contents(&vault.owner, "").await, ["stays"]);
}

#[tokio::test]
async fn oamp_277_what_was_deleted_has_no_past() {
    let vault = Vault::new().await;
    let owner = &vault.owner;
    let one = vault.holds(&fact("gone for good")).await;
    vault.post(owner, "/v1/user-model", &model(1)).await.expect(201);
    vault.clock.advance(Span::seconds(10));
    vault.delete(owner, &one).await;
    let then = at(NOW.plus(Span::seconds(5)));
    let read = vault.get(owner, &format!("/v1/knowledge/{one}?{then}")).await;
    assert_eq!(read.refusal(), (404, "NOT_FOUND"));
    let listed = vault.get(owner, &format!("/v1/knowledge?user_id={USER}&{then}")).await;
    assert_eq!(listed.expect(200), json!([]));
    vault.ask(Method::DELETE, owner, "/v1/user-model/owner", &Value::Null).await;
    let read = vault.get(owner, &format!("/v1/user-model/owner?{then}")).await;
    assert_eq!(read.refusal(), (404, "NOT_FOUND"));
}

#[tokio::test]
async fn oamp_278_a_time_that_cannot_be_read_is_refused() {
    let vault = Vault::new().await;
    let one = vault.holds(&fact("x")).await;
    for time in ["yesterday", "2026-01-01", "2026-01-01T00:00:00", ""] {
        let reply = vault.get(&vault.owner, &format!("/v1/knowledge/{one}?as_of={time}")).await;
        assert_eq!(reply.refusal(), (400, "VALIDATION_ERROR"), "{time}");
    }
}
