//! Backup and restore: archives out and in, as jobs.

use std::time::Duration;

use axum::body::Body;
use axum::http::{Method, Request};
use serde_json::{Value, json};
use yore_domain::grant::Verb;

use crate::support::{Reply, Vault, each, record, said, talk};

/// Waits until a job ended and returns its state.
async fn ended(vault: &Vault, path: &str) -> Value {
    loop {
        let state = vault.get(path).await.expect(200);
        if ["completed", "failed"].contains(&state["status"].as_str().unwrap()) {
            return state;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Makes a backup and returns its state and its bytes.
async fn backup(vault: &Vault, asked: &Value) -> (Value, Vec<u8>) {
    let begun = vault.post("/backup", asked).await;
    let path = begun.header("location").to_owned();
    assert_eq!(begun.expect(202)["status"], "queued");
    let state = ended(vault, &path).await;
    assert_eq!(state["status"], "completed", "{state}");
    let archive = vault.get(state["download_url"].as_str().unwrap()).await;
    assert_eq!(archive.header("content-type"), "application/vnd.omp.archive+zip");
    (state, archive.bytes)
}

async fn send(vault: &Vault, query: &str, kind: &str, bytes: Vec<u8>) -> Reply {
    let request = Request::post(format!("/restore?{query}"))
        .header("authorization", format!("Bearer {}", vault.owner))
        .header("content-type", kind)
        .body(Body::from(bytes))
        .unwrap();
    vault.send(request).await
}

/// Restores an archive and returns what the job says in the end.
async fn restore(vault: &Vault, query: &str, bytes: &[u8]) -> Value {
    let begun = send(vault, query, "application/zip", bytes.to_vec()).await;
    let path = begun.header("location").to_owned();
    begun.expect(202);
    ended(vault, &path).await
}

async fn filled() -> (Vault, Value) {
    let vault = Vault::new().await;
    let mut tea = talk("Tea", "How long?", "Three minutes");
    tea["messages"][0]["attachments"] =
        json!([{"filename": "tea.txt", "media_type": "text/plain", "data": "Z3JlZW4gdGVh"}]);
    tea["extensions"] =
        json!({"chatgpt_branches": [said("assistant", "Four", "2026-03-15T09:30:04Z")]});
    vault.holds(&tea).await;
    let mut bike = talk("Bike", "It squeaks", "Oil it");
    bike["platform"] = "claude".into();
    vault.holds(&bike).await;
    vault.post("/memories", &record("preference", "Likes green tea")).await.expect(201);
    let mut old = record("fact", "Lives in Kyiv");
    old["active"] = false.into();
    vault.post("/memories", &old).await.expect(201);
    (vault, tea)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn omp_090_omp_091_omp_117_omp_118_omp_120_a_vault_comes_back_from_its_archive() {
    let (vault, _) = filled().await;
    let (state, archive) = backup(&vault, &json!({})).await;
    assert_eq!(state["progress"], 100);
    assert!(state["checksum"].as_str().unwrap().starts_with("sha256:"));
    assert_eq!(state["counts"]["conversations"], 2);
    assert_eq!(state["counts"]["messages"], 4);
    assert_eq!(state["counts"]["memories"], 2, "what no longer holds is there, too");
    assert_eq!(state["counts"]["attachments"], 1);
    assert_eq!(archive[..2], *b"PK");
    let empty = Vault::new().await;
    let done = restore(&empty, "", &archive).await;
    assert_eq!(done["status"], "completed", "{done}");
    let summary = &done["summary"];
    assert_eq!(summary["conversations"]["imported"], 2);
    assert_eq!(summary["messages"]["imported"], 5);
    assert_eq!(summary["memories"]["imported"], 2);
    assert_eq!(summary["attachments"]["imported"], 1);
    assert_eq!(summary["errors"], json!([]));
    // The same content, the same bytes; and once more changes nothing.
    assert_eq!(backup(&empty, &json!({})).await.1, archive);
    let again = restore(&empty, "", &archive).await;
    let summary = &again["summary"];
    for kind in ["conversations", "messages", "memories"] {
        assert_eq!(summary[kind]["imported"], 0, "{summary}");
        assert_eq!(summary[kind].get("conflicts"), None, "{summary}");
    }
    assert_eq!(summary["messages"]["skipped"], 5);
    assert_eq!(backup(&empty, &json!({})).await.1, archive);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn omp_092_a_conversation_that_grew_gains_only_what_is_missing() {
    let (vault, tea) = filled().await;
    let (_, archive) = backup(&vault, &json!({})).await;
    let other = Vault::new().await;
    let mut short = tea.clone();
    short["title"] = "Its own title".into();
    short["extensions"] = json!({});
    short["messages"].as_array_mut().unwrap().truncate(1);
    short["messages"][0]["content"] = "said otherwise".into();
    let path = other.holds(&short).await;
    let dry = restore(&other, "dry_run=true", &archive).await;
    assert_eq!(other.get(&path).await.expect(200)["message_count"], 1, "nothing was written");
    let done = restore(&other, "", &archive).await;
    for job in [&dry, &done] {
        let summary = &job["summary"];
        assert_eq!(summary["conversations"], json!({"imported": 1, "merged": 1, "skipped": 0}));
        assert_eq!(summary["messages"]["conflicts"], 1, "{summary}");
        assert_eq!(summary["messages"]["imported"], 4);
    }
    let read = other.get(&path).await.expect(200);
    assert_eq!(read["title"], "Its own title");
    assert_eq!(read["messages"][0]["content"], "said otherwise");
    assert_eq!(read["message_count"], 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn omp_091_a_restore_may_take_a_part_and_a_backup_may_hold_one() {
    let (vault, _) = filled().await;
    let (_, archive) = backup(&vault, &json!({})).await;
    let other = Vault::new().await;
    let done = restore(&other, "platform=claude", &archive).await;
    assert_eq!(done["summary"]["conversations"]["imported"], 1);
    assert_eq!(each(&other.get("/conversations").await.expect(200), "title"), ["Bike"]);
    let (state, _) = backup(&vault, &json!({"filter": {"platform": "claude"}})).await;
    assert_eq!(state["counts"]["conversations"], 1);
    for wrong in [
        json!({"filter": {"colour": "red"}}),
        json!({"filter": 7}),
        json!({"destination": "s3://bucket"}),
        json!({"password": ""}),
    ] {
        let reply = vault.post("/backup", &wrong).await;
        assert_eq!(reply.refusal(), (400, "invalid_request"), "{wrong}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn omp_123_no_archive_brings_back_what_was_deleted_here() {
    let (vault, tea) = filled().await;
    let (_, archive) = backup(&vault, &json!({})).await;
    let bike = vault.get("/conversations?platform=claude").await.expect(200);
    let bike = format!("/conversations/{}", each(&bike, "id")[0]);
    vault.delete(&bike).await.expect(200);
    let path = format!("/conversations/{}", tea["id"].as_str().unwrap());
    let message = format!("{path}/messages/{}", tea["messages"][1]["id"].as_str().unwrap());
    vault.delete(&message).await.expect(200);
    let memories = vault.get("/memories?active=true").await.expect(200);
    vault.delete(&format!("/memories/{}", each(&memories, "id")[0])).await.expect(200);
    let done = restore(&vault, "", &archive).await;
    assert_eq!(done["summary"]["conversations"]["deleted"], 1, "{done}");
    assert_eq!(done["summary"]["messages"]["deleted"], 3);
    assert_eq!(done["summary"]["messages"]["imported"], 0);
    assert_eq!(done["summary"]["memories"]["imported"], 0);
    assert_eq!(vault.get(&bike).await.status, 404);
    assert_eq!(vault.get(&message).await.status, 404);
    assert_eq!(vault.get("/memories?active=true").await.expect(200)["data"], json!([]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn omp_085_omp_119_damaged_and_foreign_archives_change_nothing() {
    let (vault, _) = filled().await;
    let (_, archive) = backup(&vault, &json!({})).await;
    let empty = Vault::new().await;
    let mut damaged = archive.clone();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 0xff;
    let done = restore(&empty, "", &damaged).await;
    assert_eq!(done["status"], "failed", "{done}");
    assert!(done["error"].is_string());
    for (kind, bytes, refusal) in [
        ("application/zip", b"not an archive".to_vec(), (400, "invalid_request")),
        ("application/zip", Vec::new(), (400, "invalid_request")),
        ("text/html", archive.clone(), (415, "unsupported_media_type")),
        ("multipart/form-data; boundary=x", archive.clone(), (400, "invalid_request")),
    ] {
        assert_eq!(send(&empty, "", kind, bytes).await.refusal(), refusal, "{kind}");
    }
    assert_eq!(empty.get("/conversations").await.expect(200)["data"], json!([]));
    assert_eq!(empty.get("/memories").await.expect(200)["data"], json!([]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn omp_119_a_form_brings_an_archive_under_a_password() {
    let (vault, _) = filled().await;
    let (_, sealed) = backup(&vault, &json!({"password": "correct horse"})).await;
    assert_eq!(sealed[..8], *b"Salted__");
    let form = |password: Option<&str>| {
        let head =
            |name: &str| format!("--b\r\nContent-Disposition: form-data; name={name}\r\n\r\n");
        let mut form = Vec::new();
        if let Some(word) = password {
            form.extend(format!("{}{word}\r\n", head("\"password\"")).bytes());
        }
        form.extend(head("\"archive\"; filename=\"a\"").bytes());
        form.extend(&sealed);
        form.extend(b"\r\n--b--\r\n");
        form
    };
    let kind = "multipart/form-data; boundary=b";
    let empty = Vault::new().await;
    let without = send(&empty, "", kind, form(None)).await;
    assert_eq!(without.refusal(), (400, "invalid_request"));
    let wrong = send(&empty, "", kind, form(Some("wrong"))).await;
    let state = ended(&empty, wrong.header("location")).await;
    assert_eq!(state["status"], "failed");
    let right = send(&empty, "", kind, form(Some("correct horse"))).await;
    let state = ended(&empty, right.header("location")).await;
    assert_eq!(state["summary"]["conversations"]["imported"], 2, "{state}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn omp_123_omp_131_an_archive_waits_encrypted_and_is_fetched_in_parts_by_its_owner() {
    let (vault, _) = filled().await;
    let (state, archive) = backup(&vault, &json!({})).await;
    let url = state["download_url"].as_str().unwrap();
    let range = [("range", "bytes=10-19")];
    let part = vault.ask(Method::GET, &vault.owner, url, &range, &Value::Null).await;
    assert_eq!((part.status, &part.bytes[..]), (206, &archive[10..20]));
    assert_eq!(part.header("content-range"), format!("bytes 10-19/{}", archive.len()));
    let beyond = [("range", "bytes=99999999-")];
    let none = vault.ask(Method::GET, &vault.owner, url, &beyond, &Value::Null).await;
    assert_eq!(none.refusal(), (416, "range_not_satisfiable"));
    for file in std::fs::read_dir(vault.spool()).unwrap() {
        let bytes = std::fs::read(file.unwrap().path()).unwrap();
        assert_eq!(bytes[..8], *b"Salted__", "nothing waits in the clear");
    }
    let other = vault.agent("other", &[Verb::Read, Verb::Export]).await;
    let theirs = vault.ask(Method::GET, &other, url, &[], &Value::Null).await;
    assert_eq!(theirs.refusal(), (404, "not_found"));
    let reader = vault.agent("reader", &[Verb::Read]).await;
    let refused = vault.ask(Method::POST, &reader, "/backup", &[], &json!({})).await;
    assert_eq!(refused.refusal(), (403, "forbidden"));
    assert_eq!(refused.body["error"]["details"]["required_scope"], "omp:backup");
    assert_eq!(vault.get("/backup/none").await.refusal(), (404, "not_found"));
}
