//! The surface itself: where it lies, what it says of itself, and how it refuses.

use axum::body::Body;
use axum::http::{Method, Request};
use serde_json::{Value, json};
use yore_http::{Peer, Way};
use yore_omp::{Options, PATHS, PREFIXES, Profile};

use crate::support::{Vault, talk};

#[tokio::test]
async fn omp_126_unknown_paths_methods_and_bodies_are_refused_in_the_protocols_form() {
    let vault = Vault::new().await;
    assert_eq!(vault.get("/omp/v2/nothing").await.refusal(), (404, "not_found"));
    for prefix in PREFIXES {
        for path in PATHS {
            let reply = vault
                .ask(Method::TRACE, &vault.owner, &format!("{prefix}{path}"), &[], &Value::Null)
                .await;
            assert_eq!(reply.refusal(), (405, "method_not_allowed"), "{prefix}{path}");
        }
    }
    let raw = |kind: &str, body: &str| {
        Request::post("/conversations")
            .header("authorization", format!("Bearer {}", vault.owner))
            .header("content-type", kind)
            .body(Body::from(body.to_owned()))
            .unwrap()
    };
    for body in ["{", "[]", "{\"id\":1,\"id\":2}", "\u{feff}{}"] {
        let reply = vault.send(raw("application/json", body)).await;
        assert_eq!(reply.refusal(), (400, "invalid_request"), "{body}");
    }
    let reply = vault.send(raw("text/plain", "{}")).await;
    assert_eq!(reply.refusal(), (415, "unsupported_media_type"));
    let large = format!("{{\"x\":\"{}\"}}", "a".repeat(17 << 20));
    let reply = vault.send(raw("application/json", &large)).await;
    assert_eq!(reply.refusal(), (413, "payload_too_large"));
    let html = [("accept", "text/html")];
    let reply = vault.ask(Method::GET, &vault.owner, "/conversations", &html, &Value::Null).await;
    assert_eq!(reply.refusal(), (406, "not_acceptable"));
}

#[tokio::test]
async fn omp_127_documents_go_out_under_the_type_that_is_asked_for() {
    let vault = Vault::new().await;
    let path = vault.holds(&talk("Tea", "one", "two")).await;
    let own = "application/vnd.omp.conversation+json";
    assert_eq!(vault.get(&path).await.header("content-type"), "application/json");
    let asked = [("accept", own)];
    let reply = vault.ask(Method::GET, &vault.owner, &path, &asked, &Value::Null).await;
    assert_eq!(reply.header("content-type"), own);
}

#[tokio::test]
async fn omp_132_omp_143_anyone_may_read_what_the_server_does_and_nothing_else() {
    let vault = Vault::new().await;
    for prefix in PREFIXES {
        let path = format!("{prefix}/.well-known/omp");
        let reply = vault.ask(Method::GET, "", &path, &[], &Value::Null).await;
        let document = reply.expect(200);
        assert_eq!(document["omp_version"], "2.0");
        assert_eq!(document["implementation"]["name"], "yore");
        let capabilities = document["capabilities"].as_array().unwrap();
        assert!(capabilities.contains(&json!("search")));
        assert!(document["compliance_profiles"].as_array().unwrap().is_empty());
        assert_eq!(document["conformance_level"], "connected");
        assert!(document["connectors"].as_array().unwrap().contains(&json!("chatgpt")));
    }
    for path in ["/conversations", "/memories", "/search?q=a", "/conversations/x"] {
        let reply = vault.ask(Method::GET, "", path, &[], &Value::Null).await;
        if path == "/conversations/x" {
            assert_eq!(reply.refusal(), (404, "not_found"));
            continue;
        }
        assert_eq!(reply.refusal(), (401, "unauthorized"), "{path}");
        assert!(reply.header("www-authenticate").starts_with("Bearer"));
    }
}

#[tokio::test]
async fn omp_130_clear_text_is_refused_unless_the_operator_wants_it() {
    let asked = |vault: &Vault, way: Way| {
        let mut request = Request::get("/conversations")
            .header("authorization", format!("Bearer {}", vault.owner))
            .body(Body::empty())
            .unwrap();
        request.extensions_mut().insert(Peer { way, address: None });
        request
    };
    let tls_at = Some("https://127.0.0.1:7443".to_owned());
    let vault = Vault::with(Options { tls_at, ..Options::default() }).await;
    let reply = vault.send(asked(&vault, Way::Plain)).await;
    assert_eq!(reply.refusal(), (403, "forbidden"));
    let details = &reply.body["error"]["details"];
    assert_eq!(details, &json!({"reason": "tls_required", "url": "https://127.0.0.1:7443"}));
    for way in [Way::Tls, Way::Socket] {
        vault.send(asked(&vault, way)).await.expect(200);
    }
    let vault = Vault::with(Options { clear_text: true, ..Options::default() }).await;
    vault.send(asked(&vault, Way::Plain)).await.expect(200);
}

#[tokio::test]
async fn omp_179_only_what_runs_is_declared() {
    let of = async |options: Options| {
        let vault = Vault::with(options).await;
        vault.ask(Method::GET, "", "/.well-known/omp", &[], &Value::Null).await.expect(200)
    };
    let profiles = vec![Profile::Hipaa, Profile::Coppa];
    let regions = vec!["eu-central".to_owned()];
    let options = Options { profiles, regions, baa_available: true, ..Options::default() };
    let said = of(options).await;
    // Children are looked after only where nothing is stored before the age gate.
    assert_eq!(said["compliance_profiles"], json!(["hipaa"]));
    assert_eq!(said["data_residency_regions"], json!(["eu-central"]));
    assert_eq!(said["baa_available"], true);
    let said = of(Options { clear_text: true, ..Options::default() }).await;
    assert_eq!(said.get("conformance_level"), None, "clear text meets no level");
}
