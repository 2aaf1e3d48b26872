//! Yore as it is shipped: a server in a process of its own, asked over HTTP.
//!
//! Only the server's CPU is counted, as with every peer that is a process of its own.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use yore_domain::query::Effort;

use super::inside::{draft, peak, question};
use super::scene::{Scene, user};
use super::stage::{Stage, tell};
use super::{Wanted, disk};
use crate::world::MASTER;

/// How many connections write while the vault is filled.
const LOADERS: usize = 8;
/// CPU seconds in half a second that count as rest.
const QUIET: f64 = 0.02;

/// The server, and connections to it.
struct Served {
    process: Child,
    connections: Vec<Arc<Mutex<Connection>>>,
}

impl Served {
    fn start(binary: &Path, store: &Path, effort: &str, token: Option<&str>) -> Result<Self> {
        let mut process = Command::new(binary)
            .args(["serve", "--json", "--listen", "127.0.0.1:0", "--tls-listen", "off", "--data"])
            .arg(store.join("data"))
            .env("YORE_MASTER_KEY", MASTER)
            .env("YORE_EFFORT", effort)
            .env("YORE_LOG", "error")
            .env("HOME", store)
            .env("XDG_CONFIG_HOME", store.join("config"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}", binary.display()))?;
        let mut line = String::new();
        let output = process.stdout.take().context("the output was asked for")?;
        BufReader::new(output).read_line(&mut line)?;
        let ready: Value = serde_json::from_str(&line).context("the server did not start")?;
        let address = ready["http"].as_str().context("the server says where it is")?;
        let address = address.trim_start_matches("http://").trim_end_matches('/');
        let token = token.or(ready["owner_token"].as_str()).context("a token")?.to_owned();
        let connections = (0..LOADERS)
            .map(|_| Connection::open(address, &token).map(|one| Arc::new(Mutex::new(one))))
            .collect::<Result<_>>()?;
        Ok(Self { process, connections })
    }

    fn token(&self) -> Result<String> {
        Ok(self.connections[0].lock().expect("nobody panics with it").token.clone())
    }

    /// Waits until it has nothing left to prepare, and says what that took.
    fn settle(&self) -> Result<()> {
        let until = Instant::now() + Duration::from_secs(1800);
        let id = self.process.id();
        while Instant::now() < until {
            let before = seconds(id)?;
            std::thread::sleep(Duration::from_millis(500));
            if seconds(id)? - before <= QUIET {
                return Ok(());
            }
        }
        bail!("the server does not come to rest")
    }

    fn stop(mut self) -> Result<()> {
        let id = rustix::process::Pid::from_child(&self.process);
        rustix::process::kill_process(id, rustix::process::Signal::TERM)?;
        ensure!(self.process.wait()?.success(), "the server did not end well");
        Ok(())
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // It may have ended by itself.
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// CPU seconds of a process so far, to the hundredth.
fn seconds(process: u32) -> Result<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"))?;
    let (_, fields) = stat.rsplit_once(')').context("the process has no name")?;
    let mut ticks = 0.0;
    for field in fields.split_whitespace().skip(11).take(2) {
        ticks += field.parse::<f64>()?;
    }
    Ok(ticks / rustix::param::clock_ticks_per_second() as f64)
}

/// One connection that stays open.
struct Connection {
    stream: BufReader<TcpStream>,
    address: String,
    token: String,
}

impl Connection {
    fn open(address: &str, token: &str) -> Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        let stream = BufReader::new(stream);
        Ok(Self { stream, address: address.to_owned(), token: token.to_owned() })
    }

    /// Asks for an operation of the native API, which must succeed.
    fn ask(&mut self, operation: &str, input: &Value) -> Result<Value> {
        let body = input.to_string();
        let request = format!(
            "POST /api/v1/{operation} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            self.address,
            self.token,
            body.len()
        );
        self.stream.get_mut().write_all(request.as_bytes())?;
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            ensure!(self.stream.read_line(&mut head)? > 0, "the server closed the connection");
        }
        let head = head.to_ascii_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
        let length: usize = length.context("an answer without a length")?.trim().parse()?;
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body)?;
        let answer = serde_json::from_slice(&body)?;
        ensure!(head.starts_with("http/1.1 200"), "{operation} was refused: {answer}");
        Ok(answer)
    }
}

/// What is asked over the connections.
#[derive(Clone)]
struct Asking {
    scene: Arc<Scene>,
    users: usize,
    connections: Vec<Arc<Mutex<Connection>>>,
}

