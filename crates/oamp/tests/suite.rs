//! What the protocol's published compliance suite pins, case by case, under its own names.
//!
//! Like the suite, every case speaks as one service for users of its own and relies on nothing
//! but answers. MUST-01 and SHOULD-03 are empty there: they are `oamp_400_…` and `oamp_030_…`.

use axum::http::Method;
use serde_json::{Value, json};

use crate::support::{Vault, contents, fact, governed, id};

/// An entry of a user's.
fn of(user: &str, mut entry: Value) -> Value {
    entry["user_id"] = user.into();
    entry
}

fn model_of(user: &str, version: i64) -> Value {
    let mut model = crate::model::model(1);
    model["user_id"] = user.into();
    model["model_version"] = version.into();
    model
}

/// A store as the suite sends it: without a time.
fn store_of(user: &str, entries: &[Value]) -> Value {
    json!({
        "oamp_version": "1.0.0", "type": "knowledge_store", "user_id": user, "entries": entries,
    })
}

impl Vault {
    /// Creates an entry as the service and returns it.
    async fn created(&self, entry: &Value) -> Value {
        self.post(&self.service, "/v1/knowledge", entry).await.expect(201)
    }

    async fn listed(&self, user: &str, query: &str) -> Value {
        let path = format!("/v1/knowledge?user_id={user}{query}");
        self.get(&self.service, &path).await.expect(200)
    }
}

#[tokio::test]
async fn oamp_160_suite_must_02_func_14_an_export_holds_every_entry() {
    let vault = Vault::new().await;
    for number in 0..5 {
        vault.created(&of("suite-export", fact(&format!("export entry {number}")))).await;
    }
    let body = json!({"user_id": "suite-export"});
    let exported = vault.post(&vault.service, "/v1/export", &body).await.expect(200);
    assert_eq!(exported["type"], "knowledge_store");
    assert_eq!(exported["entries"].as_array().unwrap().len(), 5);
}

#[tokio::test]
async fn oamp_150_oamp_066_suite_must_03_func_13_deleting_a_person_leaves_nothing() {
    let vault = Vault::new().await;
    for number in 0..3 {
        vault.created(&of("suite-delete", fact(&format!("delete entry {number}")))).await;
    }
    vault.post(&vault.service, "/v1/user-model", &model_of("suite-delete", 1)).await.expect(201);
    let path = "/v1/user-model/suite-delete";
    let gone = vault.ask(Method::DELETE, &vault.service, path, &Value::Null).await;
    assert_eq!((gone.status, gone.text.as_str()), (204, ""));
    assert_eq!(vault.get(&vault.service, path).await.status, 404);
    assert_eq!(vault.listed("suite-delete", "").await, json!([]));
}

#[tokio::test]
async fn oamp_402_suite_must_04_the_audit_repeats_no_content() {
    let vault = Vault::new().await;
    let secret = "SUITE_SECRET_CONTENT_98765";
    vault.created(&of("suite-audit", fact(secret))).await;
    let lines = vault.get(&vault.service, "/v1/admin/audit?user_id=suite-audit").await;
    assert!(lines.text.contains("create") && !lines.text.contains(secret), "{}", lines.text);
    assert!(lines.expect(200).is_array());
}

#[tokio::test]
async fn oamp_020_oamp_065_suite_must_05_07_08_09_what_breaks_a_rule_is_refused_in_form() {
    let vault = Vault::new().await;
    let spoilt = |spoil: fn(&mut Value)| {
        let mut entry = of("suite-rules", fact("x"));
        spoil(&mut entry);
        entry
    };
    for (case, entry) in [
        ("MUST-05", spoilt(|e| drop(e["source"].as_object_mut().unwrap().remove("session_id")))),
        ("MUST-07", spoilt(|e| e["category"] = "not-a-valid-category".into())),
        ("MUST-08", spoilt(|e| e["confidence"] = 1.5.into())),
    ] {
        let reply = vault.post(&vault.service, "/v1/knowledge", &entry).await;
        assert_eq!(reply.refusal(), (400, "VALIDATION_ERROR"), "{case}");
        assert!(reply.body["error"].is_string(), "{case}");
    }
    let missing = vault.entry(&vault.service, &id()).await;
    assert_eq!(missing.refusal(), (404, "NOT_FOUND"), "MUST-09, FUNC-04");
    assert!(missing.body["error"].is_string());
}

