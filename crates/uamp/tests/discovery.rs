//! What anybody may learn of the server.

use serde_json::{Value, json};
use yore_canon::did::Document;
use yore_canon::jws::Compact;

use crate::support::{SERVER, Vault};

async fn document(vault: &Vault) -> Document {
    let reply = vault.get("", "/.well-known/did.json", &[]).await.expect(200);
    assert_eq!(reply.headers["content-type"], "application/did+json");
    Document::parse(reply.text.as_bytes(), &SERVER.parse().unwrap()).unwrap()
}

fn payload(document: &Document, compact: &str, typ: &str) -> Value {
    let compact = Compact::parse(compact).unwrap();
    assert_eq!(compact.header().typ.as_deref(), Some(typ));
    let kid = compact.header().kid.as_ref().unwrap().parse().unwrap();
    let payload = compact.verify(document.key(&kid).unwrap()).unwrap();
    serde_json::from_slice(payload).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn uamp_080_uamp_081_the_manifest_is_signed_and_keeps_to_its_schema() {
    let vault = Vault::new().await;
    let document = document(&vault).await;
    let path = "/.well-known/agent-manifest.json";
    let reply = vault.get("", path, &[]).await.expect(200);
    assert_eq!(reply.headers["content-type"], "application/manifest+jws");
    assert_eq!(reply.headers["cache-control"], "max-age=300");
    let manifest = payload(&document, &reply.text, "manifest+jws");
    let schema = yore_uamp::schema::named("manifest").unwrap();
    assert!(jsonschema::is_valid(&schema, &manifest), "{manifest}");
    assert_eq!(manifest["intents"].as_array().unwrap().len(), 10);
    assert!(manifest["body_types"].to_string().contains("application/vnd.ump+json"));
    let tag = reply.headers["etag"].to_str().unwrap().to_owned();
    vault.get("", path, &[("if-none-match", &tag)]).await.expect(304);
    let flat = vault.get("", path, &[("accept", "application/json")]).await.expect(200).json();
    let parts: Vec<&str> =
        ["protected", "payload", "signature"].map(|name| flat[name].as_str().unwrap()).to_vec();
    assert_eq!(payload(&document, &parts.join("."), "manifest+jws"), manifest);
}

#[tokio::test(flavor = "multi_thread")]
async fn uamp_083_uamp_084_the_hub_names_the_server_and_no_private_agent() {
    let vault = Vault::new().await;
    let agent = vault.agent("private", 1).await;
    let document = document(&vault).await;
    let reply = vault.get("", "/.well-known/agent-hub.json", &[]).await.expect(200);
    let hub = payload(&document, &reply.text, "hub+jws");
    assert_eq!(hub["trust_anchors"]["dids"], json!([SERVER]));
    assert_eq!(hub["manifests"][0]["did"], SERVER);
    assert!(!hub.to_string().contains(&agent.did));
    let card = vault.get("", "/.well-known/agent-card.json", &[]).await.expect(200).json();
    assert_eq!(card["name"], "Yore");
}

#[tokio::test(flavor = "multi_thread")]
async fn uamp_045_paths_below_those_of_the_protocol_are_answered_in_its_words() {
    let vault = Vault::new().await;
    for path in ["/v1/messages/x", "/v1/stream/x/y", "/uamp/2/ws"] {
        assert_eq!(vault.get("", path, &[]).await.expect(404).refusal()["code"], "4.04", "{path}");
    }
    let reply = vault.get("", "/v1/messages", &[]).await.expect(405);
    assert_eq!(reply.refusal()["code"], "4.00");
}
