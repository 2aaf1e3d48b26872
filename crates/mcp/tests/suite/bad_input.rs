//! What is refused at the door, and how.

use axum::Router;
use axum::body::Body;
use axum::http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, ORIGIN, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tempfile::TempDir;
use tower::ServiceExt;
use yore_mcp::{Options, routes};

use super::vault;

pub(crate) struct Door {
    routes: Router,
    token: String,
    _directory: TempDir,
}

impl Door {
    pub(crate) async fn new() -> Self {
        let directory = TempDir::new().unwrap();
        let (surface, token) = vault::open(directory.path()).await;
        Self { routes: routes(surface, Options::default()), token, _directory: directory }
    }

    pub(crate) async fn knock(&self, request: Request<Body>) -> (StatusCode, HeaderMap, Vec<u8>) {
        let response = self.routes.clone().oneshot(request).await.unwrap();
        let (status, headers) = (response.status(), response.headers().clone());
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (status, headers, body.to_vec())
    }

    fn post(&self, body: impl Into<Body>) -> Request<Body> {
        let request = Request::post("/mcp")
            .header(HOST, "localhost")
            .header(AUTHORIZATION, format!("Bearer {}", self.token))
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json, text/event-stream");
        request.body(body.into()).unwrap()
    }

    /// A request that stands alone, with the headers that go with it.
    pub(crate) fn alone(&self, method: &str, mut params: Value) -> Request<Body> {
        let version = "io.modelcontextprotocol/protocolVersion";
        params["_meta"][version] = json!("2026-07-28");
        params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
        let name = params["name"].as_str().or_else(|| params["uri"].as_str()).map(str::to_owned);
        let body = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params });
        let mut request = self.post(body.to_string());
        let headers = request.headers_mut();
        headers.insert("mcp-protocol-version", "2026-07-28".parse().unwrap());
        headers.insert("mcp-method", method.parse().unwrap());
        if let Some(name) = name {
            headers.insert("mcp-name", name.parse().unwrap());
        }
        request
    }
}

pub(crate) fn json_of(body: &[u8]) -> Value {
    serde_json::from_slice(body).unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(body)))
}

#[tokio::test]
async fn without_a_credential_that_holds_nothing_is_answered() {
    let door = Door::new().await;
    for (presented, says_why) in [
        (None, false),
        (Some("Bearer nonsense".to_owned()), true),
        (Some("Basic eDp5".to_owned()), true),
        (Some(format!("Bearer {}x", door.token)), true),
    ] {
        let requests = [
            door.alone("tools/list", json!({})),
            door.alone(
                "tools/call",
                json!({ "name": "note.recall", "arguments": { "query": "x" } }),
            ),
            Request::get("/mcp/compat").header(HOST, "localhost").body(Body::empty()).unwrap(),
        ];
        for mut request in requests {
            let compat = request.uri().path() == "/mcp/compat";
            request.headers_mut().remove(AUTHORIZATION);
            if let Some(presented) = &presented {
                request.headers_mut().insert(AUTHORIZATION, presented.parse().unwrap());
            }
            let (status, headers, body) = door.knock(request).await;
            assert_eq!(status, StatusCode::UNAUTHORIZED, "{presented:?}");
            let challenge = headers[WWW_AUTHENTICATE].to_str().unwrap();
            let path = if compat { "/mcp/compat" } else { "/mcp" };
            let place = format!("http://localhost/.well-known/oauth-protected-resource{path}");
            assert!(challenge.contains(&format!("resource_metadata=\"{place}\"")), "{challenge}");
            assert_eq!(challenge.contains("invalid_token"), says_why, "{challenge}");
            let body = json_of(&body);
            assert_eq!(body["id"], if compat { Value::Null } else { json!(7) });
            let token = presented.as_deref().unwrap_or("nonsense").rsplit(' ').next().unwrap();
            assert!(!body.to_string().contains(token), "a credential is repeated: {body}");
        }
    }
}

