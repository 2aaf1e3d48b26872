//! What a message costs beside what it cannot cost less than, how soon its answer begins, what
//! waiting subscribers take, and how fast a long stream is read again.
//!
//! Everything runs through the protocol's own router in this process, on one core; TLS and the
//! sockets are left out on both sides.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use axum::Router;
use axum::body::Body;
use axum::http::Request;
use futures::{StreamExt, TryStreamExt, stream};
use http_body_util::BodyExt;
use rusqlite::{Connection, params};
use serde_json::{Value, json};
use tower::ServiceExt;
use yore_canon::did::{Did, KeyId};
use yore_canon::hash::Sha256;
use yore_canon::key::{Algorithm, SigningKey};
use yore_canon::{jcs, jws};
use yore_domain::stream::{Pending, StreamState};
use yore_domain::{MessageId, Span};
use yore_engine::dialect::Registry;
use yore_engine::{Appending, Call, Incoming, Opening, Peer as Known};
use yore_http::{Peer, Surface, Way};
use yore_uamp::{Options, Uamp, Web};

use crate::meter::{Series, cpu, pin, start};
use crate::report::{self, Report};
use crate::world::World;

/// Messages that are under way at once, and rows in one transaction of the plain insert.
const TOGETHER: usize = 64;

/// Arguments of `yore-bench uamp`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Where vaults are made; must lie on a disk.
    #[arg(long)]
    work: PathBuf,
    /// Write everything measured into this file.
    #[arg(long)]
    json: Option<PathBuf>,
    /// The commit that is measured.
    #[arg(long, default_value = "unknown")]
    commit: String,
    /// Small sizes and few repetitions: shows that it runs, proves no bar.
    #[arg(long)]
    quick: bool,
}

/// A vault behind the protocol, and an agent that signs.
struct Scene {
    world: World,
    uamp: Uamp,
    router: Router,
    key: SigningKey,
    did: String,
    to: String,
    token: String,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    pin()?;
    if arguments.work.exists() {
        std::fs::remove_dir_all(&arguments.work)?;
    }
    std::fs::create_dir_all(&arguments.work)?;
    let mut report = Report::default();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(Box::pin(measure(arguments, &mut report)))?;
    println!("{}", report.table());
    if let Some(path) = &arguments.json {
        report::write(path, &report.to_json(&arguments.commit))?;
    }
    Ok(())
}

async fn measure(arguments: &Arguments, report: &mut Report) -> Result<()> {
    let quick = arguments.quick;
    let (messages, questions, subscribers, frames) =
        if quick { (128, 8, 50, 500) } else { (6400, 200, 1000, 10_000) };
    let known = |value: f64| (!quick).then_some(value);
    let scene = Scene::new(&arguments.work.join("vault")).await?;

    let bodies: Vec<String> =
        (0..messages + TOGETHER).map(|number| scene.notify(&format!("note {number}"))).collect();
    let plain = scene.plain(arguments, &bodies[..messages.min(2048)])?;
    scene.accept(&bodies[messages..]).await?;
    let took = start();
    scene.accept(&bodies[..messages]).await?;
    let took = took();
    let each = took.cpu.as_secs_f64() * 1e6 / messages as f64;
    report.figure(
        "accepting",
        json!({
            "messages": messages, "cpu_us_each": each, "per_second_per_core": 1e6 / each,
            "wall_us_each": took.wall.as_secs_f64() * 1e6 / messages as f64,
        }),
    );
    let bound = plain.verify + plain.insert;
    report.figure(
        "plain",
        json!({
            "verify_us": plain.verify, "insert_us": plain.insert, "per_second_per_core": 1e6 / bound,
        }),
    );
    let floor = 0.5e6 / bound;
    report.at_least("accepted messages a second on one core", "/s", floor, known(1e6 / each));

    // The same when nothing of it is kept but that it came.
    scene.recorded(false).await?;
    let bodies: Vec<String> =
        (0..messages).map(|number| scene.notify(&format!("note {number}"))).collect();
    let took = start();
    scene.accept(&bodies).await?;
    let each = took().cpu.as_secs_f64() * 1e6 / messages as f64;
    let bare = json!({ "cpu_us_each": each, "per_second_per_core": 1e6 / each });
    report.figure("accepting without a transcript", bare);
    scene.recorded(true).await?;

    let first = scene.first_frames(questions).await?;
    report.figure("first frame after accept", first.to_json());
    report.at_most("first frame after accept, p50", "ms", 10.0, known(first.wall(0.5)));

    // What is kept of a message is a change, of which those who wait would be told.
    scene.recorded(false).await?;
    let waiting = scene.subscribers(subscribers).await?;
    report.figure("subscribers", json!({ "count": subscribers, "mb": waiting }));
    report.at_most("1000 idle subscribers", "MB", 100.0, known(waiting));

    let again = scene.resumed(frames).await?;
    report.figure("resume", json!({ "frames": frames, "ms": again.as_secs_f64() * 1e3 }));
    let bar = "resume of 10000 frames";
    report.at_most(bar, "ms", 100.0, known(again.as_secs_f64() * 1e3));
    scene.uamp.stop().await;
    scene.world.close().await
}

