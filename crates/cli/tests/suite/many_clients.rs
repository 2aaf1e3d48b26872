//! Many agent hosts on one vault, half over stdio and half over HTTP, and a server that is killed.

use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rmcp::model::{CallToolRequestParams, RequestMetaObject, RequestParamsMeta as _};
use rmcp::service::{ClientLifecycleMode, ClientServiceExt, RunningService};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{RoleClient, ServiceExt};
use serde_json::{Value, json};
use tokio::net::unix::pipe;

use crate::common::{Home, Server};

const CLIENTS: usize = 10;
const WRITES: usize = 100;
const DEATHS: usize = 3;
/// How long a client goes on trying.
const PATIENCE: Duration = Duration::from_secs(60);

type Session = RunningService<RoleClient, ()>;

#[tokio::test(flavor = "multi_thread")]
async fn ten_of_each_kind_lose_and_double_nothing_when_the_server_is_killed() {
    let home = Home::new();
    let mut server = home.serve();
    let address = server.url().trim_start_matches("http://").to_owned();
    let token = server.ready["owner_token"].as_str().unwrap().to_owned();
    let mut clients = tokio::task::JoinSet::new();
    for number in 0..CLIENTS {
        let (mut process, pipes) = stdio(&home, &[]);
        clients.spawn(async move {
            let session = ().serve(pipes).await.unwrap();
            for write in 0..WRITES {
                // The relay asks again by itself until there is an answer.
                let said = text("stdio", number, write);
                let done = session.call_tool(remember(&said)).await.unwrap();
                assert_ne!(done.is_error, Some(true), "{said}: {:?}", done.content);
            }
            // The process ends with its input.
            session.cancel().await.unwrap();
            let ended = tokio::task::spawn_blocking(move || process.wait().unwrap());
            assert!(ended.await.unwrap().success());
        });
        let (url, token) = (format!("http://{address}/mcp"), token.clone());
        clients.spawn(async move {
            let mut session = None;
            for write in 0..WRITES {
                persist(&mut session, &url, &token, &text("http", number, write)).await;
            }
        });
    }
    for _ in 0..DEATHS {
        tokio::time::sleep(Duration::from_millis(1500)).await;
        drop(server);
        server = tokio::task::block_in_place(|| home.serve_at(&address));
    }
    while let Some(done) = clients.join_next().await {
        done.unwrap();
    }
    assert_eq!(server.stop(), 0);
    let stored = home.all();
    let distinct: BTreeSet<&String> = stored.iter().collect();
    assert_eq!(distinct.len(), 2 * CLIENTS * WRITES, "none is lost");
    assert_eq!(stored.len(), distinct.len(), "none is stored twice");
    let rows = home.ok(&["list", "--all", "--json"]);
    for row in rows.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
        // A doubled write would have found its own text and made a second version of it.
        assert_eq!(row["head"]["number"], 1, "none is doubled: {row}");
    }
    let versions = home.json(&["audit", "verify"]);
    assert_eq!(versions["faults"], json!([]), "{versions}");
}

