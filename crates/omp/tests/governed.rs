//! Compliance flags: what inherits them, and who takes them away.

use axum::http::Method;
use serde_json::{Value, json};
use yore_domain::grant::Verb;

use crate::support::{Vault, record, said, talk};

#[tokio::test]
async fn omp_177_a_flag_on_a_message_is_one_of_its_conversation_and_of_what_is_drawn_from_it() {
    let vault = Vault::new().await;
    let mut tea = talk("Tea", "one", "two");
    tea["messages"][0]["x_contains_phi"] = true.into();
    tea["messages"][1]["x_risk_level"] = "medium".into();
    let path = vault.holds(&tea).await;
    let read = vault.get(&path).await.expect(200);
    assert_eq!((&read["x_contains_phi"], &read["x_risk_level"]), (&json!(true), &json!("medium")));
    let listed = vault.get("/conversations").await.expect(200);
    assert_eq!(listed["data"][0]["x_contains_phi"], true, "in lists, too");
    assert_eq!(read.get("x_contains_npi"), None);

    let mut more = said("user", "three", "2026-03-15T10:00:00Z");
    more["x_contains_npi"] = true.into();
    more["x_risk_level"] = "low".into();
    vault.post(&format!("{path}/messages"), &more).await.expect(200);
    let read = vault.get(&path).await.expect(200);
    assert_eq!(read["x_contains_npi"], true, "what is added counts as well");
    assert_eq!(read["x_risk_level"], "medium", "a lower risk lowers nothing");
    let mut again = tea.clone();
    let mut child = said("user", "four", "2026-03-15T11:00:00Z");
    child["x_child_user"] = true.into();
    again["messages"].as_array_mut().unwrap().push(child);
    vault.post("/conversations?merge=true", &again).await.expect(200);
    assert_eq!(vault.get(&path).await.expect(200)["x_child_user"], true);

    let mut drawn = record("fact", "drinks tea");
    drawn["source_conversations"] = json!([tea["id"]]);
    let made = vault.post("/memories", &drawn).await.expect(201);
    for (name, value) in [
        ("x_contains_phi", json!(true)),
        ("x_contains_npi", json!(true)),
        ("x_risk_level", json!("medium")),
    ] {
        assert_eq!(made[name], value, "{name}");
    }
    let free = vault.post("/memories", &record("fact", "rides a bike")).await.expect(201);
    assert_eq!(free.get("x_contains_phi"), None);
}

#[tokio::test]
async fn omp_177_anybody_raises_a_flag_and_only_an_administrator_lowers_one() {
    let vault = Vault::new().await;
    let path = vault.holds(&talk("Tea", "one", "two")).await;
    let memory = record("fact", "drinks tea");
    vault.post("/memories", &memory).await.expect(201);
    let memory = format!("/memories/{}", memory["id"].as_str().unwrap());
    let verbs = [Verb::Read, Verb::Write, Verb::Derive];
    let writer = vault.agent("writer", &verbs).await;
    let patch = async |token: &str, path: &str, body: &Value| {
        vault.ask(Method::PATCH, token, path, &[], body).await
    };
    for path in [&path, &memory] {
        for name in ["x_contains_phi", "x_contains_npi", "x_child_user"] {
            patch(&writer, path, &json!({name: true})).await.expect(200);
            for lower in [json!({name: false}), json!({name: null})] {
                let refused = patch(&writer, path, &lower).await;
                assert_eq!(refused.refusal(), (403, "forbidden"), "{path} {lower}");
                let needed = &refused.body["error"]["details"]["required_scope"];
                assert_eq!(needed, "omp:admin", "{path} {lower}");
            }
            let done = patch(&vault.owner, path, &json!({name: false})).await.expect(200);
            assert_eq!(done[name], false);
        }
        // What protects nobody is lowered by whoever may write.
        patch(&writer, path, &json!({"x_risk_level": "high"})).await.expect(200);
        patch(&writer, path, &json!({"x_risk_level": null})).await.expect(200);
    }
}
