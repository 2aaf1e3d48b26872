//! The two ways to a server of the protocol: its HTTP binding and its MCP tools.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::TryStreamExt;
use http::{Method, Request};
use serde_json::{Value, json};
use yore_client::Client;

use crate::failure::{Failure, Result};
use crate::ump::{Answer, send};

/// What an MCP client of the widest spread asks for.
const VERSION: &str = "2025-11-25";
const ACCEPT: (&str, &str) = ("accept", "application/json, text/event-stream");
/// How long a subscription may be silent.
const SILENCE: Duration = Duration::from_secs(10);

/// A refusal in the protocol's own form.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// The protocol's code; empty when the answer had none.
    pub(crate) code: String,
    /// The HTTP status; absent over MCP.
    pub(crate) status: Option<u16>,
}

/// What a server answered: a value, or a refusal.
pub(crate) type Said = std::result::Result<Value, Refusal>;

/// A way to a server.
#[derive(Clone, Debug)]
pub(crate) enum Way {
    /// Its HTTP binding.
    Http(Client),
    /// Its MCP tools.
    Mcp(Tools),
}

impl Way {
    /// Carries out an operation.
    pub(crate) async fn call(&self, operation: &str, input: &Value) -> Result<Said> {
        match self {
            Self::Http(client) => over_http(client, operation, input).await,
            Self::Mcp(tools) => tools.call(operation, input).await,
        }
    }
}

async fn over_http(client: &Client, operation: &str, input: &Value) -> Result<Said> {
    let answer = match (operation, input["id"].as_str()) {
        ("capabilities", _) => get(client, "/ump/capabilities").await?,
        ("get", Some(id)) => {
            get(client, &format!("/ump/memory/{}", id.replace(':', "%3A"))).await?
        }
        _ => post(client, &format!("/ump/{operation}"), input.to_string()).await?,
    };
    Ok(said(&answer))
}

/// Reads an answer of the HTTP binding.
pub(crate) fn said(answer: &Answer) -> Said {
    let value = answer.json();
    if answer.status == 200 {
        return Ok(value);
    }
    let code = value["error"]["code"].as_str().unwrap_or_default().to_owned();
    Err(Refusal { code, status: Some(answer.status) })
}

/// Asks for a path.
pub(crate) async fn get(client: &Client, path: &str) -> Result<Answer> {
    send(client, Method::GET, path, &[ACCEPT], Bytes::new()).await
}

/// Posts to a path.
pub(crate) async fn post(client: &Client, path: &str, body: String) -> Result<Answer> {
    send(client, Method::POST, path, &[ACCEPT], body.into()).await
}

/// Asks for a path and looks at nothing but the status: the answer may never end.
pub(crate) async fn status(client: &Client, path: &str) -> Result<u16> {
    let request = Request::builder().method(Method::GET).uri(path).body(Bytes::new());
    let request = request.map_err(|error| Failure::usage(error.to_string()))?;
    Ok(client.forward(request).await?.status().as_u16())
}

/// Follows changes, does something, and says whether a text was told within a while.
pub(crate) async fn told_of(
    client: &Client,
    path: &str,
    act: impl Future<Output = Result<String>>,
) -> Result<std::result::Result<String, String>> {
    let request = Request::builder().method(Method::GET).uri(path);
    let request = request.header("accept", "text/event-stream").body(Bytes::new());
    let request = request.map_err(|error| Failure::usage(error.to_string()))?;
    let response = client.forward(request).await?;
    if response.status() != 200 {
        return Ok(Err(format!("status {}", response.status().as_u16())));
    }
    let kind = response.headers().get("content-type").and_then(|kind| kind.to_str().ok());
    if !kind.is_some_and(|kind| kind.starts_with("text/event-stream")) {
        return Ok(Err("not a stream of events".to_owned()));
    }
    let mut pieces = response.into_body();
    let wanted = act.await?;
    let mut read = String::new();
    let heard = tokio::time::timeout(SILENCE, async {
        while let Ok(Some(piece)) = pieces.try_next().await {
            read.push_str(&String::from_utf8_lossy(&piece));
            if read.contains(&wanted) && read.ends_with("\n\n") {
                return true;
            }
        }
        false
    });
    match heard.await {
        Ok(true) => Ok(Ok(read)),
        Ok(false) => Ok(Err("the stream ended early".to_owned())),
        Err(_) => Ok(Err("nothing was told within 10 s".to_owned())),
    }
}

