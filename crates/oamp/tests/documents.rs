//! What is a document and what is not.

use serde_json::{Value, json};
use yore_oamp::{Options, Strictness};

use crate::support::{Vault, fact, governed, id};

type Spoil = fn(&mut Value);

#[tokio::test]
async fn oamp_001_oamp_020_oamp_021_oamp_403_what_breaks_a_rule_is_refused_and_not_stored() {
    let vault = Vault::new().await;
    let cases: Vec<(&str, Spoil)> = vec![
        ("no version", |e| drop(e.as_object_mut().unwrap().remove("oamp_version"))),
        ("version is a number", |e| e["oamp_version"] = json!(1)),
        ("no type", |e| drop(e.as_object_mut().unwrap().remove("type"))),
        ("other type", |e| e["type"] = json!("user_model")),
        ("no id", |e| drop(e.as_object_mut().unwrap().remove("id"))),
        ("id is no UUID", |e| e["id"] = json!("entry-1")),
        ("id is no UUID of version 4", |e| {
            e["id"] = json!("550e8400-e29b-11d4-a716-446655440000");
        }),
        ("no user", |e| drop(e.as_object_mut().unwrap().remove("user_id"))),
        ("empty user", |e| e["user_id"] = json!("")),
        ("no category", |e| drop(e.as_object_mut().unwrap().remove("category"))),
        ("unknown category", |e| e["category"] = json!("opinion")),
        ("no content", |e| drop(e.as_object_mut().unwrap().remove("content"))),
        ("empty content", |e| e["content"] = json!("")),
        ("content is no text", |e| e["content"] = json!(["secret text"])),
        ("no confidence", |e| drop(e.as_object_mut().unwrap().remove("confidence"))),
        ("confidence too high", |e| e["confidence"] = json!(1.01)),
        ("confidence too low", |e| e["confidence"] = json!(-0.01)),
        ("confidence is a text", |e| e["confidence"] = json!("0.5")),
        ("no source", |e| drop(e.as_object_mut().unwrap().remove("source"))),
        ("source without session", |e| {
            drop(e["source"].as_object_mut().unwrap().remove("session_id"));
        }),
        ("empty session", |e| e["source"]["session_id"] = json!("")),
        ("source without time", |e| {
            drop(e["source"].as_object_mut().unwrap().remove("timestamp"));
        }),
        ("time without offset", |e| e["source"]["timestamp"] = json!("2026-05-01T08:00:00")),
        ("unknown member of the source", |e| e["source"]["mood"] = json!("good")),
        ("only provenance", |e| {
            e["provenance"] = json!({"sources": [e["source"].clone()]});
            drop(e.as_object_mut().unwrap().remove("source"));
        }),
        ("provenance without sources", |e| e["provenance"] = json!({"derived": true})),
        ("empty provenance", |e| e["provenance"] = json!({"sources": []})),
        ("unknown member of the provenance", |e| {
            e["provenance"] = json!({"sources": [e["source"].clone()], "chain": 1});
        }),
        ("governance without class", |e| e["governance"] = json!({"labels": ["work"]})),
        ("unknown class", |e| e["governance"] = json!({"sensitivity_class": "secret"})),
        ("empty label", |e| {
            e["governance"] = json!({"sensitivity_class": "public", "labels": [""]});
        }),
        ("unknown handling", |e| {
            let handling = json!({"retrieval": "open"});
            e["governance"] = json!({"sensitivity_class": "public", "handling": handling});
        }),
        ("negative half-life", |e| e["decay"] = json!({"half_life_days": -1})),
        ("unknown member of the decay", |e| e["decay"] = json!({"rate": 1})),
        ("tags are one text", |e| e["tags"] = json!("drink")),
        ("metadata is a list", |e| e["metadata"] = json!([])),
        ("unknown member", |e| e["mood"] = json!("good")),
    ];
    for (name, spoil) in cases {
        let mut entry = fact("secret text");
        spoil(&mut entry);
        let reply = vault.post(&vault.owner, "/v1/knowledge", &entry).await;
        assert_eq!(reply.refusal(), (400, "VALIDATION_ERROR"), "{name}: {}", reply.text);
        assert!(!reply.text.contains("secret text"), "oamp-028 {name}: {}", reply.text);
        let none = vault.post("", "/v1/knowledge", &entry).await;
        assert_eq!(none.refusal(), (401, "UNAUTHORIZED"), "{name}");
    }
    assert!(vault.contents(&vault.owner, "").await.is_empty());
}

