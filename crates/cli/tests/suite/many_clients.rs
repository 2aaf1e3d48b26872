//! Many agent hosts on one vault, half over stdio and half over HTTP, and a server that is killed.

use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rmcp::model::{CallToolRequestParams, RequestMetaObject, RequestParamsMeta as _};
use rmcp::service::{ClientLifecycleMode, ClientServiceExt, RunningService};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{RoleClient, ServiceExt};
use serde_json::{Value, json};
use tokio::net::unix::pipe;

use crate::common::Home;

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
        let mut process = home.command(&["mcp"]).stdin(Stdio::piped()).spawn().unwrap();
        let output = OwnedFd::from(process.stdout.take().unwrap());
        let input = OwnedFd::from(process.stdin.take().unwrap());
        let output = pipe::Receiver::from_owned_fd(output).unwrap();
        let pipes = (output, pipe::Sender::from_owned_fd(input).unwrap());
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
