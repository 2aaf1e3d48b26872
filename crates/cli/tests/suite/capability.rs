//! Capability tokens: one token on every surface, and issuers that a server trusts.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};

use crate::common::{Home, ask, check, post};

/// A vault with a memory inside a project and one outside of it.
struct Scene {
    home: Home,
    inside: String,
    outside: String,
    token: String,
}

impl Scene {
    fn new() -> Self {
        let home = Home::new();
        let inside = home.remember(&["--project", "x", "tea inside"]);
        let outside = home.remember(&["tea outside"]);
        let token = home.ok(&[
            "token",
            "issue",
            "--capability",
            "--verbs",
            "read,derive",
            "--project",
            "x",
            "--ttl",
            "24h",
        ]);
        Self { home, inside, outside, token: token.trim().to_owned() }
    }

    fn with(&self, args: &[&str]) -> crate::common::Ended {
        self.home.run(&[args, &["--token", &self.token]].concat())
    }
}

#[test]
fn ump_070_a_token_for_one_project_opens_that_much_of_the_command_line() {
    let scene = Scene::new();
    assert!(scene.token.starts_with("umpcap."), "{}", scene.token);
    let list = scene.with(&["list"]);
    assert!(list.out.contains("tea inside") && !list.out.contains("outside"), "{list:?}");
    let recall = scene.with(&["recall", "tea"]);
    assert!(recall.out.contains("tea inside") && !recall.out.contains("outside"), "{recall:?}");
    assert_eq!(scene.with(&["get", &scene.inside]).code, 0);
    let missing = "00000000-0000-4000-8000-000000000000";
    let (hidden, missing) = (scene.with(&["get", &scene.outside]), scene.with(&["get", missing]));
    check(&hidden, 3, &["not found"]);
    assert_eq!(hidden.code, missing.code);
    let out = scene.home.path("out");
    let out = out.to_str().unwrap();
    let copy = scene.home.path("copy.yore");
    let copy = copy.to_str().unwrap();
    let notes = scene.home.path("notes.md");
    std::fs::write(&notes, "# Tea\n\nGreen.\n").unwrap();
    for args in [
        &["remember", "--project", "x", "more tea"][..],
        &["revise", &scene.inside, "other tea"],
        &["forget", &scene.inside],
        &["export"],
        &["export", "--format", "ndjson"],
        &["export", "--format", "ump.md", "--out", out],
        &["sync", out],
        &["publish", out],
        &["import", notes.to_str().unwrap()],
        &["audit", "list"],
        &["token", "issue", "--verbs", "read"],
        &["backup", copy],
    ] {
        let refused = scene.with(args);
        assert_eq!(refused.code, 4, "{args:?}: {refused:?}");
    }
    assert_eq!(scene.home.all().len(), 2, "nothing changed");
    let grants = scene.home.json(&["grant", "list"]);
    scene.home.ok(&["grant", "revoke", grants[0]["id"].as_str().unwrap()]);
    check(&scene.with(&["list"]), 4, &["revoked"]);
}

