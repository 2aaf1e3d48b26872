//! What a platform exported in a form of its own, taken in by a job.

use axum::body::Body;
use axum::http::{Method, Request};
use serde_json::{Value, json};
use yore_domain::grant::Verb;

use crate::support::{Reply, Vault, each};

fn sample(path: &str) -> Vec<u8> {
    let vectors = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/vectors/connectors");
    std::fs::read(std::path::Path::new(vectors).join(path)).unwrap()
}

async fn sent(vault: &Vault, token: &str, path: &str, kind: &str, body: Vec<u8>) -> Reply {
    let request = Request::builder()
        .method(Method::POST)
        .uri(path)
        .header("authorization", format!("Bearer {token}"))
        .header("content-type", kind)
        .body(Body::from(body))
        .unwrap();
    vault.send(request).await
}

async fn ended(vault: &Vault, begun: &Value) -> Value {
    let path = format!("/import/{}", begun["job_id"].as_str().unwrap());
    loop {
        let state = vault.get(&path).await.expect(200);
        if state["status"] == "completed" || state["status"] == "failed" {
            return state;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn omp_123_an_export_of_a_platform_is_taken_in_by_a_job() {
    let vault = Vault::new().await;
    let export = sample(
        "grok/ttl/30d/export_data/5719df8f-0260-42e9-95c6-60a1af0fd829/prod-grok-backend.json",
    );
    let json = "application/json";
    let begun = sent(
        &vault,
        &vault.owner,
        "/import/grok?filename=prod-grok-backend.json",
        json,
        export.clone(),
    )
    .await;
    let place = begun.header("location").to_owned();
    let begun = begun.expect(202);
    assert!(place.ends_with(begun["job_id"].as_str().unwrap()) && place.contains("/import/"));
    let done = ended(&vault, &begun).await;
    assert_eq!(done["status"], "completed", "{done}");
    assert_eq!(done["summary"]["conversations"]["imported"], 1, "{done}");
    let listed = vault.get("/conversations").await.expect(200);
    assert_eq!(each(&listed, "platform"), ["grok"]);
    assert_eq!(std::fs::read_dir(vault.spool()).unwrap().count(), 0, "nothing is left behind");

    // As a form, found out by itself, and once more: nothing changes.
    let mark = "----------------------------mark";
    let mut form = format!(
        "--{mark}\r\ncontent-disposition: form-data; name=\"file\"; \
         filename=\"prod-grok-backend.json\"\r\n\r\n"
    )
    .into_bytes();
    form.extend_from_slice(&export);
    form.extend_from_slice(format!("\r\n--{mark}--\r\n").as_bytes());
    let kind = format!("multipart/form-data; boundary={mark}");
    let begun = sent(&vault, &vault.owner, "/import/auto", &kind, form).await.expect(202);
    let again = ended(&vault, &begun).await;
    assert_eq!(again["summary"]["conversations"]["imported"], 0, "{again}");
    assert_eq!(again["summary"]["conversations"]["skipped"], 1, "{again}");
}

#[tokio::test]
async fn omp_123_what_is_no_export_of_that_platform_is_refused() {
    let vault = Vault::new().await;
    let json = "application/json";
    let owner = vault.owner.clone();
    let unknown = sent(&vault, &owner, "/import/myspace", json, b"[1, 2, 3, 4]".to_vec()).await;
    assert_eq!(unknown.refusal(), (404, "not_found"));
    let export = sample(
        "grok/ttl/30d/export_data/5719df8f-0260-42e9-95c6-60a1af0fd829/prod-grok-backend.json",
    );
    for (path, body) in [
        ("/import/claude", export),
        ("/import/auto", br#"{"nothing": "known to anybody"}"#.to_vec()),
        ("/import/chatgpt", b"PK\x03\x04 not a zip at all".to_vec()),
    ] {
        let begun = sent(&vault, &owner, path, json, body).await.expect(202);
        let state = ended(&vault, &begun).await;
        assert_eq!(state["status"], "failed", "{path}: {state}");
    }
    let listed = vault.get("/conversations").await.expect(200);
    assert_eq!(listed["data"], json!([]), "nothing came in");
    let reader = vault.agent("reader", &[Verb::Read]).await;
    let refused = sent(&vault, &reader, "/import/auto", json, b"[1, 2, 3, 4]".to_vec()).await;
    assert_eq!(refused.refusal(), (403, "forbidden"));
}