/// The tools of an MCP server.
#[derive(Clone, Debug)]
pub(crate) struct Tools {
    client: Client,
    path: String,
    session: Option<String>,
    /// No number is used twice in a session.
    asked: Arc<AtomicU64>,
    /// The names of all tools.
    pub(crate) names: Vec<String>,
}

impl Tools {
    /// Asks for a session and returns the status of the answer.
    pub(crate) async fn greet(client: Client, path: &str) -> Result<u16> {
        let (answer, _) = Self::at(client, path).ask("initialize", hello()).await?;
        Ok(answer.status)
    }

    fn at(client: Client, path: &str) -> Self {
        Self {
            client,
            path: path.to_owned(),
            session: None,
            asked: Arc::default(),
            names: Vec::new(),
        }
    }

    /// Opens a session and lists the tools.
    pub(crate) async fn open(
        client: Client,
        path: &str,
    ) -> Result<std::result::Result<Self, String>> {
        let mut tools = Self::at(client, path);
        let answer = tools.ask("initialize", hello()).await?;
        if !answer.1["result"]["protocolVersion"].is_string() {
            return Ok(Err(format!("no MCP server: status {}", answer.0.status)));
        }
        tools.session = answer.0.session;
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        tools.post(&ready).await?;
        let mut cursor = Value::Null;
        loop {
            let input = if cursor.is_null() { json!({}) } else { json!({"cursor": cursor}) };
            let (_, mut answer) = tools.ask("tools/list", input).await?;
            let listed = answer["result"]["tools"].as_array().cloned().unwrap_or_default();
            tools
                .names
                .extend(listed.iter().filter_map(|tool| Some(tool["name"].as_str()?.to_owned())));
            cursor = answer["result"]["nextCursor"].take();
            if cursor.is_null() {
                return Ok(Ok(tools));
            }
        }
    }

    async fn call(&self, operation: &str, input: &Value) -> Result<Said> {
        let spelled = [format!("ump.{operation}"), format!("ump_{operation}")];
        let Some(name) = self.names.iter().find(|name| spelled.contains(name)) else {
            return Ok(Err(Refusal { code: "no such tool".to_owned(), status: None }));
        };
        let (_, answer) = self.ask("tools/call", json!({"name": name, "arguments": input})).await?;
        let result = &answer["result"];
        let text = result["content"][0]["text"].as_str().unwrap_or_default();
        let spoken: Value = serde_json::from_str(text).unwrap_or_default();
        let value = if result["structuredContent"].is_object() {
            result["structuredContent"].clone()
        } else {
            spoken.clone()
        };
        if !answer["error"].is_null() || result["isError"] == true {
            let code = spoken["error"]["code"].as_str().unwrap_or_default().to_owned();
            return Ok(Err(Refusal { code, status: None }));
        }
        Ok(Ok(value))
    }

    /// Asks for a prompt; nothing when there is none of that name.
    pub(crate) async fn prompt(&self, name: &str, arguments: Value) -> Result<Option<String>> {
        let input = json!({"name": name, "arguments": arguments});
        let (_, answer) = self.ask("prompts/get", input).await?;
        Ok(answer["result"]["messages"].as_array().map(|messages| {
            let texts = messages.iter().filter_map(|one| one["content"]["text"].as_str());
            texts.collect::<Vec<_>>().join("\n")
        }))
    }

    async fn ask(&self, method: &str, params: Value) -> Result<(Answer, Value)> {
        let id = self.asked.fetch_add(1, Ordering::Relaxed) + 1;
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let answer = self.post(&message).await?;
        let value = message_in(&answer.text, id);
        Ok((answer, value))
    }

    async fn post(&self, message: &Value) -> Result<Answer> {
        let mut headers = vec![ACCEPT, ("mcp-protocol-version", VERSION)];
        if let Some(session) = &self.session {
            headers.push(("mcp-session-id", session));
        }
        send(&self.client, Method::POST, &self.path, &headers, message.to_string().into()).await
    }
}

fn hello() -> Value {
    json!({
        "protocolVersion": VERSION,
        "capabilities": {},
        "clientInfo": {"name": "yore-conformance", "version": env!("CARGO_PKG_VERSION")},
    })
}

/// The answer to a request, alone or among server-sent events.
fn message_in(text: &str, id: u64) -> Value {
    if let Ok(value) = serde_json::from_str(text) {
        return value;
    }
    let data = text.lines().filter_map(|line| line.strip_prefix("data:"));
    let messages = data.filter_map(|data| serde_json::from_str::<Value>(data.trim()).ok());
    messages.into_iter().find(|message| message["id"] == id).unwrap_or_default()
}
