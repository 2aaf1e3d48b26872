//! Administration: delegates with scopes, holds, the audit chain, keys.

use axum::http::Method;
use serde_json::{Value, json};
use yore_domain::grant::Verb;

use crate::support::{Vault, record, said, talk};

#[tokio::test]
async fn omp_151_each_of_the_five_scopes_opens_its_own_doors_and_no_others() {
    let vault = Vault::new().await;
    for scope in ["omp:read", "omp:write", "omp:delete", "omp:backup", "omp:admin"] {
        let path = vault.holds(&talk(scope, "one", "two")).await;
        let asked = json!({"agent": "delegate", "scopes": [scope]});
        let given = vault.post("/admin/grants", &asked).await.expect(201);
        assert_eq!(given["scopes"], json!([scope]));
        let token = given["token"].as_str().unwrap();
        let message = said("user", "three", "2026-03-15T10:00:00Z");
        for (method, path, body, needed) in [
            (Method::GET, path.as_str(), Value::Null, "omp:read"),
            (Method::GET, "/search?q=one", Value::Null, "omp:read"),
            (Method::POST, "/memories", record("fact", scope), "omp:write"),
            (Method::POST, "/conversations", talk("x", "a", "b"), "omp:write"),
            (Method::POST, "/backup", json!({}), "omp:backup"),
            (Method::GET, "/admin/audit", Value::Null, "omp:admin"),
            (Method::DELETE, path.as_str(), Value::Null, "omp:delete"),
        ] {
            let reply = vault.ask(method.clone(), token, path, &[], &body).await;
            if needed == scope {
                assert!(reply.status < 300, "{scope}: {method} {path}: {}", reply.body);
                continue;
            }
            assert_eq!(reply.refusal(), (403, "forbidden"), "{scope}: {method} {path}");
            let lacking = &reply.body["error"]["details"]["required_scope"];
            assert_eq!(lacking, needed, "{scope}: {method} {path}");
        }
        let append =
            vault.ask(Method::POST, token, &format!("{path}/messages"), &[], &message).await;
        assert_ne!(append.status, 200, "{scope}: what is appended to must be seen, too");
    }
}

#[tokio::test]
async fn omp_151_a_delegate_is_revoked_from_the_next_request_on() {
    let vault = Vault::new().await;
    let path = vault.holds(&talk("Tea", "one", "two")).await;
    let asked = json!({"agent": "delegate", "scopes": ["omp:read"],
        "labels": ["behaviour"], "expires_at": "2028-01-01T00:00:00Z"});
    let made = vault.post("/admin/grants", &asked).await;
    let place = made.header("location").to_owned();
    let given = made.expect(201);
    let token = given["token"].as_str().unwrap();
    assert_eq!(given["expires_at"], "2028-01-01T00:00:00Z");
    vault.ask(Method::GET, token, &path, &[], &Value::Null).await.expect(200);
    let listed = vault.get("/admin/grants").await.expect(200);
    assert_eq!(listed["data"][0]["id"], given["id"]);
    assert!(listed["data"][0].get("token").is_none(), "a token is told once");
    vault.delete(&place).await.expect(200);
    let after = vault.ask(Method::GET, token, &path, &[], &Value::Null).await;
    assert_eq!(after.refusal(), (401, "unauthorized"));
    for wrong in [
        json!({"scopes": ["omp:read"]}),
        json!({"agent": "x"}),
        json!({"agent": "x", "scopes": []}),
        json!({"agent": "x", "scopes": ["omp:everything"]}),
        json!({"agent": "x", "scopes": ["omp:read"], "expires_at": "2020-01-01T00:00:00Z"}),
        json!({"agent": "x", "scopes": ["omp:read"], "max_sensitivity": "huge"}),
    ] {
        let reply = vault.post("/admin/grants", &wrong).await;
        assert_eq!(reply.refusal(), (400, "invalid_request"), "{wrong}");
    }
}

#[tokio::test]
async fn omp_178_holds_are_set_and_lifted_by_whoever_may_administer() {
    let vault = Vault::new().await;
    let path = vault.holds(&talk("Tea", "one", "two")).await;
    let id = path.rsplit('/').next().unwrap().to_owned();
    let memory = record("fact", "one");
    vault.post("/memories", &memory).await.expect(201);
    let memory_path = format!("/memories/{}", memory["id"].as_str().unwrap());
    let writer = vault.agent("writer", &[Verb::Read, Verb::Write, Verb::Erase]).await;
    let hold = json!({"conversation_id": id});
    let refused = vault.ask(Method::POST, &writer, "/admin/holds", &[], &hold).await;
    assert_eq!(refused.refusal(), (403, "forbidden"));
    assert_eq!(refused.body["error"]["details"]["required_scope"], "omp:admin");
    vault.post("/admin/holds", &hold).await.expect(200);
    vault.post("/admin/holds", &json!({"memory_id": memory["id"]})).await.expect(200);
    for place in [&path, &memory_path] {
        let reply = vault.delete(place).await;
        assert_eq!(reply.refusal(), (403, "forbidden"));
        assert_eq!(reply.body["error"]["details"]["reason"], "regulatory_hold");
    }
    let lifted = json!({"conversation_id": id, "hold": false});
    vault.post("/admin/holds", &lifted).await.expect(200);
    vault.delete(&path).await.expect(200);
    for wrong in [json!({}), json!({"conversation_id": id, "memory_id": id})] {
        assert_eq!(vault.post("/admin/holds", &wrong).await.status, 400, "{wrong}");
    }
}