#[tokio::test]
async fn oamp_050_oamp_054_suite_must_06_versions_of_a_model_rise() {
    let vault = Vault::new().await;
    let put = async |version| {
        vault.post(&vault.service, "/v1/user-model", &model_of("suite-version", version)).await
    };
    put(7).await.expect(201);
    for version in [5, 7] {
        let reply = put(version).await;
        assert_eq!(reply.refusal(), (409, "VERSION_CONFLICT"), "{version}");
        assert!(reply.body["error"].is_string());
    }
}

#[tokio::test]
async fn oamp_140_oamp_066_suite_must_10_func_09_a_deletion_is_real_and_its_answer_empty() {
    let vault = Vault::new().await;
    let entry = of("suite-gone", fact("x"));
    vault.created(&entry).await;
    let one = entry["id"].as_str().unwrap();
    let gone = vault.delete(&vault.service, one).await;
    assert_eq!((gone.status, gone.text.as_str()), (204, ""));
    assert_eq!(vault.entry(&vault.service, one).await.status, 404);
}

#[tokio::test]
async fn oamp_043_oamp_172_suite_must_11_a_weaker_duplicate_is_not_dropped_silently() {
    let vault = Vault::new().await;
    let entry = of("suite-merge", fact("x"));
    vault.created(&entry).await;
    let mut weaker = entry.clone();
    weaker["confidence"] = 0.3.into();
    let sent = store_of("suite-merge", &[weaker]);
    let done = vault.post(&vault.service, "/v1/import", &sent).await.expect(201);
    let told = done["imported"].as_u64().unwrap() + done["rejected"].as_u64().unwrap();
    assert_eq!(told, 1, "{done}");
}

#[tokio::test]
async fn oamp_022_oamp_100_suite_must_12_func_01_02_03_what_is_created_comes_back() {
    let vault = Vault::new().await;
    let mut entry = of("suite-create", fact("created"));
    assert_eq!(vault.created(&entry).await["id"], entry["id"]);
    let read = vault.entry(&vault.service, entry["id"].as_str().unwrap()).await.expect(200);
    assert_eq!(read["content"], entry["content"]);
    entry["id"] = id().into();
    entry["metadata"] = json!({"custom_vendor_field": "accepted", "another_unknown": 42});
    vault.created(&entry).await;
    let read = vault.entry(&vault.service, entry["id"].as_str().unwrap()).await.expect(200);
    assert_eq!(read["metadata"], entry["metadata"]);
}

#[tokio::test]
async fn oamp_023_suite_func_02b_governance_and_provenance_come_back_exactly() {
    let vault = Vault::new().await;
    let mut entry = of("suite-governed", governed("governed", "confidential", &["work.matter"]));
    entry["governance"]["handling"] = json!({"retrieval": "governed", "export": "governed"});
    entry["provenance"] = json!({
        "sources": [{"session_id": "s-1", "timestamp": "2026-05-01T08:00:00Z", "turn_id": "t-1"}],
        "derived": true,
    });
    for answer in [
        vault.created(&entry).await,
        vault.entry(&vault.service, entry["id"].as_str().unwrap()).await.expect(200),
    ] {
        assert_eq!(answer["governance"], entry["governance"]);
        assert_eq!(answer["provenance"], entry["provenance"]);
    }
}

#[tokio::test]
async fn oamp_112_oamp_110_suite_func_05_06_a_search_is_an_array_of_one_users() {
    let vault = Vault::new().await;
    for user in ["suite-a", "suite-b"] {
        vault.created(&of(user, fact(&format!("only {user} knows this Rust fact")))).await;
    }
    for query in ["&query=Rust", "&query=fact"] {
        let found = vault.listed("suite-a", query).await;
        assert_eq!(contents(&found), ["only suite-a knows this Rust fact"], "{query}");
        assert_eq!(found[0]["user_id"], "suite-a");
    }
}

