use axum::body::Body;
use axum::http::Request;
use serde_json::json;
use yore_domain::grant::Verb;

use crate::support::{Vault, of_agent};

#[tokio::test]
async fn mw_005_agents_share_nothing() {
    let vault = Vault::new().await;
    for agent in ["agent-a", "agent-b"] {
        let content = format!("the secret of {agent}");
        vault.holds(json!({"agent_id": agent, "content": content})).await;
    }
    for agent in ["agent-a", "agent-b"] {
        let texts = vault.texts(json!({"agent_id": agent, "query": "the secret"})).await;
        assert_eq!(texts, [format!("the secret of {agent}")]);
    }
    let nobody = json!({"agent_id": "agent-c", "query": "the secret"});
    assert!(vault.texts(nobody).await.is_empty());
}

#[tokio::test]
async fn whoever_holds_a_grant_speaks_as_nobody_else() {
    let vault = Vault::new().await;
    let token = vault.agent("agent-a").await;
    let theirs = vault.holds(json!({"agent_id": "agent-b", "content": "the secret of b"})).await;
    for (operation, body) in [
        ("remember", json!({"type": "semantic", "content": "forged"})),
        ("recall", json!({"query": "the secret"})),
        ("forget", json!({"ids": [theirs]})),
        ("merge", json!({"canonical": theirs, "duplicates": ["x"]})),
        ("expire", json!({"policy": {"type": "semantic"}})),
        ("procedures/available", json!({"procedure": "x"})),
    ] {
        let mut other = body.clone();
        other["agent_id"] = "agent-b".into();
        let reply = vault.ask(&token, operation, &other).await;
        assert_eq!(reply.refusal(), (403, "forbidden"), "{operation}");
        let reply = vault.ask(&token, operation, &of_agent(body)).await;
        assert_ne!(reply.status, 403, "{operation}: {}", reply.text);
    }
    assert_eq!(vault.texts(json!({"agent_id": "agent-b", "query": "secret"})).await.len(), 1);
}

#[tokio::test]
async fn an_agent_and_a_service_use_the_protocol_like_the_owner() {
    let vault = Vault::new().await;
    let agent = vault.agent("agent-a").await;
    for (number, token) in [&agent, &vault.service].into_iter().enumerate() {
        let content = format!("the tea shop number {number} is closed");
        let body = of_agent(json!({"type": "semantic", "content": content}));
        let stored = vault.ask(token, "remember", &body).await.expect(200);
        let asked = of_agent(json!({"query": content, "k": 1}));
        let found = vault.ask(token, "recall", &asked).await.expect(200);
        assert_eq!(found["results"][0]["id"], stored["id"]);
        let asked = of_agent(json!({"ids": [stored["id"]], "hard_delete": true}));
        let gone = vault.ask(token, "forget", &asked).await.expect(200);
        assert_eq!(gone["forgotten_ids"], json!([stored["id"]]));
    }
}

#[tokio::test]
async fn a_grant_is_needed_for_what_it_says() {
    let vault = Vault::new().await;
    let id = vault.fact("the tea shop is closed").await;
    let reader = vault.agent_with("agent-a", &[Verb::Read]).await;
    let asked = of_agent(json!({"query": "tea shop"}));
    assert_eq!(vault.ask(&reader, "recall", &asked).await.status, 200);
    for (operation, body) in [
        ("remember", json!({"type": "semantic", "content": "x"})),
        ("forget", json!({"ids": [id]})),
        ("merge", json!({"canonical": id, "duplicates": [id]})),
        ("expire", json!({"policy": {"type": "semantic"}})),
    ] {
        let reply = vault.ask(&reader, operation, &of_agent(body)).await;
        assert_eq!(reply.refusal(), (403, "forbidden"), "{operation}");
    }
    let writer = vault.agent_with("agent-a", &[Verb::Read, Verb::Write]).await;
    let hard = of_agent(json!({"ids": [id], "hard_delete": true}));
    assert_eq!(vault.ask(&writer, "forget", &hard).await.status, 403);
    let soft = of_agent(json!({"ids": [id]}));
    assert_eq!(vault.ask(&writer, "forget", &soft).await.status, 200);
}

#[tokio::test]
async fn nobody_is_told_so_before_anything_about_the_input() {
    let vault = Vault::new().await;
    for token in ["", "nonsense"] {
        for body in [json!({}), of_agent(json!({"query": "tea"})), json!({"k": "many"})] {
            let reply = vault.ask(token, "recall", &body).await;
            assert_eq!(reply.refusal(), (401, "unauthenticated"), "{body}");
            assert!(reply.headers.contains_key("www-authenticate"));
        }
    }
}

#[tokio::test]
async fn what_is_too_large_or_too_deep_is_refused_before_it_is_parsed() {
    let vault = Vault::new().await;
    let large = of_agent(json!({"type": "semantic", "content": "x".repeat(3 << 20)}));
    assert_eq!(vault.ask(&vault.owner, "remember", &large).await.refusal(), (413, "too_large"));
    let deep = format!("{}{}", "[".repeat(40), "]".repeat(40));
    let body = format!(r#"{{"agent_id":"a","query":"x","filter":{deep}}}"#);
    let request = Request::builder()
        .method("POST")
        .uri("/memorywire/v0/recall")
        .header("authorization", format!("Bearer {}", vault.owner))
        .header("content-type", "application/json")
        .body(Body::from(body))
        .unwrap();
    assert_eq!(vault.send(request).await.refusal(), (400, "invalid"));
    let unknown = vault.ask(&vault.owner, "reminisce", &json!({})).await;
    assert_eq!(unknown.refusal(), (404, "not_found"));
}