/// A session goes on while the vault is first held by its own process, which is asked without a
/// socket, then by a server that wants the directory, then by nobody; a token allows no more on
/// either way, and the audit chain says the same of both.
#[tokio::test(flavor = "multi_thread")]
async fn a_host_is_answered_alike_by_its_own_process_and_by_a_server() {
    let home = Home::new();
    home.ok(&["remember", "the spare key lies under the third stone"]);
    let token = home.ok(&["token", "issue", "--verbs", "read", "--agent", "reader"]);
    let (mut own, pipes) = stdio(&home, &[]);
    let owner = ().serve(pipes).await.unwrap();
    let (mut other, pipes) = stdio(&home, &[("YORE_TOKEN", token.trim())]);
    let reader = ().serve(pipes).await.unwrap();
    let mut server: Option<Server> = None;
    for turn in ["own process", "server", "own process again"] {
        server = match (turn, server.take()) {
            ("server", _) => Some(tokio::task::block_in_place(|| home.serve())),
            (_, running) => {
                // In its own time: who reads is answered before its line is on disk.
                let ended = running.map(|mut server| tokio::task::block_in_place(|| server.stop()));
                assert_eq!(ended.unwrap_or(0), 0);
                None
            }
        };
        for (session, may_write) in [(&owner, true), (&reader, false)] {
            let query = json!({ "query": "where is the spare key?" });
            let asked = CallToolRequestParams::new("ump.recall")
                .with_arguments(query.as_object().cloned().unwrap());
            let found = session.call_tool(asked).await.unwrap().structured_content.unwrap();
            let text = &found["results"][0]["record"]["body"]["text"];
            assert_eq!(text, "the spare key lies under the third stone", "{turn}: {found}");
            let said = format!("{turn} says {may_write}");
            let done = session.call_tool(remember(&said)).await.unwrap();
            assert_eq!(done.is_error != Some(true), may_write, "{turn}: {:?}", done.content);
        }
    }
    drop(server);
    for session in [owner, reader] {
        session.cancel().await.unwrap();
    }
    for process in [&mut own, &mut other] {
        assert!(tokio::task::block_in_place(|| process.wait()).unwrap().success());
    }
    let written = home.all().into_iter().filter(|text| text.ends_with("says true")).count();
    assert_eq!((written, home.all().len()), (3, 4), "{:?}", home.all());
    let entries = home.json(&["audit", "list", "--operation", "recall"]);
    let entries = entries.as_array().unwrap();
    assert_eq!(entries.len(), 6, "each recall has its line: {entries:?}");
    for entry in entries {
        assert_eq!((&entry["protocol"], &entry["source"]), (&json!("mcp"), &json!("socket")));
        assert!(entry["request"].is_string(), "{entry}");
    }
}

/// Starts `yore mcp` as an agent host does.
fn stdio(home: &Home, surroundings: &[(&str, &str)]) -> (Child, (pipe::Receiver, pipe::Sender)) {
    let mut command = home.command(&["mcp"]);
    let started = command.envs(surroundings.iter().copied()).stdin(Stdio::piped()).spawn();
    let mut process = started.unwrap();
    let output = OwnedFd::from(process.stdout.take().unwrap());
    let input = OwnedFd::from(process.stdin.take().unwrap());
    let output = pipe::Receiver::from_owned_fd(output).unwrap();
    (process, (output, pipe::Sender::from_owned_fd(input).unwrap()))
}

fn text(kind: &str, client: usize, write: usize) -> String {
    format!("{kind} client {client} wrote line {write}")
}

fn remember(text: &str) -> CallToolRequestParams {
    let record = json!({
        "kind": "semantic",
        "body": { "text": text },
        "scope": { "owner": "owner", "visibility": "private" },
    });
    CallToolRequestParams::new("ump.remember").with_arguments(record.as_object().cloned().unwrap())
}

/// Writes over HTTP as a careful host does: the same operation again until it is answered.
async fn persist(session: &mut Option<Session>, url: &str, token: &str, text: &str) {
    let begun = Instant::now();
    loop {
        if let Some(session) = &*session {
            let mut meta = RequestMetaObject::default();
            meta.insert("yore/operation-id".into(), Value::from(text));
            let mut request = remember(text);
            request.set_meta(meta);
            let call = session.call_tool(request);
            if let Ok(Ok(done)) = tokio::time::timeout(Duration::from_secs(5), call).await {
                assert_ne!(done.is_error, Some(true), "{text}: {:?}", done.content);
                return;
            }
        }
        assert!(begun.elapsed() < PATIENCE, "no answer for {text}");
        let config =
            StreamableHttpClientTransportConfig::with_uri(url.to_owned()).auth_header(token);
        let transport = StreamableHttpClientTransport::from_config(config);
        let life = ClientLifecycleMode::Initialize;
        *session = ().serve_with_lifecycle(transport, life).await.ok();
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
