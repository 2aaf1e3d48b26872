//! Capabilities, keys and the audit chain.

use serde_json::{Value, json};
use yore_domain::class::Sensitivity;

use crate::support::{USER, Vault, fact, governed, id, store};

#[tokio::test]
async fn oamp_204_oamp_220_oamp_221_oamp_222_oamp_223_oamp_224_oamp_226_oamp_229_oamp_351_all_is_told()
 {
    let vault = Vault::new().await;
    let said = vault.get("", "/v1/capabilities").await.expect(200);
    assert_eq!(said["oamp_version"], "1.3.0");
    let able = &said["capabilities"];
    for feature in ["streaming", "as_of", "governance"] {
        assert_eq!(able[feature]["supported"], json!(true), "{feature}");
    }
    let members = |value: &Value| {
        let mut names: Vec<String> = value.as_object().unwrap().keys().cloned().collect();
        names.sort();
        names
    };
    assert_eq!(
        members(&able["governance"]),
        [
            "enforcement",
            "extended_provenance_supported",
            "labels_supported",
            "sensitivity_classes",
            "supported",
            "withheld_stub_support",
        ]
    );
    assert_eq!(
        members(&able["governance"]["enforcement"]),
        [
            "existence_hiding",
            "export_full_supported",
            "grant_transport",
            "label_hierarchy",
            "reserved_top_level_labels",
            "spec_version",
            "stream_filtering",
            "supported",
        ]
    );
    assert_eq!(able["governance"]["enforcement"]["supported"], json!(true));
    assert_eq!(members(&able["user_id_format"]), ["description"]);
    assert_eq!(able["id_preservation"], "preserved");
    assert_eq!(able["as_of"]["min_resolution_ms"], 1);
    let health = vault.get("", "/v1/nothing").await;
    assert_eq!(health.status, 404);
}

#[tokio::test]
async fn oamp_009_no_stub_stands_for_what_is_withheld() {
    let vault = Vault::new().await;
    let said = vault.get("", "/v1/capabilities").await.expect(200);
    assert_eq!(said["capabilities"]["governance"]["withheld_stub_support"], json!(false));
    vault.holds(&governed("hidden", "restricted", &["health"])).await;
    let agent = vault.agent("a", &["work"], Sensitivity::Internal).await;
    let listed = vault.get(&agent, "/v1/knowledge?user_id=owner").await.expect(200);
    assert_eq!(listed, json!([]));
}

#[tokio::test]
async fn oamp_406_keys_rotate_and_everything_stays_readable() {
    if yore_scratch::is_elsewhere("vaults in a database keep their keys") {
        return;
    }
    let vault = Vault::new().await;
    let one = vault.holds(&fact("before")).await;
    let rotated = vault.post(&vault.owner, "/v1/admin/keys/rotate", &Value::Null).await.expect(200);
    let key = rotated["key_id"].as_str().unwrap().to_owned();
    assert!(!key.is_empty() && rotated["message"].is_string());
    assert_eq!(vault.entry(&vault.owner, &one).await.expect(200)["content"], "before");
    vault.holds(&fact("after")).await;
    let lines = vault.audit("&action=rotate_key").await;
    assert_eq!(
        (&lines[0]["user_id"], &lines[0]["action"]),
        (&json!("system"), &json!("rotate_key"))
    );
    assert!(lines[0]["detail"].as_str().unwrap().contains(&format!("new_key_id:{key}")));
    let again = vault.post(&vault.owner, "/v1/admin/keys/rotate", &Value::Null).await.expect(200);
    assert_ne!(again["key_id"], key.as_str());
    let agent = vault.agent("a", &["work"], Sensitivity::Restricted).await;
    let reply = vault.post(&agent, "/v1/admin/keys/rotate", &Value::Null).await;
    assert_eq!(reply.refusal(), (403, "FORBIDDEN"));
    let service = vault.post(&vault.service, "/v1/admin/keys/rotate", &Value::Null).await;
    assert!(service.expect(200)["key_id"].is_string());
}

