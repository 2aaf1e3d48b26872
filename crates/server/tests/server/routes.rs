//! Every protocol has its own routes, and none takes another's.

use crate::support::{Server, exchange};

/// Asks by a method that no path has.
async fn trace(server: &Server, path: &str) -> (u16, String) {
    let head = format!("TRACE {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    exchange(server.http(), head.as_bytes()).await
}

/// The router cannot be built where two crates name one route; here each answers for its own.
#[tokio::test]
async fn omp_110_no_two_crates_claim_one_route() {
    let server = Server::start_with(|layers| layers.set("omp.insecure_loopback", true)).await;
    let own = |answer: &str| answer.contains("\"method_not_allowed\"");
    for prefix in yore_omp::PREFIXES {
        for path in yore_omp::PATHS {
            let path = format!("{prefix}{path}").replace(['{', '}'], "");
            let (status, answer) = trace(&server, &path).await;
            assert!(status == 405 && own(&answer), "{path}: {answer}");
        }
    }
    for path in [
        "/",
        "/health",
        "/metrics",
        "/api/v1/recall",
        "/v1/knowledge",
        "/v1/admin/audit",
        "/ump/recall",
        "/.well-known/ump.json",
        "/memorywire/v0/recall",
        "/memorywire/v0/restore",
        "/mcp",
        "/app",
    ] {
        let (status, answer) = trace(&server, path).await;
        assert!(status >= 400 && !own(&answer), "{path}: {answer}");
    }
    server.end().await;
}

#[tokio::test]
async fn omp_130_in_clear_text_only_what_the_server_does_is_told() {
    let server = Server::start().await;
    let (status, answer) = server.get("/conversations").await;
    assert!(status == 403 && answer.contains("tls_required"), "{answer}");
    let (status, answer) = server.get("/.well-known/omp").await;
    assert!(status == 200 && answer.contains("\"omp_version\":\"2.0\""), "{answer}");
    server.end().await;
}