/// Microseconds of CPU of what no server can leave out.
struct Plain {
    verify: f64,
    insert: f64,
}

impl Scene {
    async fn new(data: &std::path::Path) -> Result<Self> {
        let world = World::open(data).await?;
        let key = SigningKey::generate(Algorithm::Ed25519, &[5; 32]);
        let did = Did::of_key(&key.verifying_key()).as_str().to_owned();
        let registry = Arc::new(Registry::default());
        let web = Arc::new(Web::new(Vec::new()));
        let uamp = Uamp::new(world.engine.clone(), Arc::clone(&registry), Options::default(), web);
        let surface = Surface::new(world.engine.clone(), registry);
        let router = yore_uamp::routes(surface, uamp.clone());
        let to = world.engine.server_did().await?;
        let token = world.owner.credentials.bearer.as_ref().context("the owner has a token")?;
        let token = token.expose().to_owned();
        let scene = Self { uamp, router, key, did, to, token, world };
        scene.recorded(true).await?;
        Ok(scene)
    }

    /// Registers the agent, and says whether what it says is kept.
    async fn recorded(&self, recorded: bool) -> Result<()> {
        let (did, registered) = (self.did.clone(), self.world.engine.now());
        let known = Known { did, agent: None, recorded, registered };
        self.world.engine.register_peer(&self.world.owner, known).await?;
        Ok(())
    }

    fn signed(&self, intent: &str, text: &str, stream: Option<&str>) -> String {
        let mut envelope = json!({
            "id": format!("urn:uuid:{}", MessageId::random()),
            "ts": self.world.engine.now().to_string(), "from": self.did, "to": [self.to],
            "intent": intent, "body": { "type": "text/plain", "content": text },
        });
        if let Some(stream) = stream {
            envelope["stream_id"] = stream.into();
        }
        let Value::Object(mut object) = envelope else { unreachable!("it is an object") };
        let payload = jws::digest_payload(&Sha256::of(jcs::canonical_object(&object)));
        let kid = KeyId::of_key(&self.key.verifying_key()).to_string();
        let sig = jws::sign_detached(&self.key, &kid, payload.as_bytes());
        object.insert("sig".into(), sig.into());
        Value::Object(object).to_string()
    }

    fn notify(&self, text: &str) -> String {
        self.signed("notify", text, None)
    }

    fn request(&self, method: &str, path: &str, body: String) -> Result<Request<Body>> {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header("authorization", format!("Bearer {}", self.token))
            .header("content-type", "application/uamp+json")
            .body(Body::from(body))?;
        request.extensions_mut().insert(Peer { way: Way::Tls, address: None });
        Ok(request)
    }

    /// Sends messages, many at once, each of which must be taken in.
    async fn accept(&self, bodies: &[String]) -> Result<()> {
        let sending = bodies.iter().map(|body| async move {
            let request = self.request("POST", "/v1/messages", body.clone())?;
            let answer = self.router.clone().oneshot(request).await?;
            ensure!(answer.status() == 202, "a message was not taken: {}", answer.status());
            Ok(())
        });
        stream::iter(sending).buffer_unordered(TOGETHER).try_collect().await
    }

