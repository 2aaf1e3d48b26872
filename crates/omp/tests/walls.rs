//! Who may do what: scopes, vaults, and that nothing tells of what is hidden.

use axum::http::Method;
use serde_json::{Value, json};
use yore_domain::grant::Verb;

use crate::support::{Vault, record, said, talk};

#[tokio::test]
async fn omp_151_each_method_needs_its_scope_and_names_it() {
    let vault = Vault::new().await;
    let path = vault.holds(&talk("Tea", "one", "two")).await;
    let reader = vault.agent("reader", &[Verb::Read]).await;
    let ask = async |method: Method, path: &str, body: &Value| {
        vault.ask(method, &reader, path, &[], body).await
    };
    ask(Method::GET, &path, &Value::Null).await.expect(200);
    ask(Method::GET, "/search?q=one", &Value::Null).await.expect(200);
    let message = said("user", "three", "2026-03-15T10:00:00Z");
    for (method, path, body, scope) in [
        (Method::POST, "/conversations", talk("x", "a", "b"), "omp:write"),
        (Method::POST, "/memories", record("fact", "x"), "omp:write"),
        (Method::PATCH, path.as_str(), json!({"title": "x"}), "omp:write"),
        (Method::POST, &format!("{path}/messages"), message, "omp:write"),
        (Method::DELETE, path.as_str(), Value::Null, "omp:delete"),
    ] {
        let reply = ask(method.clone(), path, &body).await;
        assert_eq!(reply.refusal(), (403, "forbidden"), "{method} {path}");
        assert_eq!(reply.body["error"]["details"]["required_scope"], scope, "{method} {path}");
    }
}

#[tokio::test]
async fn omp_150_what_is_hidden_and_what_is_missing_look_the_same() {
    let vault = Vault::new().await;
    let mut secret = talk("Secret", "the needle", "hidden");
    secret["x_yore"] = json!({"governance": {"labels": ["health"], "sensitivity": "restricted"}});
    let hidden = vault.holds(&secret).await;
    let missing = talk("x", "a", "b");
    let missing = format!("/conversations/{}", missing["id"].as_str().unwrap());
    let agent = vault.agent("agent", &[Verb::Read, Verb::Write, Verb::Erase, Verb::Derive]).await;
    for (method, body) in [
        (Method::GET, Value::Null),
        (Method::DELETE, Value::Null),
        (Method::PATCH, json!({"title": "x"})),
    ] {
        let a = vault.ask(method.clone(), &agent, &hidden, &[], &body).await;
        let b = vault.ask(method.clone(), &agent, &missing, &[], &body).await;
        assert_eq!((a.status, a.body), (404, b.body), "{method}");
    }
    let listed = vault.ask(Method::GET, &agent, "/conversations", &[], &Value::Null).await;
    assert_eq!(listed.expect(200)["data"], json!([]));
    let found = vault.ask(Method::GET, &agent, "/search?q=needle", &[], &Value::Null).await;
    assert_eq!(found.expect(200)["data"], json!([]));
    // An id that is taken where the agent cannot look is free to the agent.
    let mut same = talk("Mine", "a", "b");
    same["id"] = secret["id"].clone();
    let made = vault.ask(Method::POST, &agent, "/conversations", &[], &same).await;
    let place = made.header("location").to_owned();
    made.expect(201);
    let own = vault.ask(Method::GET, &agent, &place, &[], &Value::Null).await.expect(200);
    assert_eq!(own["title"], "Mine");
    assert_eq!(vault.get(&hidden).await.expect(200)["title"], "Secret");
}

#[tokio::test]
async fn omp_150_one_id_in_two_vaults_is_no_conflict() {
    let vault = Vault::new().await;
    let sent = talk("Tea", "one", "two");
    for user in ["anna", "ben"] {
        let headers = [("yore-vault", user)];
        let made = vault.ask(Method::POST, &vault.service, "/conversations", &headers, &sent).await;
        made.expect(201);
    }
    let id = format!("/conversations/{}", sent["id"].as_str().unwrap());
    let other = [("yore-vault", "carl")];
    let reply = vault.ask(Method::GET, &vault.service, &id, &other, &Value::Null).await;
    assert_eq!(reply.status, 404);
    let anna = [("yore-vault", "anna")];
    vault.ask(Method::DELETE, &vault.service, &id, &anna, &Value::Null).await.expect(200);
    let ben = [("yore-vault", "ben")];
    vault.ask(Method::GET, &vault.service, &id, &ben, &Value::Null).await.expect(200);
}
