//! A server that is killed and comes back while clients write through relays.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::CallToolRequestParams;
use serde_json::json;
use tempfile::TempDir;
use yore_domain::query::Filter;
use yore_engine::{Call, Secret};
use yore_mcp::{Options, routes};

use super::host::{Life, Person, Tcp, host, relayed};
use super::vault;

const CLIENTS: usize = 4;
const WRITES: usize = 60;
const DEATHS: usize = 4;
const DIRECTORY: &str = "YORE_TEST_DIRECTORY";
const ADDRESS: &str = "YORE_TEST_ADDRESS";
const READY: &str = "serving ";

#[tokio::test(flavor = "multi_thread")]
#[ignore = "it is the server of the test below, in a process of its own"]
async fn server() {
    let directory = std::env::var(DIRECTORY).unwrap();
    let address = std::env::var(ADDRESS).unwrap().parse().unwrap();
    let (surface, token) = vault::open(Path::new(&directory)).await;
    let address = vault::serve(routes(surface, Options::default()), address).await;
    println!("\n{READY}{address} {token}");
    std::future::pending::<()>().await;
}

/// A server in a process of its own, so that it can be killed in the middle of everything.
struct Daemon {
    process: Child,
    address: SocketAddr,
    token: String,
}

impl Daemon {
    fn start(directory: &Path, at: SocketAddr) -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["restart::server", "--exact", "--ignored", "--nocapture"])
            .env(DIRECTORY, directory)
            .env(ADDRESS, at.to_string())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let ready = lines.map(Result::unwrap).find_map(|line| {
            let (address, token) = line.strip_prefix(READY)?.split_once(' ')?;
            Some((address.parse().unwrap(), token.to_owned()))
        });
        let (address, token) = ready.expect("the server comes up");
        Self { process, address, token }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_write_is_lost_or_done_twice() {
    let directory = TempDir::new().unwrap();
    let mut daemon = Daemon::start(directory.path(), ([127, 0, 0, 1], 0).into());
    let (address, token) = (daemon.address, daemon.token.clone());
    let mut clients = Vec::new();
    for number in 0..CLIENTS {
        let life = if number % 2 == 0 { Life::Session } else { Life::Alone };
        let upstream = Arc::new(Tcp::new(address, token.clone()));
        let client = relayed(host(Person::Nobody), upstream, life).await;
        clients.push(tokio::spawn(async move {
            let mut ids = BTreeSet::new();
            for write in 0..WRITES {
                let text = json!({ "text": format!("client {number} wrote line {write}") });
                let request = CallToolRequestParams::new("note.remember")
                    .with_arguments(text.as_object().cloned().unwrap());
                let result = client.call_tool(request).await.unwrap();
                let done =
                    result.structured_content.unwrap_or_else(|| panic!("{:?}", result.content));
                // A write that was done and sent again would be merged with itself.
                assert_eq!(done["result"], "created", "client {number} write {write}");
                ids.insert(done["id"].as_str().unwrap().to_owned());
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            ids
        }));
    }
    for _ in 0..DEATHS {
        tokio::time::sleep(Duration::from_millis(120)).await;
        drop(daemon);
        daemon = tokio::task::block_in_place(|| Daemon::start(directory.path(), address));
    }
    let mut ids = BTreeSet::new();
    for client in clients {
        ids.extend(client.await.unwrap());
    }
    assert_eq!(ids.len(), CLIENTS * WRITES);
    drop(daemon);
    let (surface, _) = vault::open(directory.path()).await;
    let owner = Call::bearer("test", Secret::new(token));
    let held = surface.engine.count(&owner, Filter::default()).await.unwrap();
    assert_eq!(held, (CLIENTS * WRITES) as u64);
}
