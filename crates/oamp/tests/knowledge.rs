//! Entries one by one: stored, found, adjusted, removed.

use axum::body::Body;
use axum::http::Request;
use serde_json::{Value, json};

use crate::support::{USER, Vault, contents, fact, governed, id};

#[tokio::test]
async fn oamp_100_oamp_101_an_entry_is_stored_under_its_id_once() {
    let vault = Vault::new().await;
    let entry = fact("Rust is great");
    let stored = vault.post(&vault.owner, "/v1/knowledge", &entry).await.expect(201);
    assert_eq!(stored["id"], entry["id"]);
    let mut other = fact("another text");
    other["id"] = entry["id"].clone();
    let reply = vault.post(&vault.owner, "/v1/knowledge", &other).await;
    assert_eq!(reply.refusal(), (409, "DUPLICATE_ID"));
    assert_eq!(vault.contents(&vault.owner, "").await, ["Rust is great"]);
    // The same words under another id are another entry.
    vault.holds(&fact("Rust is great")).await;
    assert_eq!(vault.contents(&vault.owner, "").await.len(), 2);
}

#[tokio::test]
async fn oamp_110_oamp_112_oamp_114_lists_are_bare_arrays_of_one_users_entries() {
    let vault = Vault::new().await;
    vault.holds(&fact("mine")).await;
    let reply = vault.get(&vault.owner, "/v1/knowledge").await;
    assert_eq!(reply.refusal(), (400, "VALIDATION_ERROR"));
    let listed = vault.get(&vault.owner, "/v1/knowledge?user_id=owner").await.expect(200);
    assert_eq!(contents(&listed), ["mine"]);
    let other = vault.get(&vault.owner, "/v1/knowledge?user_id=anna").await;
    assert_eq!(other.refusal(), (403, "FORBIDDEN"));
    let unknown = vault.get(&vault.service, "/v1/knowledge?user_id=nobody").await.expect(200);
    assert_eq!(unknown, json!([]));
    let none = vault.get(&vault.owner, "/v1/knowledge?user_id=owner&query=xylophone").await;
    assert_eq!(none.expect(200), json!([]));
    assert_eq!(vault.get("", "/v1/knowledge?user_id=owner").await.refusal(), (401, "UNAUTHORIZED"));
}

#[tokio::test]
async fn oamp_111_oamp_118_search_ranks_stems_and_says_nothing_when_nothing_matches() {
    let vault = Vault::new().await;
    for content in [
        "Rust is great for systems programs",
        "User A's private knowledge",
        "The user programs in Rust every day and likes programming in Rust best",
        "Tea is drunk without sugar",
    ] {
        vault.holds(&fact(content)).await;
    }
    let search = async |query: &str| {
        vault.contents(&vault.owner, &format!("&query={}", query.replace(' ', "%20"))).await
    };
    let found = search("programming").await;
    assert!(found.iter().any(|text| text.contains("systems programs")), "{found:?}");
    let found = search("RUST PROGRAMMING").await;
    assert!(found[0].contains("likes programming in Rust"), "{found:?}");
    assert!(!found.iter().any(|text| text.contains("Tea")), "{found:?}");
    assert_eq!(search("tea sugar").await, ["Tea is drunk without sugar"]);
    for query in ["quantum computing", "User B", "xylophone", "stock market prices"] {
        let found = search(query).await;
        assert!(found.is_empty(), "{query}: {found:?}");
    }
}

#[tokio::test]
async fn oamp_113_oamp_117_pages_are_clamped_and_filters_come_first() {
    let vault = Vault::new().await;
    for number in 0..7 {
        let mut entry = fact(&format!("number {number}"));
        entry["category"] = (if number % 2 == 0 { "fact" } else { "pattern" }).into();
        entry["source"]["timestamp"] = format!("2026-05-01T08:00:0{number}Z").into();
        vault.holds(&entry).await;
    }
    let owner = &vault.owner;
    let first = vault.contents(owner, "&category=pattern&limit=2").await;
    assert_eq!(first, ["number 5", "number 3"]);
    let rest = vault.contents(owner, "&category=pattern&limit=2&offset=2").await;
    assert_eq!(rest, ["number 1"]);
    for (query, count) in
        [("&limit=0", 1), ("&limit=100000", 7), ("&limit=-1", 1), ("&offset=-5", 7)]
    {
        assert_eq!(vault.contents(owner, query).await.len(), count, "{query}");
    }
    for query in ["limit=x", "offset=1.5", "limit=", "category=opinion", "sensitivity_class=x"] {
        let reply = vault.get(owner, &format!("/v1/knowledge?user_id=owner&{query}")).await;
        assert_eq!(reply.refusal(), (400, "VALIDATION_ERROR"), "{query}");
    }
}

