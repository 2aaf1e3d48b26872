use yore_client::{Client, api, input};
use yore_domain::memory::Draft;
use yore_engine::Secret;

use crate::support::{Server, exchange};

const RECALL: &str = r#"{"query":"x","limit":1}"#;

#[tokio::test]
async fn without_a_good_token_everything_is_401() {
    let server = Server::start().await;
    let good = server.token.expose();
    let flipped =
        format!("{}{}", &good[..good.len() - 1], if good.ends_with('0') { '1' } else { '0' });
    let cases: [&[(&str, &str)]; 5] = [
        &[],
        &[("Authorization", "Bearer nonsense")],
        &[("Authorization", "Basic b3duZXI6")],
        &[("Authorization", &format!("Bearer {flipped}"))],
        &[("Authorization", &format!("Bearer {good}")), ("Authorization", "Bearer x")],
    ];
    for headers in cases {
        for operation in ["recall", "audit.query", "census"] {
            let body = if operation == "recall" { RECALL } else { r#"{"limit":1}"# };
            let body = if operation == "census" { "{}" } else { body };
            let (status, text) = server.raw(operation, headers, body).await;
            assert_eq!(status, 401, "{operation} {headers:?} {text}");
            assert!(text.to_ascii_lowercase().contains("www-authenticate: bearer"), "{text}");
        }
    }
    server.end().await;
}

#[tokio::test]
async fn every_operation_of_the_list_is_served_and_guarded() {
    let server = Server::start().await;
    for name in api::NAMES.iter().chain([&api::WATCH]) {
        let (status, text) = server.raw(name, &[], "{}").await;
        assert!(matches!(status, 400 | 401), "{name} {text}");
    }
    server.end().await;
}

#[tokio::test]
async fn foreign_names_and_origins_are_403_on_every_path() {
    let server = Server::start().await;
    let token = format!("Bearer {}", server.token.expose());
    let auth = ("Authorization", token.as_str());
    let evil = [("Host", "evil.example"), auth];
    assert_eq!(server.raw("recall", &evil, RECALL).await.0, 403);
    let origin = [("Origin", "https://evil.example"), auth];
    assert_eq!(server.raw("recall", &origin, RECALL).await.0, 403);
    for path in ["/", "/health", "/metrics", "/nowhere"] {
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n");
        assert_eq!(exchange(server.http(), request.as_bytes()).await.0, 403, "{path}");
    }
    let own = format!("http://{}", server.http());
    let host = server.http().to_string();
    let same = [("Host", host.as_str()), ("Origin", own.as_str()), auth];
    assert_eq!(server.raw("recall", &same, RECALL).await.0, 200);
    server.end().await;
}

#[tokio::test]
async fn too_large_is_413_before_it_is_read_or_parsed() {
    let server = Server::start_with(|layers| layers.set("limits.body", 4096)).await;
    // It says how long it will be and sends nothing: the answer comes all the same.
    let head = "POST /api/v1/recall HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
                Content-Length: 1000000\r\n\r\n";
    let (status, text) = exchange(server.http(), head.as_bytes()).await;
    assert_eq!(status, 413, "{text}");
    assert!(text.contains(r#""code":"too_large""#), "{text}");
    // It does not say how long it will be, and is not JSON either.
    let piece = format!("{:x}\r\n{}\r\n", 2000, "x".repeat(2000));
    let chunked = format!(
        "POST /api/v1/recall HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
         Transfer-Encoding: chunked\r\n\r\n{piece}{piece}{piece}0\r\n\r\n"
    );
    assert_eq!(exchange(server.http(), chunked.as_bytes()).await.0, 413);
    // What brings much may be larger.
    let body = format!(r#"{{"items":[]{}}}"#, " ".repeat(5000));
    assert_eq!(server.post("import", &body).await.0, 200);
    // But not from a stranger.
    let head = "POST /api/v1/import HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
                Authorization: Bearer nobody\r\nContent-Length: 5000\r\n\r\n";
    assert_eq!(exchange(server.http(), head.as_bytes()).await.0, 413);
    server.end().await;
}

#[tokio::test]
async fn bodies_that_are_not_what_they_should_be_are_400() {
    let server = Server::start().await;
    let deep =
        format!(r#"{{"query":"x","limit":1,"filter":{}1{}}}"#, "[".repeat(40), "]".repeat(40));
    let deeper = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let cases = [
        deep.as_str(),
        deeper.as_str(),
        "{",
        "nonsense",
        r#"{"query":"x","query":"y","limit":1}"#,
        r#"{"limit":1}"#,
        r#"{"query":7,"limit":1}"#,
        "\u{feff}{}",
    ];
    for body in cases {
        let (status, text) = server.post("recall", body).await;
        assert_eq!(status, 400, "{} {text}", &body[..body.len().min(60)]);
        assert!(text.contains(r#""code":"invalid""#), "{text}");
    }
    let (status, text) = server.post("remember", r#"{"draft":{},"wsh":{}}"#).await;
    assert_eq!(status, 400, "{text}");
    let (status, text) = server.post("get", r#"{"reference":{"memory":"my secret"}}"#).await;
    assert_eq!(status, 400, "{text}");
    assert!(!text.contains("my secret"), "{text}");
    let token = format!("Bearer {}", server.token.expose());
    let headers = [("Authorization", token.as_str()), ("Content-Type", "text/plain")];
    assert_eq!(server.raw("recall", &headers, RECALL).await.0, 400);
    server.end().await;
}

#[tokio::test]
async fn texts_tags_and_times_beyond_their_limits_are_named() {
    let server = Server::start().await;
    let draft = |text: &str, member: &str, value: serde_json::Value| {
        let mut draft = serde_json::to_value(Draft::text(text)).unwrap();
        draft[member] = value;
        serde_json::json!({ "draft": draft }).to_string()
    };
    let plain = |text: &str| draft(text, "tags", serde_json::json!([]));
    let created = |micros: i64| serde_json::json!({ "created": micros });
    let (status, answer) = server.post("remember", &plain("tea, no sugar")).await;
    assert_eq!(status, 200, "{answer}");
    let cases = [
        (plain(""), 400, "text"),
        (plain(&"x".repeat((1 << 20) + 1)), 413, "text"),
        (draft("x", "tags", vec!["t"; 200_000].into()), 413, "tags"),
        (draft("x", "time", created(i64::MAX)), 400, "years 0 to 9999"),
        (draft("x", "time", created(-62_167_219_200_000_001)), 400, "years 0 to 9999"),
        (draft("x", "governance", serde_json::json!({ "labels": [""] })), 400, "label"),
    ];
    // A text of 10 MB and a million tags are refused by what they say of their length.
    for body in [plain(&"x".repeat(10_000_000)), draft("x", "tags", vec!["t"; 1_000_000].into())] {
        let length = body.len();
        let head = format!(
            "POST /api/v1/remember HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
             Content-Length: {length}\r\n\r\n"
        );
        let (status, answer) = exchange(server.http(), head.as_bytes()).await;
        assert!(status == 413 && answer.contains("the request is larger"), "{answer}");
    }
    for (body, expected, word) in cases {
        let (status, answer) = server.post("remember", &body).await;
        assert_eq!(status, expected, "{}… {answer}", &body[..body.len().min(200)]);
        assert!(answer.contains(word), "no {word:?} in {answer}");
    }
    for micros in [-62_167_219_200_000_000, 253_402_300_799_999_999] {
        let body = draft(&format!("said at {micros}"), "time", created(micros));
        assert_eq!(server.post("remember", &body).await.0, 200);
    }
    let count = input::Count { filter: Default::default() };
    let count = server.client().call::<api::Count>(count).await.unwrap();
    assert_eq!(count, 3, "nothing else was stored");
    server.end().await;
}

#[tokio::test]
async fn what_is_not_there_is_404_and_other_methods_405() {
    let server = Server::start().await;
    let cases = [("/api/v1/nothing", 404), ("/api/v1/recall", 405), ("/api/v2/recall", 404)];
    for (path, expected) in cases {
        let (status, text) = server.get(path).await;
        assert_eq!(status, expected, "{path} {text}");
        assert!(text.contains(r#"{"error":{"#), "{text}");
    }
    let missing = yore_domain::MemoryId::random();
    let asked = input::Get { reference: api::Reference::Memory(missing) };
    let error = server.client().call::<api::Get>(asked).await.unwrap_err();
    assert_eq!(error.refusal().unwrap().status, 404);
    server.end().await;
}

#[tokio::test]
async fn a_request_that_never_ends_is_cut_off() {
    let server = Server::start_with(|layers| {
        layers.set("limits.request_seconds", 1).set("limits.head_seconds", 1)
    })
    .await;
    let half = "POST /api/v1/recall HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
                Content-Length: 100\r\n\r\n{";
    assert_eq!(exchange(server.http(), half.as_bytes()).await.0, 503);
    let mut silent = tokio::net::TcpStream::connect(server.http()).await.unwrap();
    let mut answer = Vec::new();
    let read = tokio::io::AsyncReadExt::read_to_end(&mut silent, &mut answer);
    let read = tokio::time::timeout(std::time::Duration::from_secs(10), read).await;
    read.expect("a connection without a request is closed").ok();
    server.end().await;
}

#[tokio::test]
async fn oamp_065_what_is_too_large_or_too_slow_is_refused_in_the_protocols_own_form() {
    let server = Server::start_with(|layers| {
        let layers = layers.set("limits.request_seconds", 1).set("limits.heavy_seconds", 1);
        layers.set("limits.head_seconds", 1)
    })
    .await;
    let head = |path: &str, length: usize| {
        format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
             Authorization: Bearer {}\r\nContent-Length: {length}\r\n\r\n",
            server.token.expose()
        )
    };
    for path in ["/v1/knowledge", "/v1/import"] {
        // It says that 100 MB follow, and sends nothing.
        let (status, text) = exchange(server.http(), head(path, 100 << 20).as_bytes()).await;
        assert_eq!(status, 413, "{path} {text}");
        assert!(text.contains(r#""code":"VALIDATION_ERROR""#), "{text}");
        // It begins, and goes on no more.
        let half = head(path, 100) + r#"{"oamp_version":"1.0.0","#;
        let begun = std::time::Instant::now();
        let (status, text) = exchange(server.http(), half.as_bytes()).await;
        assert_eq!(status, 408, "{path} {text}");
        assert!(text.contains(r#""code":"REQUEST_TIMEOUT""#), "{text}");
        assert!(begun.elapsed() < std::time::Duration::from_secs(10), "{path}");
    }
    // Of a head that never ends no path is known, so there is nothing to answer.
    let mut slow = tokio::net::TcpStream::connect(server.http()).await.unwrap();
    let line = b"POST /v1/knowledge HTTP/1.1\r\nHost: local";
    tokio::io::AsyncWriteExt::write_all(&mut slow, line).await.unwrap();
    let mut answer = Vec::new();
    let read = tokio::io::AsyncReadExt::read_to_end(&mut slow, &mut answer);
    let read = tokio::time::timeout(std::time::Duration::from_secs(10), read).await;
    read.expect("a head that never ends is cut off").ok();
    let count = input::Count { filter: Default::default() };
    let count = server.client().call::<api::Count>(count).await.unwrap();
    assert_eq!(count, 0, "nothing was stored");
    server.end().await;
}

#[tokio::test]
async fn a_client_without_the_right_address_says_so() {
    let server = Server::start().await;
    let socket = yore_client::Target::Socket(server.data().join("nowhere.sock"));
    let error = Client::connect(socket).await.unwrap_err().to_string();
    assert!(error.starts_with("cannot reach the server at unix:"), "{error}");
    let client = Client::new(server.target()).unwrap().with_token(Secret::new("x"));
    let error = client.call::<api::Census>(input::Nothing {}).await.unwrap_err();
    assert_eq!(error.refusal().unwrap().code, "unauthenticated");
    server.end().await;
}