#[tokio::test]
async fn oamp_028_no_refusal_repeats_what_was_said() {
    let vault = Vault::new().await;
    for (member, value) in [
        ("category", json!("my diagnosis")),
        ("oamp_version", json!("my diagnosis")),
        ("confidence", json!("my diagnosis")),
        ("my diagnosis", json!(1)),
        ("metadata", json!("my diagnosis")),
    ] {
        let mut entry = fact("x");
        entry[member] = value;
        let reply = vault.post(&vault.owner, "/v1/knowledge", &entry).await;
        assert_eq!(reply.status, 400);
        assert!(!reply.text.contains("diagnosis"), "{member}: {}", reply.text);
    }
}

#[tokio::test]
async fn oamp_002_oamp_003_oamp_004_oamp_005_every_1_x_is_understood_and_nothing_else() {
    let vault = Vault::new().await;
    for version in ["1.0.0", "1.1.0", "1.2.0", "1.3.0", "1.0.7", "1.3.1", "1.9.0"] {
        let mut entry = fact(version);
        entry["oamp_version"] = version.into();
        let stored = vault.post(&vault.owner, "/v1/knowledge", &entry).await.expect(201);
        assert_eq!(stored["oamp_version"], version);
    }
    for version in ["2.0.0", "0.9.0", "1.0", "1", "one", "", "1.0.0.0", "1.-1.0", "01.x.0"] {
        let mut entry = fact("x");
        entry["oamp_version"] = version.into();
        let reply = vault.post(&vault.owner, "/v1/knowledge", &entry).await;
        assert_eq!(reply.refusal(), (400, "VALIDATION_ERROR"), "{version}");
        assert!(reply.body["error"].as_str().unwrap().contains("oamp_version"), "{version}");
    }
}

#[tokio::test]
async fn oamp_007_oamp_022_oamp_023_oamp_025_oamp_352_an_entry_comes_back_as_it_was_sent() {
    let vault = Vault::new().await;
    let mut whole =
        governed("Payroll closes on Friday", "confidential", &["finance.payroll", "Ünïcode label"]);
    whole["confidence"] = json!(1);
    whole["source"] = json!({
        "timestamp": "2026-05-07T12:00:00.120+02:00", "session_id": "s-9", "agent_id": "agent-a",
    });
    whole["governance"]["handling"] = json!({"export": "governed"});
    whole["provenance"] = json!({
        "derived": true,
        "sources": [
            {"session_id": "s-2", "timestamp": "2026-05-07T10:00:00+00:00", "turn_id": "t-3"},
            {"session_id": "s-1", "timestamp": "2026-05-06T10:00:00Z", "agent_id": "agent-b"},
        ],
    });
    whole["decay"] = json!({"half_life_days": null, "last_confirmed": "2026-05-07T10:00:00.5Z"});
    whole["tags"] = json!([]);
    whole["metadata"] = json!({"a": [1, {"b": null}], "text": "\u{1F980}", "number": 1.5e300});
    let mut plain = fact("No more than it must have");
    plain["decay"] = json!({"half_life_days": 0});
    let mut day = fact("Faded by days");
    day["decay"] = json!({"half_life_days": 70.125});
    day["tags"] = json!(["b", "a", "b"]);
    for sent in [whole, plain, day] {
        let created = vault.post(&vault.owner, "/v1/knowledge", &sent).await.expect(201);
        assert_eq!(created, sent);
        let id = sent["id"].as_str().unwrap();
        assert_eq!(vault.entry(&vault.owner, id).await.expect(200), sent);
        let listed = vault.get(&vault.owner, "/v1/knowledge?user_id=owner").await.expect(200);
        assert!(listed.as_array().unwrap().contains(&sent));
        let exported = vault.export(&vault.owner).await;
        assert!(exported["entries"].as_array().unwrap().contains(&sent));
    }
}

#[tokio::test]
async fn oamp_024_governance_is_never_stamped_onto_an_entry() {
    let vault = Vault::new().await;
    let entry = fact("ungoverned");
    let id = vault.holds(&entry).await;
    let agent = vault.agent("a", &["behaviour"], yore_domain::class::Sensitivity::Internal).await;
    for token in [&vault.owner, &agent] {
        let read = vault.entry(token, &id).await.expect(200);
        assert!(read.get("governance").is_none() && read.get("provenance").is_none());
        assert_eq!(read["oamp_version"], "1.0.0");
    }
}