#[tokio::test]
async fn oamp_115_oamp_116_filters_look_at_what_is_declared() {
    let vault = Vault::new().await;
    vault.holds(&fact("undeclared")).await;
    vault.holds(&governed("internal work", "internal", &["work"])).await;
    vault.holds(&governed("public work", "public", &["work", "news"])).await;
    vault.holds(&governed("below work", "internal", &["work.calendar"])).await;
    let owner = &vault.owner;
    let listed = async |query: &str| {
        let mut found = vault.contents(owner, query).await;
        found.sort();
        found
    };
    assert_eq!(listed("&sensitivity_class=internal").await, ["below work", "internal work"]);
    assert_eq!(listed("&governance_label=work").await, ["internal work", "public work"]);
    let both = "&governance_label=news&governance_label=work.calendar";
    assert_eq!(listed(both).await, ["below work", "public work"]);
    assert_eq!(listed(&format!("{both}&sensitivity_class=public")).await, ["public work"]);
    assert!(listed("&governance_label=behaviour").await.is_empty(), "defaults are not declared");
}

#[tokio::test]
async fn oamp_062_the_envelope_carries_totals_of_what_is_seen() {
    let vault = Vault::new().await;
    for number in 0..5 {
        vault.holds(&governed(&format!("work {number}"), "internal", &["work"])).await;
        vault.holds(&governed(&format!("health {number}"), "restricted", &["health"])).await;
    }
    let agent = vault.agent("a", &["work"], yore_domain::class::Sensitivity::Internal).await;
    for (token, total) in [(&vault.owner, 10), (&agent, 5)] {
        let request = Request::get("/v1/knowledge?user_id=owner&limit=3&offset=3")
            .header("authorization", format!("Bearer {token}"))
            .header("accept", "application/json+oamp")
            .body(Body::empty())
            .unwrap();
        let reply = vault.send(request).await;
        assert_eq!(reply.headers["content-type"], "application/json+oamp");
        let body = reply.expect(200);
        assert_eq!(
            (&body["total"], &body["limit"], &body["offset"]),
            (&json!(total), &json!(3), &json!(3))
        );
        assert_eq!(body["has_more"], total == 10);
    }
}

#[tokio::test]
async fn oamp_120_oamp_121_oamp_122_an_entry_is_found_by_its_owner_alone() {
    let vault = Vault::new().await;
    let one = vault.holds(&fact("mine")).await;
    let mut annas = fact("Anna's");
    annas["user_id"] = "anna".into();
    let annas = vault.post(&vault.service, "/v1/knowledge", &annas).await.expect(201);
    let annas = annas["id"].as_str().unwrap();
    assert_eq!(vault.entry(&vault.owner, &one).await.status, 200);
    for missing in [id(), "not-a-uuid".into(), "%00".into(), annas.to_owned()] {
        let reply = vault.entry(&vault.owner, &missing).await;
        assert_eq!(reply.refusal(), (404, "NOT_FOUND"), "{missing}");
    }
    let named = vault.get(&vault.owner, &format!("/v1/knowledge/{annas}?user_id=anna")).await;
    assert_eq!(named.refusal(), (403, "FORBIDDEN"));
    assert_eq!(vault.entry("", &one).await.refusal(), (401, "UNAUTHORIZED"));
    assert_eq!(vault.entry("nonsense", &one).await.refusal(), (401, "UNAUTHORIZED"));
}

