//! The scenes of `examples/governed` on the shipped binary: grants from the command line,
//! entries over HTTP, and the same sight through every door.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::common::{Home, Server};

/// One request over HTTP/1.1.
fn ask(server: &Server, token: &str, path: &str, body: &Value) -> (u16, Value) {
    let url = server.url();
    let address = url.strip_prefix("http://").unwrap().trim_end_matches('/');
    let mut stream = TcpStream::connect(address).unwrap();
    let (method, body) =
        if body.is_null() { ("GET", String::new()) } else { ("POST", body.to_string()) };
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let status = text.split(' ').nth(1).unwrap().parse().unwrap();
    let (_, body) = text.split_once("\r\n\r\n").unwrap();
    (status, serde_json::from_str(body).unwrap_or_default())
}

fn words(value: &Value) -> String {
    let list = value.as_array().into_iter().flatten();
    list.map(|word| word.as_str().unwrap()).collect::<Vec<_>>().join(",")
}

fn texts(value: &Value) -> BTreeSet<String> {
    let list = value.as_array().into_iter().flatten();
    list.map(|one| one.as_str().unwrap_or_else(|| one["content"].as_str().unwrap()).to_owned())
        .collect()
}

fn entry(user: &str, memory: &Value, number: usize) -> Value {
    let mut entry = json!({
        "oamp_version": "1.2.0", "type": "knowledge_entry",
        "id": format!("550e8400-e29b-41d4-a716-{number:012}"),
        "user_id": user, "category": "fact", "content": memory["text"], "confidence": 0.9,
        "source": {"session_id": "scene", "timestamp": "2026-01-15T07:00:00Z"},
    });
    if let Some(class) = memory.get("class") {
        entry["governance"] = json!({"sensitivity_class": class, "labels": memory["labels"]});
    }
    if let Some(agent) = memory.get("by") {
        entry["source"]["agent_id"] = agent.clone();
    }
    entry
}

#[test]
fn every_agent_sees_what_its_grant_says_through_every_door() {
    let place = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/governed");
    let home = Home::new();
    let server = home.serve();
    let service = home.ok(&["token", "service"]).trim().to_owned();
    for name in ["wealth-desk", "hospital", "tax-authority", "law-firm", "person"] {
        let scene = std::fs::read(format!("{place}/{name}.json")).unwrap();
        let scene: Value = serde_json::from_slice(&scene).unwrap();
        let user = scene["user"].as_str().unwrap();
        let list = format!("/v1/knowledge?user_id={user}&limit=200");
        let memories = scene["memories"].as_array().unwrap();
        for (number, memory) in memories.iter().enumerate().filter(|(_, m)| m.get("by").is_none()) {
            let done = ask(&server, &service, "/v1/knowledge", &entry(user, memory, number));
            assert_eq!(done.0, 201, "{done:?}");
        }
        if memories.iter().all(|memory| memory.get("by").is_some()) {
            // A grant is given over something: the first write for a user makes the vault.
            let opened = json!({"text": "opened", "class": "restricted", "labels": ["x.scene"]});
            let done = ask(&server, &service, "/v1/knowledge", &entry(user, &opened, 999));
            assert_eq!(done.0, 201, "{done:?}");
        }
        let issue = |agent: &Value| {
            let (read, write) = (words(&agent["read"]), words(&agent["write"]));
            let mut args = vec![
                "grant",
                "issue",
                "--user",
                user,
                "--agent",
                agent["name"].as_str().unwrap(),
                "--read",
                &read,
                "--max",
                agent["max"].as_str().unwrap(),
                "--ttl",
                "1h",
                "--signed",
            ];
            if !write.is_empty() {
                args.extend(["--write", &write]);
            }
            home.ok(&args).trim().to_owned()
        };
        let agents: Vec<(&str, String)> = scene["agents"]
            .as_array()
            .unwrap()
            .iter()
            .map(|agent| (agent["name"].as_str().unwrap(), issue(agent)))
            .collect();
        let token_of = |name: &str| &agents.iter().find(|(agent, _)| *agent == name).unwrap().1;
        for (number, memory) in memories.iter().enumerate() {
            let Some(agent) = memory["by"].as_str() else { continue };
            let done = ask(&server, token_of(agent), "/v1/knowledge", &entry(user, memory, number));
            assert_eq!(done.0, 201, "{done:?}");
        }
        for (agent, token) in &agents {
            let sees = texts(&scene["sees"][agent]);
            let (status, listed) = ask(&server, token, &list, &Value::Null);
            assert_eq!((status, texts(&listed)), (200, sees.clone()), "{name} {agent}");
            // The same grant on the command line and on the native API.
            let url = server.url();
            let out = home.ok(&["list", "--all", "--json", "--url", &url, "--token", token]);
            let rows = out.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
            let seen = rows.map(|row| row["head"]["body"]["text"].as_str().unwrap().to_owned());
            assert_eq!(seen.collect::<BTreeSet<_>>(), sees, "{name} {agent} on the command line");
        }
        let grants = home.json(&["grant", "list", "--vault", user]);
        let grant_of = |agent: &str| {
            let mut grants = grants.as_array().unwrap().iter();
            let found = grants.rfind(|grant| grant["agent"] == agent).unwrap();
            found["id"].as_str().unwrap().to_owned()
        };
        if let Some(extend) = scene.get("extend") {
            let agent = extend["agent"].as_str().unwrap();
            let read = words(&extend["read"]);
            let max = extend["max"].as_str().unwrap();
            let grant = grant_of(agent);
            let args = [
                "grant", "extend", &grant, "--ttl", "30m", "--read", &read, "--max", max,
                "--vault", user,
            ];
            let wider = home.ok(&args).trim().to_owned();
            let (status, listed) = ask(&server, &wider, &list, &Value::Null);
            assert_eq!((status, texts(&listed)), (200, texts(&extend["sees"])), "{name}");
        }
        if let Some(agent) = scene["revoke"].as_str() {
            home.ok(&["grant", "revoke", &grant_of(agent), "--vault", user]);
            assert_eq!(ask(&server, token_of(agent), &list, &Value::Null).0, 401);
        }
    }
    home.fails(
        &["grant", "issue", "--agent", "x", "--read", "work", "--signed"],
        2,
        &["ends by itself"],
    );
}

#[test]
fn oamp_264_oamp_402_no_log_line_repeats_what_was_said_or_asked() {
    let home = Home::new();
    let log = home.path("server.log");
    let server = home.serve_logging("debug", &log);
    let service = home.ok(&["token", "service"]).trim().to_owned();
    let memory =
        json!({"text": "the cerulean diagnosis", "class": "restricted", "labels": ["health"]});
    assert_eq!(ask(&server, &service, "/v1/knowledge", &entry("ada", &memory, 1)).0, 201);
    let mut wrong = entry("ada", &memory, 2);
    wrong["confidence"] = "cerulean".into();
    assert_eq!(ask(&server, &service, "/v1/knowledge", &wrong).0, 400);
    let search = "/v1/knowledge?user_id=ada&query=cerulean%20diagnosis";
    assert_eq!(ask(&server, &service, search, &Value::Null).1.as_array().unwrap().len(), 1);
    assert_eq!(ask(&server, &service, "/v1/export", &json!({"user_id": "ada"})).0, 200);
    drop(server);
    let said = std::fs::read_to_string(log).unwrap();
    assert!(said.contains("/v1/knowledge"), "requests are logged: {said}");
    for word in ["cerulean", "diagnosis", &service] {
        assert!(!said.contains(word), "{word} is in the log");
    }
}