#[tokio::test]
async fn sources_without_a_time_are_taken_unless_strict() {
    let mut entry = fact("synthesised");
    entry["provenance"] = json!({"sources": [{"session_id": "sess-42", "turn_id": "turn-3"}]});
    let vault = Vault::new().await;
    assert_eq!(vault.post(&vault.owner, "/v1/knowledge", &entry).await.expect(201), entry);
    let options = Options { strict: Strictness::Strict };
    let strict = Vault::with(|_| {}, options).await;
    let reply = strict.post(&strict.owner, "/v1/knowledge", &entry).await;
    assert_eq!(reply.refusal(), (400, "VALIDATION_ERROR"));
}

#[tokio::test]
async fn bodies_that_are_too_large_too_deep_or_no_json_are_refused() {
    let vault = Vault::new().await;
    let mut large = fact("x");
    large["metadata"] = json!({"filler": "x".repeat(3 << 20)});
    let reply = vault.post(&vault.owner, "/v1/knowledge", &large).await;
    assert_eq!(reply.refusal(), (413, "VALIDATION_ERROR"));
    let mut deep = json!({});
    for _ in 0..200 {
        deep = json!({"a": deep});
    }
    let mut entry = fact("x");
    entry["metadata"] = deep;
    let reply = vault.post(&vault.owner, "/v1/knowledge", &entry).await;
    assert_eq!(reply.refusal(), (400, "VALIDATION_ERROR"));
    for body in ["{", "[]", "null", "{\"a\":1,\"a\":2}", "\u{feff}{}"] {
        let request = axum::http::Request::post("/v1/knowledge")
            .header("authorization", format!("Bearer {}", vault.owner))
            .body(axum::body::Body::from(body))
            .unwrap();
        let reply = vault.send(request).await;
        assert_eq!(reply.refusal(), (400, "VALIDATION_ERROR"), "{body}");
    }
    let request = axum::http::Request::post("/v1/import")
        .header("authorization", format!("Bearer {}", vault.owner))
        .header("content-length", (100 << 20).to_string())
        .body(axum::body::Body::empty())
        .unwrap();
    assert_eq!(vault.send(request).await.refusal(), (413, "VALIDATION_ERROR"));
    assert!(vault.contents(&vault.owner, "").await.is_empty());
}

#[tokio::test]
async fn oamp_060_oamp_065_unknown_paths_and_methods_are_refused_in_the_same_form() {
    let vault = Vault::new().await;
    for path in ["/v1/", "/v1/nowhere", "/v1/knowledge/a/b"] {
        let reply = vault.get(&vault.owner, path).await;
        if path != "/v1/" {
            assert_eq!(reply.refusal(), (404, "NOT_FOUND"), "{path}");
        }
    }
    let reply = vault.ask(axum::http::Method::PUT, &vault.owner, "/v1/knowledge", &json!({})).await;
    assert_eq!(reply.status, 405);
    assert!(reply.body["error"].is_string() && reply.body["code"].is_string());
    let request = axum::http::Request::post("/v1/knowledge")
        .header("authorization", format!("Bearer {}", vault.owner))
        .header("content-type", "application/protobuf")
        .body(axum::body::Body::from("x"))
        .unwrap();
    assert_eq!(vault.send(request).await.refusal(), (415, "UNSUPPORTED_MEDIA_TYPE"));
}

#[tokio::test]
async fn oamp_063_oamp_230_a_client_that_wants_protobuf_gets_no_json() {
    let vault = Vault::new().await;
    let one = vault.holds(&fact("x")).await;
    for path in [
        format!("/v1/knowledge/{one}"),
        "/v1/knowledge?user_id=owner".into(),
        "/v1/capabilities".into(),
    ] {
        let request = axum::http::Request::get(path)
            .header("authorization", format!("Bearer {}", vault.owner))
            .header("accept", "application/protobuf")
            .body(axum::body::Body::empty())
            .unwrap();
        assert_eq!(vault.send(request).await.refusal(), (406, "NOT_ACCEPTABLE"));
    }
}

#[tokio::test]
async fn an_entry_with_an_id_of_anothers_spelling_keeps_its_meaning() {
    let vault = Vault::new().await;
    let mut entry = fact("spelling");
    let upper = id().to_uppercase();
    entry["id"] = upper.clone().into();
    let stored = vault.post(&vault.owner, "/v1/knowledge", &entry).await.expect(201);
    assert_eq!(stored["id"], upper.to_lowercase());
    vault.entry(&vault.owner, &upper).await.expect(200);
}
