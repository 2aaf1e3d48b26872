//! The user model.

use axum::http::Method;
use serde_json::{Value, json};
use yore_domain::class::Sensitivity;

use crate::support::{Vault, fact};

pub(crate) fn model(version: u64) -> Value {
    json!({
        "oamp_version": "1.0.0",
        "type": "user_model",
        "user_id": "owner",
        "model_version": version,
        "updated_at": "2026-03-28T09:15:00+01:00",
        "communication": {
            "verbosity": -0.6, "formality": 0, "prefers_examples": true, "languages": ["en", "pt-BR"],
        },
        "expertise": [{
            "domain": "rust", "level": "expert", "confidence": 0.95, "evidence_sessions": ["s-1"],
        }],
        "corrections": [{
            "what_agent_did": "used tabs", "what_user_wanted": "spaces", "session_id": "s-1",
            "timestamp": "2026-03-20T11:00:00Z",
        }],
        "stated_preferences": [
            {"key": "theme", "value": "", "timestamp": "2026-03-20T11:00:00Z"},
        ],
        "metadata": {"anything": [null]},
    })
}

#[tokio::test]
async fn oamp_050_oamp_052_oamp_053_oamp_054_versions_rise_and_each_replaces_the_whole() {
    let vault = Vault::new().await;
    let owner = &vault.owner;
    assert_eq!(vault.get(owner, "/v1/user-model/owner").await.refusal(), (404, "NOT_FOUND"));
    let stored = vault.post(owner, "/v1/user-model", &model(7)).await.expect(201);
    assert_eq!(stored, model(7));
    assert_eq!(vault.get(owner, "/v1/user-model/owner").await.expect(200), model(7));
    for version in [7, 6, 1] {
        let reply = vault.post(owner, "/v1/user-model", &model(version)).await;
        assert_eq!(reply.refusal(), (409, "VERSION_CONFLICT"), "{version}");
    }
    let mut bare = model(8);
    for section in ["communication", "expertise", "corrections", "stated_preferences", "metadata"] {
        bare.as_object_mut().unwrap().remove(section);
    }
    assert_eq!(vault.post(owner, "/v1/user-model", &bare).await.expect(200), bare);
    assert_eq!(vault.get(owner, "/v1/user-model/owner").await.expect(200), bare);
}

#[tokio::test]
async fn oamp_051_what_breaks_a_rule_of_the_model_is_refused() {
    let vault = Vault::new().await;
    type Spoil = fn(&mut Value);
    let cases: Vec<(&str, Spoil)> = vec![
        ("version 0", |m| m["model_version"] = json!(0)),
        ("negative version", |m| m["model_version"] = json!(-3)),
        ("half a version", |m| m["model_version"] = json!(1.5)),
        ("no version", |m| drop(m.as_object_mut().unwrap().remove("model_version"))),
        ("no time", |m| drop(m.as_object_mut().unwrap().remove("updated_at"))),
        ("other type", |m| m["type"] = json!("knowledge_entry")),
        ("other major", |m| m["oamp_version"] = json!("2.0.0")),
        ("empty user", |m| m["user_id"] = json!("")),
        ("too verbose", |m| m["communication"]["verbosity"] = json!(1.1)),
        ("long language", |m| m["communication"]["languages"] = json!(["english"])),
        ("unknown level", |m| m["expertise"][0]["level"] = json!("guru")),
        ("no domain", |m| m["expertise"][0]["domain"] = json!("")),
        ("unsure of what", |m| {
            drop(m["expertise"][0].as_object_mut().unwrap().remove("confidence"));
        }),
        ("empty correction", |m| m["corrections"][0]["what_agent_did"] = json!("")),
        ("correction without time", |m| {
            drop(m["corrections"][0].as_object_mut().unwrap().remove("timestamp"));
        }),
        ("preference without value", |m| {
            drop(m["stated_preferences"][0].as_object_mut().unwrap().remove("value"));
        }),
        ("unknown section", |m| m["mood"] = json!({})),
        ("unknown member", |m| m["communication"]["mood"] = json!(1)),
    ];
    for (name, spoil) in cases {
        let mut document = model(1);
        spoil(&mut document);
        let reply = vault.post(&vault.owner, "/v1/user-model", &document).await;
        assert_eq!(reply.refusal(), (400, "VALIDATION_ERROR"), "{name}");
    }
    assert_eq!(vault.get(&vault.owner, "/v1/user-model/owner").await.status, 404);
}

