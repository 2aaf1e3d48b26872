//! Requests about one state of a conversation.

use axum::http::Method;
use serde_json::{Value, json};
use yore_omp::Options;

use crate::support::{Vault, said, talk};

#[tokio::test]
async fn omp_162_a_reader_gets_a_conversation_once_and_a_stale_writer_is_refused() {
    let vault = Vault::new().await;
    let path = vault.holds(&talk("Tea", "one", "two")).await;
    let ask = async |method: Method, name: &str, tag: &str, body: &Value| {
        vault.ask(method, &vault.owner, &path, &[(name, tag)], body).await
    };
    let tag = vault.get(&path).await.tag().to_owned();
    assert!(tag.starts_with('"'), "a strong tag");
    let same = ask(Method::GET, "if-none-match", &tag, &Value::Null).await;
    assert_eq!((same.status, same.bytes.len(), same.tag()), (304, 0, tag.as_str()));
    let renamed = ask(Method::PATCH, "if-match", &tag, &json!({"title": "Coffee"})).await;
    let renamed_tag = renamed.tag().to_owned();
    renamed.expect(200);
    // A message that is added is a change, too, even one with an old time.
    let message = said("user", "early", "2020-01-01T00:00:00Z");
    vault.post(&format!("{path}/messages"), &message).await.expect(200);
    for stale in [&tag, &renamed_tag] {
        let reply = ask(Method::PATCH, "if-match", stale, &json!({"title": "x"})).await;
        assert_eq!(reply.refusal(), (412, "precondition_failed"));
        let reply = ask(Method::DELETE, "if-match", stale, &Value::Null).await;
        assert_eq!(reply.refusal(), (412, "precondition_failed"));
        ask(Method::GET, "if-none-match", stale, &Value::Null).await.expect(200);
    }
    let fresh = vault.get(&path).await.tag().to_owned();
    ask(Method::DELETE, "if-match", &fresh, &Value::Null).await.expect(200);
}

#[tokio::test]
async fn omp_162_of_two_writers_with_one_tag_one_wins() {
    let vault = Vault::new().await;
    let path = vault.holds(&talk("Tea", "one", "two")).await;
    let tag = vault.get(&path).await.tag().to_owned();
    let headers = [("if-match", tag.as_str())];
    let (first, second) = (json!({"title": "a"}), json!({"title": "b"}));
    let (first, second) = tokio::join!(
        vault.ask(Method::PATCH, &vault.owner, &path, &headers, &first),
        vault.ask(Method::PATCH, &vault.owner, &path, &headers, &second),
    );
    let mut statuses = [first.status, second.status];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 412]);
}

#[tokio::test]
async fn omp_162_a_server_may_demand_the_state() {
    let options = Options { require_if_match: true, ..Options::default() };
    let vault = Vault::with(options).await;
    let path = vault.holds(&talk("Tea", "one", "two")).await;
    let unstated = vault.patch(&path, &json!({"title": "x"})).await;
    assert_eq!(unstated.refusal(), (428, "precondition_required"));
    assert_eq!(vault.delete(&path).await.refusal(), (428, "precondition_required"));
    let any = [("if-match", "*")];
    let body = Value::Null;
    vault.ask(Method::DELETE, &vault.owner, &path, &any, &body).await.expect(200);
}