#[tokio::test]
async fn the_description_is_open_to_all() {
    let door = Door::new().await;
    for path in ["", "/mcp", "/mcp/compat"] {
        let uri = format!("/.well-known/oauth-protected-resource{path}");
        let request = Request::get(uri).header(HOST, "localhost:7070").body(Body::empty()).unwrap();
        let (status, _, body) = door.knock(request).await;
        assert_eq!(status, StatusCode::OK);
        let resource =
            format!("http://localhost:7070{}", if path.is_empty() { "/mcp" } else { path });
        assert_eq!(json_of(&body)["resource"], resource);
    }
}

#[tokio::test]
async fn bodies_are_bounded_before_they_are_read() {
    let door = Door::new().await;
    let deep = |levels: usize| {
        let nested = format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{"x":{nested}}}}}"#)
    };
    let table: Vec<(&str, Vec<u8>, StatusCode, i64)> = vec![
        ("nothing", b"".to_vec(), StatusCode::BAD_REQUEST, -32700),
        ("no JSON", b"{".to_vec(), StatusCode::BAD_REQUEST, -32700),
        ("no UTF-8", b"{\"a\":\"\xff\"}".to_vec(), StatusCode::BAD_REQUEST, -32700),
        ("a member twice", br#"{"id":1,"id":2}"#.to_vec(), StatusCode::BAD_REQUEST, -32700),
        ("a batch", b"[]".to_vec(), StatusCode::BAD_REQUEST, -32600),
        ("a number", b"7".to_vec(), StatusCode::BAD_REQUEST, -32600),
        ("too deep", deep(60).into_bytes(), StatusCode::BAD_REQUEST, -32700),
        ("far too deep", deep(100_000).into_bytes(), StatusCode::BAD_REQUEST, -32700),
        ("too large", vec![b' '; 3 << 20], StatusCode::PAYLOAD_TOO_LARGE, -32600),
    ];
    for (what, body, expected, code) in table {
        let (status, _, body) = door.knock(door.post(body)).await;
        assert_eq!(status, expected, "{what}");
        assert_eq!(json_of(&body)["error"]["code"], code, "{what}");
    }
    // Without a length the limit still holds.
    let endless =
        futures::stream::iter((0..4000).map(|_| Ok::<_, std::io::Error>(vec![b' '; 1024])));
    let (status, ..) = door.knock(door.post(Body::from_stream(endless))).await;
    assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE);
}

#[tokio::test]
async fn foreign_hosts_and_origins_are_refused() {
    let door = Door::new().await;
    for (name, value, allowed) in [
        (HOST, "evil.example", false),
        (HOST, "127.0.0.1:7070", true),
        (ORIGIN, "http://evil.example", false),
        (ORIGIN, "null", false),
        (ORIGIN, "http://localhost:7070", true),
    ] {
        let mut request = door.alone("tools/list", json!({}));
        request.headers_mut().insert(name.clone(), value.parse().unwrap());
        let (status, ..) = door.knock(request).await;
        assert_eq!(status == StatusCode::FORBIDDEN, !allowed, "{name} {value}: {status}");
    }
}

#[tokio::test]
async fn requests_that_stand_alone_say_what_they_are() {
    let door = Door::new().await;
    let change = |name: &'static str, value: Option<&str>| {
        let mut request =
            door.alone("tools/call", json!({ "name": "search", "arguments": { "query": "x" } }));
        request.headers_mut().remove(name);
        if let Some(value) = value {
            request.headers_mut().insert(name, value.parse().unwrap());
        }
        request
    };
    let table = [
        ("as it is", door.alone("tools/list", json!({})), StatusCode::OK, None),
        (
            "another version",
            change("mcp-protocol-version", Some("2025-11-25")),
            StatusCode::BAD_REQUEST,
            Some(-32020),
        ),
        (
            "another method",
            change("mcp-method", Some("tools/list")),
            StatusCode::BAD_REQUEST,
            Some(-32020),
        ),
        ("another name", change("mcp-name", Some("fetch")), StatusCode::BAD_REQUEST, Some(-32020)),
        ("no name", change("mcp-name", None), StatusCode::BAD_REQUEST, Some(-32020)),
        (
            "a method of the past",
            door.alone("ping", json!({})),
            StatusCode::NOT_FOUND,
            Some(-32601),
        ),
        (
            "a method of the past",
            door.alone("logging/setLevel", json!({ "level": "info" })),
            StatusCode::NOT_FOUND,
            Some(-32601),
        ),
        (
            "a method of nobody",
            door.alone("memory/dump", json!({})),
            StatusCode::NOT_FOUND,
            Some(-32601),
        ),
        (
            "an unknown tool",
            door.alone("tools/call", json!({ "name": "note.x" })),
            StatusCode::OK,
            Some(-32602),
        ),
        (
            "a foreign cursor",
            door.alone("tools/list", json!({ "cursor": "x" })),
            StatusCode::OK,
            Some(-32602),
        ),
    ];
    for (what, request, expected, code) in table {
        let (status, _, body) = door.knock(request).await;
        let body = json_of(&body);
        assert_eq!(status, expected, "{what}: {body}");
        assert_eq!(body["error"]["code"].as_i64(), code, "{what}: {body}");
        assert_eq!(body["id"], 7, "{what}: {body}");
    }
}