#[tokio::test]
async fn oamp_203_oamp_205_a_service_acts_for_every_user_and_finds_entries_by_their_id() {
    let vault = Vault::new().await;
    let mut ids = Vec::new();
    for user in ["anna", "ben", "user/with?odd&chars"] {
        let mut entry = fact(&format!("known of {user}"));
        entry["user_id"] = user.into();
        let stored = vault.post(&vault.service, "/v1/knowledge", &entry).await.expect(201);
        assert_eq!(stored, entry);
        ids.push((user, stored["id"].as_str().unwrap().to_owned()));
    }
    for (user, one) in &ids {
        let found = vault.entry(&vault.service, one).await.expect(200);
        assert_eq!(found["user_id"], *user);
        let patched = vault.patch(&vault.service, one, &json!({"confidence": 0.5})).await;
        assert_eq!(patched.expect(200)["confidence"], 0.5);
    }
    let (_, annas) = &ids[0];
    assert_eq!(vault.entry(&vault.service, &id()).await.refusal(), (404, "NOT_FOUND"));
    assert_eq!(vault.entry(&vault.service, "x").await.refusal(), (404, "NOT_FOUND"));
    // An id that two users have must be asked for by user.
    let mut same = fact("Ben has it, too");
    same["user_id"] = "ben".into();
    same["id"] = annas.clone().into();
    vault.post(&vault.service, "/v1/knowledge", &same).await.expect(201);
    assert_eq!(vault.entry(&vault.service, annas).await.refusal(), (400, "VALIDATION_ERROR"));
    let named = vault.get(&vault.service, &format!("/v1/knowledge/{annas}?user_id=anna")).await;
    assert_eq!(named.expect(200)["content"], "known of anna");
    assert_eq!(vault.delete(&vault.service, &ids[1].1).await.status, 204);
    let forged = vault.service.replace(&vault.service[vault.service.len() - 4..], "0000");
    assert_eq!(vault.entry(&forged, annas).await.refusal(), (401, "UNAUTHORIZED"));
}

#[tokio::test]
async fn oamp_130_oamp_133_confidence_tags_and_decay_can_be_adjusted() {
    let vault = Vault::new().await;
    let mut entry = fact("adjustable");
    entry["decay"] = json!({"half_life_days": 70, "last_confirmed": "2026-05-01T08:00:00Z"});
    entry["tags"] = json!(["a", "b"]);
    entry["metadata"] = json!({"kept": true});
    let one = vault.holds(&entry).await;
    let table: [(Value, &str, Value); 4] = [
        (json!({"confidence": 0.25}), "confidence", json!(0.25)),
        (json!({"tags": ["c"]}), "tags", json!(["c"])),
        (
            json!({"decay": {"last_confirmed": "2026-06-01T08:00:00+02:00"}}),
            "decay",
            json!({"half_life_days": 70, "last_confirmed": "2026-06-01T08:00:00+02:00"}),
        ),
        (
            json!({"decay": {"half_life_days": 7}, "tags": []}),
            "decay",
            json!({"half_life_days": 7, "last_confirmed": "2026-06-01T08:00:00+02:00"}),
        ),
    ];
    for (change, member, after) in table {
        let patched = vault.patch(&vault.owner, &one, &change).await.expect(200);
        assert_eq!(patched[member], after);
        assert_eq!(vault.entry(&vault.owner, &one).await.expect(200), patched);
        assert_eq!(patched["metadata"], json!({"kept": true}));
        assert_eq!(patched["source"], entry["source"]);
    }
}

#[tokio::test]
async fn oamp_131_oamp_132_everything_else_is_fixed_and_a_patch_is_all_or_nothing() {
    let vault = Vault::new().await;
    let entry = fact("fixed");
    let one = vault.holds(&entry).await;
    for member in [
        "id",
        "user_id",
        "category",
        "source",
        "content",
        "oamp_version",
        "type",
        "provenance",
        "governance",
        "metadata",
    ] {
        let reply = vault.patch(&vault.owner, &one, &json!({"confidence": 0.1, member: "x"})).await;
        assert_eq!(reply.refusal(), (400, "FORBIDDEN_PATCH"), "{member}");
    }
    for change in [
        json!({"confidence": 1.5}),
        json!({"confidence": -0.1}),
        json!({"confidence": "high"}),
        json!({"confidence": 0.1, "tags": "x"}),
        json!({"confidence": 0.1, "decay": {"half_life_days": -1}}),
        json!({"confidence": 0.1, "decay": {"last_confirmed": "soon"}}),
        json!({"confidence": 0.1, "mood": 1}),
        json!({"confidence": 0.1, "tags": [""]}),
    ] {
        let reply = vault.patch(&vault.owner, &one, &change).await;
        assert_eq!(reply.refusal(), (400, "VALIDATION_ERROR"), "{change}");
    }
    assert_eq!(vault.entry(&vault.owner, &one).await.expect(200), entry);
    let reply = vault.patch(&vault.owner, &id(), &json!({"confidence": 0.1})).await;
    assert_eq!(reply.refusal(), (404, "NOT_FOUND"));
}

