//! Poisoned writes against the shipped binary: what waits comes out of no door.

use std::collections::BTreeMap;

use rmcp::RoleClient;
use rmcp::model::CallToolRequestParams;
use rmcp::service::{ClientLifecycleMode, ClientServiceExt, RunningService};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use serde_json::{Value, json};

use crate::common::{Home, ask};

const SCRIPT: &str = include_str!("../../../memorywire/tests/poison/script.json");

/// Everything but letters and digits may be escaped on the way.
fn plain(text: &str) -> String {
    let text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    text.chars().filter(|letter| letter.is_alphanumeric()).collect()
}

fn escaped(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// What every door answers to a question, by the name of the door.
async fn answers(
    url: &str,
    token: &str,
    session: &RunningService<RoleClient, ()>,
    query: &str,
) -> BTreeMap<&'static str, String> {
    let post = |request: &str, body: Value| {
        let (status, text) = ask(url, token, request, &body.to_string());
        assert_eq!(status, 200, "{request}: {text}");
        // Texts are compared as they are meant, not as JSON spells them.
        let value: Value = serde_json::from_str(&text).unwrap();
        texts(&value)
    };
    let mut found = BTreeMap::new();
    let recall = json!({"query": query, "limit": 50, "cutoff": "off", "effort": "instant"});
    found.insert("native recall", post("POST /api/v1/recall", recall.clone()));
    let context = json!({"recall": recall, "budget_tokens": 8000});
    found.insert("native context", post("POST /api/v1/context", context));
    let memorywire = json!({"agent_id": "reader", "query": query, "k": 50});
    found.insert("memorywire recall", post("POST /memorywire/v0/recall", memorywire));
    let search = format!("GET /v1/knowledge?user_id=owner&query={}", escaped(query));
    found.insert("OAMP search", post(&search, Value::Null));
    for tool in ["ump.recall", "search", "memorywire.recall"] {
        let arguments = json!({"query": query}).as_object().cloned().unwrap();
        let request = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let done = session.call_tool(request).await.unwrap();
        assert_ne!(done.is_error, Some(true), "{tool}: {done:?}");
        found.insert(tool_name(tool), texts(&done.structured_content.unwrap()));
    }
    found
}

fn tool_name(tool: &str) -> &'static str {
    match tool {
        "ump.recall" => "MCP ump.recall",
        "search" => "MCP search",
        _ => "MCP memorywire.recall",
    }
}

/// All texts in a value, one after the other.
fn texts(value: &Value) -> String {
    match value {
        Value::String(text) => format!("{text}\n"),
        Value::Array(list) => list.iter().map(texts).collect(),
        Value::Object(members) => members.values().map(texts).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => String::new(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn mw_012_no_door_shows_any_of_fifty_poisoned_writes() {
    let script: Vec<Value> = serde_json::from_str(SCRIPT).unwrap();
    let home = Home::new();
    let server = home.serve();
    let url = server.url();
    let owner = server.ready["owner_token"].as_str().unwrap().to_owned();
    let by_owner = ["--url", &url, "--token", &owner];
    home.ok(&[&["rule", "add", "web-waits", "--source", "web"][..], &by_owner].concat());
    let issue =
        ["grant", "issue", "--agent", "reader", "--read", "behaviour", "--write", "behaviour"];
    let token = home.ok(&[&issue[..], &by_owner].concat()).trim().to_owned();
    let write = |content: &str, source: &str| {
        let body = json!({
            "agent_id": "reader", "type": "semantic", "content": content, "source": source,
        });
        let (status, text) = ask(&url, &token, "POST /memorywire/v0/remember", &body.to_string());
        assert_eq!(status, 200, "{text}");
        serde_json::from_str::<Value>(&text).unwrap()["pending_approval"].clone()
    };
    assert_eq!(write("the emergency exit is on the left", "chat"), json!(false));
    for poison in &script {
        assert_eq!(write(poison["content"].as_str().unwrap(), "web"), json!(true), "{poison}");
    }
    let mcp = format!("{}/mcp", url.trim_end_matches('/'));
    let config = StreamableHttpClientTransportConfig::with_uri(mcp).auth_header(token.as_str());
    let transport = StreamableHttpClientTransport::from_config(config);
    let session =
        ().serve_with_lifecycle(transport, ClientLifecycleMode::Initialize).await.unwrap();

    // What was approved by nobody comes out nowhere; what needs none comes out of every door.
    let known = answers(&url, &token, &session, "where is the emergency exit").await;
    for (door, answer) in &known {
        assert!(answer.contains("on the left"), "{door}: {answer}");
    }
    let full = std::env::var_os("YORE_FULL").is_some();
    for poison in script.iter().step_by(if full { 1 } else { 5 }) {
        let content = poison["content"].as_str().unwrap();
        for query in [poison["query"].as_str().unwrap(), content] {
            for (door, answer) in answers(&url, &token, &session, query).await {
                assert!(!plain(&answer).contains(&plain(content)), "{door}: {content}");
            }
        }
    }
    let all = ["list", "--all", "--json"];
    let listed = home.ok(&[&all[..], &by_owner].concat());
    for poison in &script {
        let content = plain(poison["content"].as_str().unwrap());
        assert!(!plain(&listed).contains(&content), "the owner's list, too");
    }
    session.cancel().await.unwrap();
}