#[tokio::test]
async fn oamp_115_oamp_116_suite_func_06b_filters_look_at_what_is_declared() {
    let vault = Vault::new().await;
    let user = "suite-filter";
    vault.created(&of(user, governed("declared", "internal", &["work"]))).await;
    vault.created(&of(user, governed("other", "public", &["health"]))).await;
    vault.created(&of(user, fact("undeclared"))).await;
    for filter in ["&sensitivity_class=internal", "&governance_label=work"] {
        assert_eq!(contents(&vault.listed(user, filter).await), ["declared"], "{filter}");
    }
}

#[tokio::test]
async fn oamp_133_oamp_131_suite_func_07_08_confidence_can_be_patched_and_the_user_cannot() {
    let vault = Vault::new().await;
    let entry = of("suite-patch", fact("x"));
    vault.created(&entry).await;
    let one = entry["id"].as_str().unwrap();
    let patched = vault.patch(&vault.service, one, &json!({"confidence": 0.95})).await;
    assert_eq!(patched.expect(200)["confidence"], 0.95);
    assert_eq!(vault.patch(&vault.service, one, &json!({"user_id": "x"})).await.status, 400);
    assert_eq!(vault.entry(&vault.service, one).await.expect(200)["user_id"], "suite-patch");
}

#[tokio::test]
async fn oamp_051_oamp_052_suite_func_10_10b_11_12_a_model_is_made_replaced_and_read() {
    let vault = Vault::new().await;
    let put = async |version| {
        vault.post(&vault.service, "/v1/user-model", &model_of("suite-model", version)).await.status
    };
    assert_eq!(put(0).await, 400);
    assert_eq!((put(1).await, put(2).await), (201, 200));
    let read = vault.get(&vault.service, "/v1/user-model/suite-model").await.expect(200);
    assert_eq!((&read["user_id"], &read["model_version"]), (&json!("suite-model"), &json!(2)));
}

#[tokio::test]
async fn oamp_170_suite_func_15_an_import_accounts_for_every_entry() {
    let vault = Vault::new().await;
    let user = "suite-import";
    let entries: Vec<Value> =
        (0..3).map(|number| of(user, fact(&format!("import entry {number}")))).collect();
    let sent = store_of(user, &entries);
    let done = vault.post(&vault.service, "/v1/import", &sent).await.expect(201);
    assert_eq!(
        (&done["imported"], &done["skipped"], &done["rejected"], &done["id_mappings"]),
        (&json!(3), &json!(0), &json!(0), &json!({}))
    );
}

#[tokio::test]
async fn oamp_220_oamp_226_suite_func_16_governance_is_advertised() {
    let vault = Vault::new().await;
    let told = vault.get(&vault.service, "/v1/capabilities").await.expect(200);
    let governance = &told["capabilities"]["governance"];
    assert_eq!(governance["supported"], true);
    assert_eq!(governance["extended_provenance_supported"], true);
    assert_eq!(governance["enforcement"]["supported"], true);
}

#[tokio::test]
async fn oamp_360_suite_should_01_create_and_delete_are_in_the_audit() {
    let vault = Vault::new().await;
    let entry = of("suite-deeds", fact("x"));
    vault.created(&entry).await;
    assert_eq!(vault.delete(&vault.service, entry["id"].as_str().unwrap()).await.status, 204);
    let lines = vault.get(&vault.service, "/v1/admin/audit?user_id=suite-deeds").await.expect(200);
    let lines = lines.as_array().unwrap();
    for action in ["create", "delete"] {
        assert!(lines.iter().any(|line| line["action"] == action), "{action}: {lines:?}");
    }
}

#[tokio::test]
async fn oamp_406_suite_should_02_what_was_written_before_a_rotation_stays_readable() {
    if yore_scratch::is_elsewhere("vaults in a database keep their keys") {
        return;
    }
    let vault = Vault::new().await;
    let entry = of("suite-rotate", fact("before the rotation"));
    vault.created(&entry).await;
    let path = "/v1/admin/keys/rotate";
    let rotated = vault.post(&vault.service, path, &Value::Null).await.expect(200);
    assert!(rotated["key_id"].is_string(), "{rotated}");
    let read = vault.entry(&vault.service, entry["id"].as_str().unwrap()).await.expect(200);
    assert_eq!(read["content"], entry["content"]);
    vault.created(&of("suite-rotate", fact("after the rotation"))).await;
}
