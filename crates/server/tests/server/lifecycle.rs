use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use yore_client::api;
use yore_server::{Host, Note};

use crate::support::{Server, answer, config, remember};

#[tokio::test]
async fn requests_under_way_are_answered_before_the_end() {
    let server = Server::start().await;
    let (at, token, data) = (server.http(), server.token.expose().to_owned(), server.data());
    let body = serde_json::to_string(&remember("said at the last moment")).unwrap();
    let (first, rest) = body.split_at(10);
    let mut stream = TcpStream::connect(at).await.unwrap();
    let head = format!(
        "POST /api/v1/remember HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\
         Content-Length: {}\r\n\r\n{first}",
        body.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    tokio::time::sleep(Duration::from_millis(200)).await;

    let (_place, task) = server.ending();
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(TcpStream::connect(at).await.is_err(), "no new connection is taken");
    assert!(!task.is_finished(), "the end waits for what is under way");
    stream.write_all(rest.as_bytes()).await.unwrap();
    let (status, text) = answer(&mut stream).await;
    assert_eq!(status, 200, "{text}");
    task.await.unwrap().unwrap();
    assert!(Note::read(&data).is_none(), "the note goes with the server");
}

#[tokio::test]
async fn a_request_that_hangs_does_not_hold_up_the_end() {
    let server = Server::start_with(|layers| layers.set("limits.drain_seconds", 1)).await;
    let mut stream = TcpStream::connect(server.http()).await.unwrap();
    let head = "POST /api/v1/recall HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{";
    stream.write_all(head.as_bytes()).await.unwrap();
    tokio::time::sleep(Duration::from_millis(200)).await;
    tokio::time::timeout(Duration::from_secs(10), server.end()).await.expect("it ends");
}

#[tokio::test]
async fn a_second_server_is_told_who_has_the_directory() {
    let server = Server::start().await;
    let error = Host::open(config(&server.place)).await.unwrap_err().to_string();
    let pid = std::process::id();
    assert!(error.contains("another process uses the data directory"), "{error}");
    assert!(error.contains(&format!("(pid {pid})")), "{error}");
    server.client().call::<api::Remember>(remember("undisturbed")).await.unwrap();
    let place = server.end().await;
    Host::open(config(&place)).await.expect("the directory is free again");
}

#[tokio::test]
async fn the_note_says_where_the_server_is() {
    let server = Server::start().await;
    let text = std::fs::read_to_string(server.data().join("run/server.json")).unwrap();
    let note: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(note["pid"], std::process::id());
    assert_eq!(note["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(note["http"], format!("http://{}", server.http()));
    assert_ne!(server.http().port(), 0);
    assert!(note["https"].is_string());
    let ca = std::fs::read_to_string(note["ca"].as_str().unwrap()).unwrap();
    assert!(ca.contains("BEGIN CERTIFICATE") && !ca.contains("PRIVATE"));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = |path: &str| server.data().join(path).metadata().unwrap().permissions().mode();
        for (path, expected) in [
            ("run/yore.sock", 0o600),
            ("run/server.json", 0o600),
            ("tls/ca.key", 0o600),
            ("tls/server.key", 0o600),
            ("run", 0o700),
            ("tls", 0o700),
        ] {
            assert_eq!(mode(path) & 0o777, expected, "{path}");
        }
    }
    server.end().await;
}

#[tokio::test]
async fn health_readiness_metrics_and_the_landing_page() {
    let server = Server::start().await;
    let (status, front) = server.get("/").await;
    assert_eq!((status, front.contains("location: /app\r\n")), (303, true), "{front}");
    assert!(server.get("/app").await.1.contains("location: /app/login\r\n"));
    assert_eq!(server.get("/openapi.json").await.0, 200);
    assert_eq!(server.get("/health").await.0, 200);
    assert_eq!(server.get("/ready").await.0, 200);
    server.client().call::<api::Remember>(remember("counted but not told")).await.unwrap();
    server.post("recall", r#"{"query":"counted","limit":1}"#).await;
    server.raw("recall", &[], r#"{"query":"counted","limit":1}"#).await;
    let (status, text) = server.get("/metrics").await;
    assert_eq!(status, 200);
    for line in [
        r#"yore_requests_total{operation="remember",status="200"} 1"#,
        r#"yore_requests_total{operation="recall",status="200"} 1"#,
        r#"yore_requests_total{operation="recall",status="401"} 1"#,
        r#"yore_request_seconds_count{operation="recall"} 2"#,
        "yore_connections",
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }
    assert!(!text.contains("counted"), "{text}");
    server.end().await;

    let closed = Server::start_with(|layers| layers.set("metrics", "off")).await;
    assert_eq!(closed.get("/metrics").await.0, 404);
    closed.end().await;
}

#[tokio::test]
async fn every_answer_carries_the_id_of_its_request() {
    let server = Server::start().await;
    let (_, text) = server.raw("recall", &[("X-Request-Id", "abc-1")], "{}").await;
    assert!(text.to_ascii_lowercase().contains("x-request-id: abc-1"), "{text}");
    let (_, text) = server.raw("recall", &[("X-Request-Id", "a b\u{7f}")], "{}").await;
    assert!(!text.contains("a b"), "{text}");
    server.end().await;
}