#[tokio::test]
async fn oamp_360_the_audit_speaks_the_protocols_words() {
    let vault = Vault::new().await;
    let owner = &vault.owner;
    let one = vault.holds(&fact("a secret text")).await;
    vault.entry(owner, &one).await.expect(200);
    vault.patch(owner, &one, &json!({"confidence": 0.4})).await.expect(200);
    vault.export(owner).await;
    vault.post(owner, "/v1/import", &store(&[fact("b")])).await.expect(201);
    let (agent, grant) =
        vault.agent_with("scheduler", &["work"], &["work"], Sensitivity::Internal).await;
    vault.delete(owner, &one).await;
    vault.engine.revoke_grant(&vault.owner_call(), grant).await.unwrap();
    let lines = vault.audit("").await;
    let actions: Vec<&str> = lines.iter().map(|line| line["action"].as_str().unwrap()).collect();
    for action in
        ["create", "read", "update", "delete", "export", "import", "grant_issue", "grant_revoke"]
    {
        assert!(actions.contains(&action), "{action}: {actions:?}");
    }
    let times: Vec<i64> = lines.iter().map(|line| line["id"].as_i64().unwrap()).collect();
    assert!(times.is_sorted_by(|a, b| a > b), "the newest first");
    let text = Value::from(lines.clone()).to_string();
    assert!(!text.contains("secret text") && !text.contains(&agent), "neither text nor token");
    let only = vault.audit("&action=delete&limit=5").await;
    assert_eq!(only.len(), 1);
    assert_eq!((&only[0]["entry_id"], &only[0]["user_id"]), (&json!(one), &json!(USER)));
    let issue = lines.iter().find(|line| line["action"] == "grant_issue").unwrap();
    let detail = issue["detail"].as_str().unwrap();
    for word in [&format!("grant:{grant}"), "agent:scheduler", "read:work", "max:internal"] {
        assert!(detail.contains(word), "{word}: {detail}");
    }
    let wrong = vault.get(owner, "/v1/admin/audit?action=peek").await;
    assert_eq!(wrong.refusal(), (400, "VALIDATION_ERROR"));
}

#[tokio::test]
async fn a_service_reads_the_audit_of_one_user_or_of_all() {
    let vault = Vault::new().await;
    for user in ["anna", "ben"] {
        let mut entry = fact("x");
        entry["user_id"] = user.into();
        vault.post(&vault.service, "/v1/knowledge", &entry).await.expect(201);
    }
    let all = vault.get(&vault.service, "/v1/admin/audit?action=create").await.expect(200);
    let users: Vec<&Value> = all.as_array().unwrap().iter().map(|line| &line["user_id"]).collect();
    assert!(users.contains(&&json!("anna")) && users.contains(&&json!("ben")));
    let annas = vault.get(&vault.service, "/v1/admin/audit?action=create&user_id=anna").await;
    assert_eq!(annas.expect(200).as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn oamp_361_oamp_362_a_denial_names_nothing_that_was_denied() {
    let vault = Vault::new().await;
    let hidden = vault.holds(&governed("the diagnosis", "restricted", &["health"])).await;
    let agent = vault.agent("scheduler", &["work"], Sensitivity::Internal).await;
    let missing = id();
    for one in [&hidden, &missing] {
        assert_eq!(vault.entry(&agent, one).await.status, 404);
        assert_eq!(vault.patch(&agent, one, &json!({"confidence": 0.1})).await.status, 404);
        assert_eq!(vault.delete(&agent, one).await.status, 404);
    }
    let denied =
        vault.post(&agent, "/v1/knowledge", &governed("x", "restricted", &["health"])).await;
    assert_eq!(denied.refusal(), (403, "SCOPE_DENIED_WRITE"));
    let reads = vault.audit("&action=scope_denied_read").await;
    let writes = vault.audit("&action=scope_denied_write").await;
    assert_eq!(reads.len(), 2, "hidden and missing leave the same trace");
    assert!(writes.len() >= 5, "{writes:?}");
    for line in reads.iter().chain(&writes) {
        assert_eq!((&line["entry_id"], &line["actor"]), (&Value::Null, &json!("scheduler")));
        let text = line.to_string();
        assert!(!text.contains(&hidden) && !text.contains(&missing) && !text.contains(&agent));
    }
    let reply = vault.get(&agent, "/v1/admin/audit?user_id=owner").await;
    assert_eq!(reply.refusal(), (403, "FORBIDDEN"));
}