#[tokio::test]
async fn oamp_140_oamp_066_oamp_401_what_is_deleted_is_gone() {
    let vault = Vault::new().await;
    let entry = fact("the vermilion secret");
    let one = vault.holds(&entry).await;
    let reply = vault.delete(&vault.owner, &one).await;
    assert_eq!((reply.status, reply.text.as_str()), (204, ""));
    assert_eq!(vault.entry(&vault.owner, &one).await.refusal(), (404, "NOT_FOUND"));
    assert_eq!(vault.delete(&vault.owner, &one).await.refusal(), (404, "NOT_FOUND"));
    assert!(vault.contents(&vault.owner, "").await.is_empty());
    assert!(vault.contents(&vault.owner, "&query=vermilion").await.is_empty());
    let traces = vault.engine.traces(&vault.owner_call(), "vermilion".into()).await.unwrap();
    assert!(traces.scanned > 0 && traces.found.is_empty(), "{traces:?}");
    // Its id may be used again, and what stood there before stays gone.
    assert_eq!(vault.holds(&entry).await, one);
    assert_eq!(vault.entry(&vault.owner, &one).await.expect(200), entry);
    let health = vault.engine.check(&vault.owner_call(), false).await.unwrap();
    assert!(health.is_sound(), "{health:?}");
}

#[tokio::test]
async fn oamp_030_oamp_031_fading_moves_ranks_and_never_what_is_returned() {
    let vault = Vault::new().await;
    let mut faded = fact("the harbour office opens at nine");
    faded["decay"] = json!({"half_life_days": 1, "last_confirmed": "2025-01-01T00:00:00Z"});
    let mut firm = fact("the harbour office opens at eight");
    firm["decay"] = json!({"half_life_days": null, "last_confirmed": "2025-01-01T00:00:00Z"});
    vault.holds(&faded).await;
    vault.holds(&firm).await;
    let found = vault
        .get(&vault.owner, &format!("/v1/knowledge?user_id={USER}&query=harbour%20office%20opens"))
        .await;
    let found = found.expect(200);
    assert_eq!(contents(&found)[0], "the harbour office opens at eight");
    assert!(found.as_array().unwrap().iter().all(|entry| entry["confidence"] == 0.9));
}

#[tokio::test]
async fn what_other_protocols_wrote_is_an_entry_too() {
    let vault = Vault::new().await;
    let record = json!({"record": {
        "kind": "procedural", "body": {"text": "deploy on Tuesdays"},
        "scope": {"owner": "owner"}, "lifecycle": {"confidence": 0.75},
        "provenance": {"actor": "coder", "actor_kind": "agent", "method": "stated"},
    }});
    vault.post(&vault.owner, "/ump/remember", &record).await.expect(200);
    let listed = vault.get(&vault.owner, "/v1/knowledge?user_id=owner").await.expect(200);
    let entry = &listed[0];
    assert_eq!((&entry["category"], &entry["confidence"]), (&json!("preference"), &json!(0.75)));
    assert_eq!(entry["source"]["agent_id"], "coder");
    assert_eq!(entry["source"]["session_id"], "unstated");
    let id = entry["id"].as_str().unwrap();
    assert_eq!(vault.entry(&vault.owner, id).await.expect(200), *entry);
    // It could be sent to any other server as it is.
    vault.delete(&vault.owner, id).await;
    vault.post(&vault.owner, "/v1/knowledge", entry).await.expect(201);
}

#[tokio::test]
async fn a_write_that_waits_for_a_person_says_so() {
    let vault = Vault::new().await;
    let rule = json!({"name": "ask", "action": "hold", "operations": ["remember"]});
    let rule = serde_json::from_value(rule).unwrap();
    vault.engine.put_rule(&vault.owner_call(), rule).await.unwrap();
    let agent = vault.agent("a", &["work"], yore_domain::class::Sensitivity::Internal).await;
    let entry = governed("to be approved", "internal", &["work"]);
    let reply = vault.post(&agent, "/v1/knowledge", &entry).await;
    assert_eq!(reply.refusal(), (202, "PENDING_APPROVAL"));
    assert!(reply.body["hold"].is_string());
    assert!(vault.contents(&agent, "").await.is_empty());
}
