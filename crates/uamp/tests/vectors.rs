//! The independent vectors, over HTTP.

use serde_json::Value;
use yore_domain::grant::Verb;

use crate::support::{Vault, vectors};

const VERBS: [Verb; 3] = [Verb::Read, Verb::Write, Verb::Derive];

/// A vault that knows everybody in the vectors, each under its own name.
pub(crate) async fn vault() -> Vault {
    let vault = Vault::new().await;
    let vectors = vectors();
    for name in ["alice", "bob", "mallory"] {
        vault.register(vectors["keys"][name]["did"].as_str().unwrap(), Some(name)).await;
    }
    vault.register("did:web:worker.example", Some("worker")).await;
    vault
}

/// A token for whoever an envelope says to be from.
pub(crate) async fn token(vault: &Vault, envelope: &Value) -> String {
    let vectors = vectors();
    let known = ["alice", "bob", "mallory"];
    let from = &envelope["from"];
    let name = known.into_iter().find(|name| vectors["keys"][name]["did"] == *from);
    vault.token(name.unwrap_or("worker"), &VERBS).await
}

#[tokio::test(flavor = "multi_thread")]
async fn uamp_018_uamp_022_uamp_040_accepted_vectors_are_accepted_over_http() {
    let vectors = vectors();
    let strict = vectors["accept"].as_array().unwrap().iter();
    let cases = strict.chain(vectors["accept_lenient"].as_array().unwrap());
    for case in cases {
        let name = case["name"].as_str().unwrap();
        let vault = vault().await;
        let envelope = &case["envelope"];
        let raw = case["raw_request_body"].as_str();
        let body = raw.map_or_else(|| envelope.to_string(), str::to_owned);
        let token = token(&vault, envelope).await;
        // These two speak of the stream that another vector opens. It ends after one frame, so
        // the acknowledgement of the eighth is signed well and yet for frames that never were.
        let expected = match name {
            "progress-ack" => 409,
            _ => 202,
        };
        if matches!(name, "progress-ack" | "cancel") {
            let opening = vectors["accept"].as_array().unwrap().iter();
            let opening = opening.clone().find(|case| case["name"] == "every-member-es256");
            let opening = opening.unwrap()["envelope"].to_string();
            vault.post(&token, opening).await.expect(202);
        }
        let reply = vault.post(&token, body).await;
        assert_eq!(reply.status, expected, "{name}: {}", reply.text);
        let opens = matches!(envelope["intent"].as_str(), Some("ask" | "propose" | "subscribe"));
        assert_eq!(reply.headers.contains_key("location"), opens, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn uamp_014_uamp_023_uamp_032_uamp_044_rejected_vectors_are_rejected_over_http() {
    let vectors = vectors();
    let vault = vault().await;
    for case in vectors["reject"].as_array().unwrap() {
        let name = case["name"].as_str().unwrap();
        let raw = case["raw_request_body"].as_str();
        let body = raw.map_or_else(|| case["envelope"].to_string(), str::to_owned);
        let token = token(&vault, &case["envelope"]).await;
        let reply = vault.post(&token, body).await;
        let refusal = reply.refusal();
        assert_eq!(refusal["code"], case["expect_code"], "{name}: {}", reply.text);
        assert_eq!(u64::from(reply.status), case["expect_http"].as_u64().unwrap(), "{name}");
        assert_eq!(refusal["retry"], false, "{name}");
        // A document that cannot be read has no id to speak of.
        let id = if raw.is_some() { &Value::Null } else { &case["envelope"]["id"] };
        assert_eq!(&reply.json()["reply_to"], id, "{name}");
    }
    let accepted = vault.audit().await;
    assert!(accepted.iter().all(|(operation, _)| operation != "accept"), "{accepted:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn uamp_071_uamp_072_uamp_073_capability_tokens_narrow_and_are_judged() {
    let vectors = vectors();
    for case in vectors["cap_tokens"].as_array().unwrap() {
        let name = case["name"].as_str().unwrap();
        let vault = vault().await;
        let known = ["alice", "bob", "mallory"];
        let by =
            known.into_iter().find(|name| vectors["keys"][name]["did"] == case["presented_by"]);
        let by = by.unwrap();
        let key = yore_canon::key::SigningKey::from_jwk(&vectors["keys"][by]["private_jwk"]);
        let did = vectors["keys"][by]["did"].as_str().unwrap().to_owned();
        let token = vault.token(by, &VERBS).await;
        let agent = crate::support::Agent { key: key.unwrap(), did, token };
        let mut envelope = agent.ask("2+2");
        envelope["cap_token"] = case["token"].clone();
        let reply = vault.say(&agent, &envelope).await;
        match case["expect"].as_str().unwrap() {
            "accept" => assert_eq!(reply.status, 202, "{name}: {}", reply.text),
            code => assert_eq!(reply.refusal()["code"], code, "{name}: {}", reply.text),
        }
    }
}