#[test]
fn ump_070_the_same_token_opens_that_much_of_a_server() {
    let scene = Scene::new();
    let server = scene.home.serve();
    let (url, token) = (server.url(), &scene.token);
    let found = post(&url, token, "/ump/recall", r#"{"query": "tea"}"#);
    assert_eq!(found["results"].as_array().unwrap().len(), 1, "{found}");
    let get = |id: &str| ask(&url, token, &format!("GET /ump/memory/{id}"), "");
    assert_eq!(get(&scene.inside).0, 200);
    assert_eq!(get(&scene.outside), get("urn%3Aump%3Aaaaa"), "hidden is missing");
    let said = json!({"kind": "semantic", "body": {"text": "so"}, "scope": {"owner": "owner", "project": "x"},
        "relations": [{"type": "derived_from", "target": "urn:ump:aaaa"}]});
    for (path, body) in [
        ("/ump/remember", json!({"record": said})),
        ("/ump/revise", json!({"id": scene.inside, "patch": {"body": {"text": "y"}}})),
        ("/ump/forget", json!({"id": scene.inside, "reason": "z"})),
        ("/ump/feedback", json!({"id": scene.inside, "outcome": "followed"})),
        ("/ump/export", json!({})),
        ("/ump/audit", json!({})),
        (
            "/api/v1/export",
            json!({"filter": {}, "page": {"limit": 10, "after": null, "offset": 0, "order": "oldest_first"}}),
        ),
        ("/api/v1/import", json!({"items": []})),
        ("/api/v1/relabel", json!({"memory": scene.inside, "change": {"consent": {}}})),
        (
            "/api/v1/merge",
            json!({"canonical": scene.inside, "duplicates": [scene.outside], "strategy": "merge_content"}),
        ),
        ("/api/v1/attachment", json!("bytes")),
    ] {
        let (status, answer) = ask(&url, token, &format!("POST {path}"), &body.to_string());
        assert_eq!(status, 403, "{path}: {answer}");
    }
    // A stream of changes tells of the project and of nothing else.
    let mut stream = std::net::TcpStream::connect(url.trim_start_matches("http://")).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let host = url.trim_start_matches("http://");
    let head = format!(
        "GET /ump/subscribe HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {token}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut told = String::new();
    let mut piece = [0; 4096];
    while !told.contains(": yore") {
        let read = stream.read(&mut piece).unwrap();
        told.push_str(&String::from_utf8_lossy(&piece[..read]));
    }
    scene.home.remember(&["coffee outside"]);
    scene.home.remember(&["--project", "x", "coffee inside"]);
    while !told.contains("coffee inside") {
        let read = stream.read(&mut piece).unwrap();
        assert!(read > 0, "{told}");
        told.push_str(&String::from_utf8_lossy(&piece[..read]));
    }
    assert!(!told.contains("coffee outside"), "{told}");
}

/// Calls tools over a pair of functions that carry one message each.
fn tools(inside: &str, mut send: impl FnMut(Value) -> Value) {
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "host", "version": "1"}});
    send(json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}));
    send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    let mut call = |id: u64, name: &str, arguments: Value| {
        let params = json!({"name": name, "arguments": arguments});
        send(json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}))["result"].clone()
    };
    let found = call(1, "ump.recall", json!({"query": "tea"}));
    assert!(found.to_string().contains("tea inside"), "{found}");
    assert!(!found.to_string().contains("tea outside"), "{found}");
    for (name, arguments) in [
        ("ump.remember", json!({"body": {"text": "more"}, "scope": {"project": "x"}})),
        ("ump.revise", json!({"id": inside, "patch": {"body": {"text": "y"}}})),
        ("ump.forget", json!({"id": inside, "reason": "z"})),
        ("ump.feedback", json!({"id": inside, "outcome": "followed"})),
        ("ump.audit", json!({})),
    ] {
        let refused = call(2, name, arguments);
        assert_eq!(refused["isError"], true, "{name}: {refused}");
        let text = refused["content"][0]["text"].as_str().unwrap();
        let error: Value = serde_json::from_str(text).unwrap();
        assert_eq!(error["error"]["code"], "forbidden_scope", "{name}: {refused}");
    }
    let hidden = call(3, "search", json!({"query": "tea"}));
    assert!(!hidden.to_string().contains("tea outside"), "{hidden}");
}

#[test]
fn ump_070_the_same_token_opens_that_much_of_mcp_over_http() {
    let scene = Scene::new();
    let server = scene.home.serve();
    let mut session = String::new();
    tools(&scene.inside, |message| {
        let (head, body) = crate::common::exchange(
            &server.url(),
            &scene.token,
            "POST /mcp",
            &session,
            &message.to_string(),
        );
        for line in head.lines() {
            if let Some(id) = line.to_lowercase().strip_prefix("mcp-session-id: ") {
                session = format!("mcp-session-id: {id}\r\nmcp-protocol-version: 2025-11-25\r\n");
            }
        }
        let data = body.lines().filter_map(|line| line.strip_prefix("data:"));
        let found = data.filter_map(|data| serde_json::from_str::<Value>(data.trim()).ok());
        let id = message.get("id").cloned();
        let mut found: Vec<Value> = found.filter(|one| one.get("id") == id.as_ref()).collect();
        found.pop().or_else(|| serde_json::from_str(&body).ok()).unwrap_or_default()
    });
}

#[test]
fn ump_070_the_same_token_opens_that_much_of_mcp_over_stdio() {
    let scene = Scene::new();
    let mut child = scene
        .home
        .command(&["mcp"])
        .env("YORE_TOKEN", &scene.token)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    tools(&scene.inside, |message| {
        writeln!(stdin, "{message}").unwrap();
        let Some(id) = message.get("id") else { return Value::Null };
        loop {
            let line: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
            if line.get("id") == Some(id) {
                return line;
            }
        }
    });
    drop(stdin);
    assert!(child.wait().unwrap().success());
}

#[test]
fn ump_077_a_capability_token_says_no_less_than_it_was_asked_to() {
    let home = Home::new();
    home.remember(&["tea"]);
    let base = ["token", "issue", "--capability", "--verbs"];
    home.fails(&[&base[..], &["read"]].concat(), 2, &["--ttl"]);
    home.fails(&[&base[..], &["read,erase", "--ttl", "1h"]].concat(), 2, &["verbs"]);
    home.fails(&[&base[..], &["read", "--ttl", "1h", "--labels", "work"]].concat(), 2, &["labels"]);
    let token =
        home.ok(
            &[&base[..], &["read", "--ttl", "1h", "--audience", "https://else.example"]].concat()
        );
    check(&home.run(&["list", "--token", token.trim()]), 4, &["audience"]);
    let entries = home.json(&["audit", "list"]);
    assert!(entries.to_string().contains("grant.capability"), "signing leaves its entry");
    // A server that answers by that name takes it.
    let mut command = home.command(&["list", "--token", token.trim()]);
    let output = command.env("YORE_AUDIENCES", "https://else.example").output().unwrap();
    assert!(String::from_utf8(output.stdout).unwrap().contains("tea"));
}
