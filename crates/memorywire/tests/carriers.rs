use serde_json::{Value, json};
use yore_engine::dialect::{Dialect, EffectHint};
use yore_engine::{Call, Secret};

use crate::support::Vault;

fn call(token: &str) -> Call {
    Call::bearer("mcp", Secret::new(token))
}

#[tokio::test]
async fn mw_150_carriers_offer_the_operations_and_recovery_with_their_schemas() {
    let vault = Vault::new().await;
    let dialect: &dyn Dialect = &*vault.memorywire;
    let names: Vec<&str> = dialect.operations().iter().map(|operation| operation.name).collect();
    let five = ["remember", "recall", "forget", "merge", "expire"];
    assert_eq!(names, [&five[..], &["recover", "restore"]].concat());
    for operation in dialect.operations() {
        for schema in [&operation.input, &operation.output] {
            assert_eq!(schema["type"], "object");
            assert!(jsonschema::validator_for(schema).is_ok());
            assert!(!schema.to_string().contains("$ref"), "clients read it as it is");
        }
        let required = operation.input["required"].as_array();
        assert!(required.is_none_or(|names| !names.contains(&json!("agent_id"))));
    }
    let effect = |name: &str| {
        dialect.operations().iter().find(|operation| operation.name == name).unwrap().effect
    };
    assert_eq!(effect("recall"), EffectHint::Reads);
    assert_eq!(effect("forget"), EffectHint::Removes);
}

#[tokio::test]
async fn over_a_carrier_the_agent_need_not_name_itself() {
    let vault = Vault::new().await;
    let dialect: &dyn Dialect = &*vault.memorywire;
    let agent = vault.agent("agent-a").await;
    let body = json!({"type": "semantic", "content": "Alice likes tea"});
    let stored = dialect.call(call(&agent), "remember", body.clone()).await.unwrap();
    let asked = json!({"query": "what does Alice like"});
    let found = dialect.call(call(&agent), "recall", asked.clone()).await.unwrap();
    assert_eq!(found["results"][0]["id"], stored["id"]);
    assert_eq!(vault.hits(asked.clone()).await.len(), 1, "it is the agent's own");
    // Who may speak as anybody and names nobody has memories of its own.
    let found = dialect.call(call(&vault.owner), "recall", asked.clone()).await.unwrap();
    assert_eq!(found["results"], json!([]));
    dialect.call(call(&vault.owner), "remember", body).await.unwrap();
    assert_eq!(vault.hits(json!({"agent_id": "mcp", "query": "Alice"})).await.len(), 1);

    let refused = dialect.call(call("nonsense"), "recall", asked).await.unwrap_err();
    assert_eq!(refused["error"]["code"], "unauthenticated");
    for input in [json!("text"), json!({"query": ""}), json!({"query": 5})] {
        let refused = dialect.call(call(&agent), "recall", input).await.unwrap_err();
        assert_eq!(refused["error"]["code"], "invalid");
    }
    let refused = dialect.call(call(&agent), "reminisce", json!({})).await.unwrap_err();
    assert_eq!(refused["error"]["code"], "unsupported");
}

#[tokio::test]
async fn mw_151_a_recall_can_be_read_by_an_address_that_carries_the_question() {
    let vault = Vault::new().await;
    let dialect: &dyn Dialect = &*vault.memorywire;
    let agent = vault.agent("agent-a").await;
    vault.holds(json!({"content": "Alice likes tea & cake"})).await;
    let uri = "memorywire://recall/what%20does%20Alice%20like%3F";
    let read = dialect.read(call(&agent), uri).await.unwrap().unwrap();
    assert_eq!((read.uri.as_str(), read.name.as_str()), (uri, "what does Alice like?"));
    let text: Value = serde_json::from_str(&read.text.unwrap()).unwrap();
    assert_eq!(text["results"][0]["content"], "Alice likes tea & cake");
    assert!(dialect.read(call(&agent), "ump://-/x").await.is_none());
    assert!(dialect.read(call("nonsense"), uri).await.unwrap().is_err());
    assert!(dialect.subscribe(call(&agent), json!({})).await.is_ok());
    assert!(dialect.subscribe(call("nonsense"), json!({})).await.is_err());
}

#[tokio::test]
async fn mw_003_schemas_are_served() {
    let vault = Vault::new().await;
    for operation in ["remember", "recall", "forget", "merge", "expire"] {
        for name in [operation.to_owned(), format!("{operation}.response")] {
            let reply = vault.get(&format!("/memorywire/v0/schemas/{name}")).await;
            assert_eq!(reply.headers["content-type"], "application/schema+json");
            let id = format!("https://memorywire.dev/schemas/v0/operations/{name}");
            assert_eq!(reply.expect(200)["$id"], id);
        }
    }
    let semantic = vault.get("/memorywire/v0/schemas/types/semantic").await.expect(200);
    assert_eq!(semantic["$id"], "https://memorywire.dev/schemas/v0/types/semantic");
    assert_eq!(vault.get("/memorywire/v0/schemas/recovery").await.refusal().0, 404);
}

#[tokio::test]
async fn what_another_protocol_keeps_for_an_agent_is_found_here_and_the_other_way() {
    let vault = Vault::new().await;
    let ump = yore_ump::Ump::new(vault.engine.clone(), yore_ump::Options::default());
    let ump: &dyn Dialect = &ump;
    let record = json!({
        "body": {"text": "Alice keeps bees"},
        "kind": "identity",
        "scope": {"agent": "agent-a", "user": "alice"},
    });
    ump.call(call(&vault.owner), "remember", record).await.unwrap();
    let hits = vault.hits(json!({"query": "what does Alice keep", "user_id": "alice"})).await;
    assert_eq!(
        (&hits[0]["content"], &hits[0]["type"]),
        (&json!("Alice keeps bees"), &json!("semantic"))
    );
    vault.fact("Alice sells honey").await;
    let asked = json!({"query": "what does Alice sell"});
    let found = ump.call(call(&vault.owner), "recall", asked).await.unwrap();
    assert!(found.to_string().contains("Alice sells honey"), "{found}");
}