    /// Verifies the same signatures, and writes the same bytes into an encrypted file by
    /// transactions of many.
    fn plain(&self, arguments: &Arguments, bodies: &[String]) -> Result<Plain> {
        let checks: Vec<(Value, String)> = bodies
            .iter()
            .map(|body| {
                let mut envelope: Value = serde_json::from_str(body)?;
                let members = envelope.as_object_mut().context("it is an object")?;
                let sig = members.remove("sig").context("it is signed")?;
                let digest = Sha256::of(jcs::canonical(&envelope));
                Ok((sig, jws::digest_payload(&digest)))
            })
            .collect::<Result<_>>()?;
        let key = self.key.verifying_key();
        let before = cpu();
        for (sig, payload) in &checks {
            let sig = sig.as_str().context("a signature is text")?;
            let compact = jws::Compact::parse(sig)?;
            compact.verify_detached(payload.as_bytes(), &key)?;
        }
        let verify = (cpu() - before).as_secs_f64() * 1e6 / checks.len() as f64;
        let connection = Connection::open(arguments.work.join("plain.db"))?;
        let master = "2b7e151628aed2a6abf7158809cf4f3c2b7e151628aed2a6abf7158809cf4f3c";
        connection.pragma_update(None, "key", format!("x'{master}'"))?;
        connection.execute_batch("PRAGMA cipher_hmac_algorithm = HMAC_SHA256")?;
        connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.execute_batch(
            "CREATE TABLE letter (seq INTEGER PRIMARY KEY, sender TEXT NOT NULL, id TEXT NOT NULL,
                data TEXT NOT NULL, UNIQUE (sender, id))",
        )?;
        let before = cpu();
        let mut insert =
            connection.prepare("INSERT INTO letter (sender, id, data) VALUES (?1, ?2, ?3)")?;
        for (number, group) in bodies.chunks(TOGETHER).enumerate() {
            connection.execute_batch("BEGIN IMMEDIATE")?;
            for (row, body) in group.iter().enumerate() {
                insert.execute(params![self.did, format!("{number}-{row}"), body])?;
            }
            connection.execute_batch("COMMIT")?;
        }
        let insert = (cpu() - before).as_secs_f64() * 1e6 / bodies.len() as f64;
        Ok(Plain { verify, insert })
    }

    /// From the answer 202 to the first frame of a recall.
    async fn first_frames(&self, questions: usize) -> Result<Series> {
        let mut series = Series::default();
        for number in 0..questions {
            let stream = format!("ask-{number}");
            let body = self.signed("ask", "which note was it?", Some(&stream));
            self.accept(&[body]).await?;
            let took = start();
            let request = self.request("GET", &format!("/v1/stream/{stream}"), String::new())?;
            let answer = self.router.clone().oneshot(request).await?;
            let mut body = answer.into_body();
            loop {
                let frame = body.frame().await.context("the stream ended early")??;
                let data = frame.into_data().unwrap_or_default();
                if String::from_utf8_lossy(&data).contains("data: ") {
                    break;
                }
            }
            series.push(took());
        }
        Ok(series)
    }

    /// Megabytes that so many streams take on which nothing happens.
    async fn subscribers(&self, count: usize) -> Result<f64> {
        let before = resident()?;
        let mut open = Vec::new();
        for number in 0..count {
            let stream = format!("changes-{number}");
            let envelope = self.signed("subscribe", "changes", Some(&stream));
            self.accept(&[envelope]).await?;
            let request = self.request("GET", &format!("/v1/stream/{stream}"), String::new())?;
            let answer = self.router.clone().oneshot(request).await?;
            ensure!(answer.status() == 200, "no stream: {}", answer.status());
            let mut body = answer.into_body();
            // The first bytes are the time after which to come back; then it waits.
            let _ = tokio::time::timeout(Duration::from_millis(5), body.frame()).await;
            open.push(body);
        }
        Ok(resident()? - before)
    }

    /// How long it takes to read a stream that has ended from its beginning.
    async fn resumed(&self, frames: u64) -> Result<Duration> {
        let engine = &self.world.engine;
        let now = engine.now();
        let opens = Opening {
            id: "long".into(),
            window: 1024,
            pending: Pending::Answer { until: now.plus(Span::days(1)) },
        };
        let incoming = Incoming {
            sender: self.did.clone(),
            id: MessageId::random().to_string(),
            digest: "d".into(),
            sent: now,
            tolerance: Span::seconds(300),
            to: vec![self.to.clone()],
            reply_to: None,
            context: Vec::new(),
            opens: Some(opens),
            unsettled: true,
            expires: now.plus(Span::days(1)),
            bytes: Vec::new(),
            said: None,
        };
        let call = Call { protocol: "uamp", ..self.world.owner.clone() };
        let ticket = engine.accept(&call, incoming).await?.ticket;
        for first in (0..frames).step_by(500) {
            let next = (first + 500).min(frames);
            let frame = |number: u64| {
                let kind = if number + 1 == frames { "done" } else { "chunk" };
                let frame = json!({"delta_seq": number, "payload": {"index": number},
                                   "stream_id": "long", "ts": now.to_string(), "type": kind});
                jcs::canonical(&frame).into_bytes()
            };
            let appending = Appending {
                first,
                frames: (first..next).map(frame).collect(),
                ends: (next == frames).then_some(StreamState::Completed),
                pending: None,
                said: None,
            };
            ensure!(engine.append_frames(&ticket, "long", appending).await?, "frames not taken");
        }
        // Whoever comes back says where it was; each time it gets as much as the window allows.
        let begun = Instant::now();
        let (mut read, mut last) = (0, None);
        while read < frames {
            let mut delivery =
                self.uamp.follow(&call, "long", last, Some(Duration::ZERO)).await.map_err(told)?;
            let before = read;
            while let Some(frame) = delivery.next().await {
                last = Some(frame.map_err(told)?.number);
                read += 1;
            }
            ensure!(read > before, "the stream stands still at {read}");
        }
        Ok(begun.elapsed())
    }
}

fn told(refusal: yore_uamp::Refusal) -> anyhow::Error {
    anyhow::anyhow!("{}: {}", refusal.code.as_str(), refusal.message)
}

/// Megabytes of this process that lie in memory.
fn resident() -> Result<f64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes: f64 = line.context("no VmRSS")?.trim().trim_end_matches(" kB").trim().parse()?;
    Ok(kilobytes / 1024.0)
}