impl Asking {
    fn of(served: &Served, scene: &Arc<Scene>, users: usize) -> Self {
        Self { scene: scene.clone(), users, connections: served.connections.clone() }
    }

    /// Sends on the connection of a client and waits there; each client has a thread.
    async fn on(&self, client: usize, operation: &'static str, input: Value) -> Result<Value> {
        let connection = self.connections[client % self.connections.len()].clone();
        let asked = tokio::task::spawn_blocking(move || {
            connection.lock().expect("nobody panics with it").ask(operation, &input)
        });
        asked.await?
    }

    async fn add(&self, client: usize, number: usize) -> Result<()> {
        let draft = draft(&self.scene, number, self.users);
        self.on(client, "remember", json!({ "draft": draft })).await.map(drop)
    }

    async fn ask(&self, client: usize, number: usize, effort: Effort) -> Result<()> {
        let recall = serde_json::to_value(question(&self.scene, number, self.users, effort))?;
        let answer = self.on(client, "recall", recall).await?;
        let wanted = user(number, self.users);
        let results = answer["results"].as_array().context("a recall has results")?;
        ensure!(!results.is_empty(), "nothing was found for question {number}");
        let of = |hit: &Value| hit.to_string().contains(&format!("\"{wanted}\""));
        ensure!(results.iter().all(of), "somebody else's memory was found");
        Ok(())
    }
}

/// Fills, adds and asks, and prints a line for each cell.
pub(crate) async fn cells(
    binary: &Path,
    scene: &Path,
    store: &Path,
    wanted: &Wanted,
) -> Result<()> {
    std::fs::create_dir_all(store)?;
    let scene = Arc::new(Scene::at(scene));
    // While it adds, the server makes no vectors by the transformer: the peers are given theirs.
    let served = Served::start(binary, store, "instant", None)?;
    tell(&json!({ "versions": { "yore": env!("CARGO_PKG_VERSION") } }))?;
    let asking = Asking::of(&served, &scene, wanted.users);
    let base = wanted.size - 2 * wanted.sample;
    let time = Duration::from_secs(wanted.fill_seconds);
    let fill = Stage { row: None, cell: "fill", clients: LOADERS, time };
    let id = served.process.id();
    let cpu = move || seconds(id);
    let worker = asking.clone();
    let work = move |client, number| {
        let worker = worker.clone();
        async move { worker.add(client, number).await }
    };
    let filled = fill.run(0..base, cpu, work.clone()).await?;
    tell(&json!({ "filled": filled.count, "way": "one after the other on eight connections" }))?;
    if filled.count < base {
        let error = format!("filled {} of {base} memories in time, then stopped", filled.count);
        return tell(&json!({ "error": error }));
    }
    let (first, second) = (base..base + wanted.sample, base + wanted.sample..wanted.size);
    for (clients, numbers) in [(1, first), (wanted.clients, second)] {
        served.settle()?;
        let done = wanted.stage(None, "add", clients).run(numbers, cpu, work.clone()).await?;
        tell(&done.line)?;
    }
    let kept = asking.on(0, "census", json!({})).await?["memories"].clone();
    tell(&json!({ "clients": wanted.clients, "kept": kept, "expected": wanted.size }))?;
    let token = served.token()?;
    tell(&json!({ "peak_kib": peak(&id.to_string())?, "disk": disk(store)? }))?;
    drop(asking);
    drop(work);
    served.stop()?;
    let (effort, word) = match wanted.size <= wanted.dense {
        true => (Effort::Balanced, "balanced"),
        false => (Effort::Instant, "instant"),
    };
    let served = Served::start(binary, store, word, Some(&token))?;
    let asking = Asking::of(&served, &scene, wanted.users);
    served.settle()?;
    let id = served.process.id();
    for clients in [1, wanted.clients] {
        for number in 0..wanted.questions {
            asking.ask(0, number, effort).await?;
        }
        served.settle()?;
        let worker = asking.clone();
        let work = move |client, number| {
            let worker = worker.clone();
            async move { worker.ask(client, number, effort).await }
        };
        let stage = wanted.stage(None, "search", clients);
        let mut done = stage.run(0..wanted.questions, move || seconds(id), work).await?;
        if effort == Effort::Instant {
            done.line["note"] = "without the transformer's vectors".into();
        }
        tell(&done.line)?;
    }
    tell(&json!({ "peak_kib": peak(&id.to_string())?, "disk": disk(store)? }))?;
    drop(asking);
    served.stop()
}
