//! A server in a temporary directory, and raw requests to it.

use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};

use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use yore_client::{Client, Target, api, input};
use yore_domain::memory::Draft;
use yore_domain::query::Recall;
use yore_engine::Secret;
use yore_server::{Config, Host, KeySource, Layers, Note, Result};

pub(crate) struct Server {
    pub(crate) place: TempDir,
    pub(crate) note: Note,
    pub(crate) token: Secret,
    stop: oneshot::Sender<()>,
    task: JoinHandle<Result<()>>,
}

/// Layers for a data directory of the test's own, with free ports.
pub(crate) fn layers(place: &TempDir) -> Layers {
    Layers::new()
        .set("data", place.path().join("data").to_str().unwrap())
        .set("listen.http", "127.0.0.1:0")
        .set("listen.https", "127.0.0.1:0")
        .set("effort", "instant")
        .set("limits.idle_millis", 300)
        .key(KeySource::Text(Secret::new("5a".repeat(32))))
}

pub(crate) fn config(place: &TempDir) -> Config {
    Config::load(layers(place)).unwrap()
}

impl Server {
    pub(crate) async fn start() -> Self {
        Self::start_with(|layers| layers).await
    }

    pub(crate) async fn start_with(change: impl FnOnce(Layers) -> Layers) -> Self {
        log();
        let place = tempfile::tempdir().unwrap();
        let config = Config::load(change(layers(&place))).unwrap();
        let host = Host::open(config).await.unwrap();
        let token = host.first_token().cloned().expect("the first start makes a token");
        let listeners = host.listen().await.unwrap();
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(host.serve(listeners, async move {
            // An error means that the sender is gone, which ends the server too.
            let _ = stopped.await;
        }));
        let note = loop {
            match Note::read(&place.path().join("data")) {
                Some(note) => break note,
                None => tokio::time::sleep(std::time::Duration::from_millis(5)).await,
            }
        };
        Self { place, note, token, stop, task }
    }

    pub(crate) fn http(&self) -> SocketAddr {
        self.note.http.unwrap()
    }

    pub(crate) fn target(&self) -> Target {
        format!("http://{}", self.http()).parse().unwrap()
    }

    pub(crate) fn tls_target(&self) -> Target {
        let target: Target = format!("https://{}", self.note.https.unwrap()).parse().unwrap();
        target.trusting(self.note.ca.clone().unwrap())
    }

    pub(crate) fn socket_target(&self) -> Target {
        Target::Socket(self.note.socket.clone().unwrap())
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(self.target()).unwrap().with_token(self.token.clone())
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.place.path().join("data")
    }

    /// Asks the server to end without waiting for it.
    pub(crate) fn ending(self) -> (TempDir, JoinHandle<Result<()>>) {
        self.stop.send(()).unwrap();
        (self.place, self.task)
    }

    pub(crate) async fn end(self) -> TempDir {
        let (place, task) = self.ending();
        task.await.unwrap().unwrap();
        place
    }

    /// Posts to an operation with the owner's token and returns status and body.
    pub(crate) async fn post(&self, operation: &str, body: &str) -> (u16, String) {
        let token = format!("Bearer {}", self.token.expose());
        self.raw(operation, &[("Authorization", &token)], body).await
    }

    /// Posts with exactly these headers besides the host and the length.
    pub(crate) async fn raw(
        &self,
        operation: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> (u16, String) {
        let mut head = format!("POST /api/v1/{operation} HTTP/1.1\r\nConnection: close\r\n");
        if !headers.iter().any(|(name, _)| *name == "Host") {
            head += "Host: localhost\r\n";
        }
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        head += &format!("Content-Length: {}\r\n\r\n{body}", body.len());
        exchange(self.http(), head.as_bytes()).await
    }

    pub(crate) async fn get(&self, path: &str) -> (u16, String) {
        let head = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        exchange(self.http(), head.as_bytes()).await
    }
}

/// Sends bytes and reads status and everything after the head.
pub(crate) async fn exchange(at: SocketAddr, bytes: &[u8]) -> (u16, String) {
    let mut stream = TcpStream::connect(at).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    answer(&mut stream).await
}

pub(crate) async fn answer(stream: &mut TcpStream) -> (u16, String) {
    let mut read = Vec::new();
    stream.read_to_end(&mut read).await.unwrap();
    let text = String::from_utf8(read).unwrap();
    let status = text.split(' ').nth(1).unwrap_or_else(|| panic!("no status in {text:?}"));
    (status.parse().unwrap(), text.clone())
}

pub(crate) fn remember(text: &str) -> input::Remember {
    input::Remember { draft: Draft::text(text), id: None, wish: api::Wish::default() }
}

pub(crate) fn recall(query: &str) -> Recall {
    serde_json::from_value(serde_json::json!({ "query": query, "limit": 5, "effort": "instant" }))
        .unwrap()
}

/// The texts that a recall finds.
pub(crate) async fn found(client: &Client, query: &str) -> Vec<String> {
    let recalled = client.call::<api::Recall>(recall(query)).await.unwrap();
    recalled.results.iter().map(|hit| hit.found.text().to_owned()).collect()
}

/// Everything that was logged by this program so far.
pub(crate) fn logged() -> String {
    String::from_utf8_lossy(&log().0.lock().unwrap()).into_owned()
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Everything of ours at the finest level, of others what an operator would switch on.
fn log() -> &'static Log {
    static LOG: OnceLock<Log> = OnceLock::new();
    LOG.get_or_init(|| {
        let log = Log::default();
        let writer = log.clone();
        let layer = tracing_subscriber::fmt::layer()
            .with_ansi(false)
            .with_span_events(tracing_subscriber::fmt::format::FmtSpan::FULL)
            .with_writer(move || writer.clone());
        let levels = Targets::new().with_default(LevelFilter::DEBUG).with_targets([
            ("yore_server", LevelFilter::TRACE),
            ("yore_engine", LevelFilter::TRACE),
            ("yore_store_sqlite", LevelFilter::TRACE),
            ("yore_client", LevelFilter::TRACE),
        ]);
        tracing_subscriber::registry().with(layer).with(levels).init();
        log
    })
}