#[tokio::test]
async fn lists_may_be_kept_only_by_whom_they_concern() {
    let door = Door::new().await;
    for (method, scope) in [
        ("tools/list", "public"),
        ("prompts/list", "public"),
        ("resources/templates/list", "public"),
        ("resources/list", "private"),
        ("server/discover", "public"),
    ] {
        let (_, _, body) = door.knock(door.alone(method, json!({}))).await;
        let result = &json_of(&body)["result"];
        assert_eq!(result["cacheScope"], scope, "{method}: {result}");
        assert!(result["ttlMs"].is_u64(), "{method}");
        assert_eq!(result["resultType"], "complete", "{method}");
    }
}

#[tokio::test]
async fn one_operation_is_done_once() {
    let door = Door::new().await;
    let write = |text: &str, header: Option<&str>, meta: Value| {
        let arguments = json!({ "text": text });
        let params = json!({ "name": "note.remember", "arguments": arguments, "_meta": meta });
        let mut request = door.alone("tools/call", params);
        if let Some(header) = header {
            request.headers_mut().insert("yore-operation-id", header.parse().unwrap());
        }
        request
    };
    let named = json!({ "yore/operation-id": "two" });
    for (text, header, meta) in
        [("Said by header.", Some("one"), json!({})), ("Said within.", None, named)]
    {
        let mut answers = Vec::new();
        for _ in 0..2 {
            let (_, _, body) = door.knock(write(text, header, meta.clone())).await;
            answers.push(json_of(&body)["result"]["structuredContent"].clone());
        }
        assert_eq!(answers[0]["result"], "created", "{text}");
        assert_eq!(answers[0], answers[1], "{text}");
        let (_, _, plain) = door.knock(write(text, None, json!({}))).await;
        assert_eq!(json_of(&plain)["result"]["structuredContent"]["result"], "merged", "{text}");
    }
    for wrong in [json!(7), json!(""), json!("a\nb"), json!("x".repeat(257))] {
        let (_, _, body) =
            door.knock(write("x", None, json!({ "yore/operation-id": wrong }))).await;
        assert_eq!(json_of(&body)["error"]["code"], -32602, "{wrong}");
    }
}

#[tokio::test]
async fn sessions_end_when_they_are_ended() {
    let door = Door::new().await;
    let initialize = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "c", "version": "1" },
    } });
    let response = door.routes.clone().oneshot(door.post(initialize.to_string())).await.unwrap();
    let session = response.headers()["mcp-session-id"].clone();
    let with = |mut request: Request<Body>| {
        request.headers_mut().insert("mcp-session-id", session.clone());
        request.headers_mut().insert("mcp-protocol-version", "2025-11-25".parse().unwrap());
        request
    };
    let mut end = door.post(Body::empty());
    *end.method_mut() = Method::DELETE;
    let (status, ..) = door.knock(with(end)).await;
    assert!(status.is_success(), "{status}");
    let list = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" });
    let (status, ..) = door.knock(with(door.post(list.to_string()))).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
}