#[tokio::test]
async fn omp_178_a_deletion_of_many_waits_for_the_end_of_a_hold() {
    let vault = Vault::new().await;
    let (held, free) = (
        vault.holds(&talk("Held", "one", "two")).await,
        vault.holds(&talk("Free", "one", "two")).await,
    );
    let memory = record("fact", "one");
    vault.post("/memories", &memory).await.expect(201);
    let id = held.rsplit('/').next().unwrap();
    let memory_path = format!("/memories/{}", memory["id"].as_str().unwrap());
    let holds = [json!({"conversation_id": id}), json!({"memory_id": memory["id"]})];
    for hold in &holds {
        vault.post("/admin/holds", hold).await.expect(200);
    }
    let everything = json!({"vault": true});
    let preview = vault.post("/deletions/preview", &everything).await.expect(200);
    let asked = json!({"vault": true, "token": preview["token"]});
    let done = vault.post("/deletions", &asked).await.expect(200);
    assert_eq!(done["held"].as_array().unwrap().len(), 2, "{done}");
    assert_eq!(vault.get(&free).await.status, 404);
    for place in [held.as_str(), memory_path.as_str()] {
        vault.get(place).await.expect(200);
    }
    for mut hold in holds {
        hold["hold"] = false.into();
        vault.post("/admin/holds", &hold).await.expect(200);
    }
    for place in [held.as_str(), memory_path.as_str()] {
        assert_eq!(vault.get(place).await.status, 404, "{place}");
    }
}

#[tokio::test]
async fn omp_153_reads_writes_and_failures_are_in_the_chain_and_outlive_their_target() {
    let vault = Vault::new().await;
    let path = vault.holds(&talk("Tea", "a very private word", "two")).await;
    let id = path.rsplit('/').next().unwrap().to_owned();
    vault.get(&path).await.expect(200);
    let reader = vault.agent("reader", &[Verb::Read]).await;
    vault.ask(Method::DELETE, &reader, &path, &[], &Value::Null).await;
    vault.delete(&path).await.expect(200);
    let chain = vault.get("/admin/audit?limit=200").await.expect(200);
    let lines = chain["data"].as_array().unwrap();
    let with = |action: &str, success: bool| {
        lines.iter().find(|line| line["action"] == action && line["success"] == success)
    };
    assert_eq!(with("delete", true).unwrap()["target"], id.as_str());
    let failed = with("delete", false).unwrap();
    assert_eq!(failed["who"]["role"], "delegate");
    assert_eq!(failed["who"]["agent"], "reader");
    assert!(with("write", true).is_some() && with("read", true).is_some());
    for pair in lines.windows(2) {
        assert_eq!(pair[0]["prev_hash"], pair[1]["hash"], "newest first, each bound to the next");
    }
    assert!(!chain.to_string().contains("private"));
    let first = vault.get("/admin/audit?limit=2").await.expect(200);
    let cursor = first["next_cursor"].as_str().unwrap();
    let second = vault.get(&format!("/admin/audit?limit=2&cursor={cursor}")).await.expect(200);
    let last = first["data"][1]["id"].as_u64().unwrap();
    assert_eq!(second["data"][0]["id"], last - 1);
}

#[tokio::test]
async fn omp_163_keys_are_rotated_and_everything_still_opens() {
    if yore_scratch::is_elsewhere("vaults in a database keep their keys") {
        return;
    }
    let vault = Vault::new().await;
    let path = vault.holds(&talk("Tea", "one", "two")).await;
    let done = vault.post("/admin/keys/rotate", &Value::Null).await.expect(200);
    assert_eq!(done["rotated"], true);
    vault.get(&path).await.expect(200);
    let reader = vault.agent("reader", &[Verb::Read]).await;
    let refused = vault.ask(Method::POST, &reader, "/admin/keys/rotate", &[], &Value::Null).await;
    assert_eq!(refused.refusal(), (403, "forbidden"));
}