#[tokio::test]
async fn oamp_150_oamp_151_oamp_409_deleting_the_model_deletes_the_person() {
    let vault = Vault::new().await;
    let delete =
        async |user: &str, token: &str| vault.ask(Method::DELETE, token, user, &Value::Null).await;
    let path = "/v1/user-model/owner";
    assert_eq!(delete(path, &vault.owner).await.refusal(), (404, "NOT_FOUND"));
    for number in 0..3 {
        vault.holds(&fact(&format!("cerulean {number}"))).await;
    }
    vault.post(&vault.owner, "/v1/user-model", &model(1)).await.expect(201);
    let reply = delete(path, &vault.owner).await;
    assert_eq!((reply.status, reply.text.as_str()), (204, ""));
    assert_eq!(vault.get(&vault.owner, path).await.status, 404);
    assert!(vault.contents(&vault.owner, "").await.is_empty());
    assert!(vault.export(&vault.owner).await["entries"].as_array().unwrap().is_empty());
    let traces = vault.engine.traces(&vault.owner_call(), "cerulean".into()).await.unwrap();
    assert!(traces.found.is_empty(), "{traces:?}");
    // Entries without a model go as well, and a person nobody knows is not there.
    vault.holds(&fact("alone")).await;
    assert_eq!(delete(path, &vault.owner).await.status, 204);
    assert_eq!(delete(path, &vault.owner).await.status, 404);
    assert_eq!(delete("/v1/user-model/nobody", &vault.service).await.status, 404);
    assert_eq!(delete("/v1/user-model/anna", &vault.owner).await.refusal(), (403, "FORBIDDEN"));
    // The number starts again with the person.
    vault.post(&vault.owner, "/v1/user-model", &model(1)).await.expect(201);
}

#[tokio::test]
async fn oamp_349_the_model_counts_as_identity_told_in_confidence() {
    let vault = Vault::new().await;
    vault.post(&vault.owner, "/v1/user-model", &model(1)).await.expect(201);
    let table = [
        (&["identity"][..], Sensitivity::Confidential, true),
        (&["identity"], Sensitivity::Internal, false),
        (&["preferences", "work"], Sensitivity::Restricted, false),
        (&[], Sensitivity::Restricted, false),
    ];
    for (labels, max, seen) in table {
        let agent = vault.agent("a", labels, max).await;
        let read = vault.get(&agent, "/v1/user-model/owner").await;
        let other = vault.get(&agent, "/v1/user-model/nobody").await;
        assert_eq!(other.refusal(), (403, "FORBIDDEN"));
        let exported = vault.export(&agent).await;
        assert_eq!(exported.get("metadata").is_some(), seen, "{labels:?}");
        let put = vault.post(&agent, "/v1/user-model", &model(1)).await;
        let deleted = vault.ask(Method::DELETE, &agent, "/v1/user-model/owner", &Value::Null).await;
        assert_eq!(deleted.refusal(), (403, "FORBIDDEN"), "{labels:?}");
        if seen {
            assert_eq!(read.expect(200), model(1));
            assert_eq!(put.refusal(), (409, "VERSION_CONFLICT"));
        } else {
            assert_eq!(read.refusal(), (404, "NOT_FOUND"), "{labels:?}");
            assert_eq!(put.refusal(), (403, "SCOPE_DENIED_WRITE"), "whether there is one or not");
        }
    }
}
