//! UAMP by programs that share nothing with the server: the example in Python, curl, and the
//! libraries of HTTP/3, WebSockets and gRPC.

use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::home::Home;
use super::serving::Serving;
use super::tools::Python;
use super::{Book, succeed};
use crate::workspace::{root, target_dir};

const PACKAGES: [&str; 8] = [
    "cryptography==48.0.0",
    "grpcio==1.85.1",
    "grpcio-reflection==1.85.1",
    "protobuf==7.36.2",
    "aioquic==1.7.1",
    "websockets==17.4",
    "h2==4.4.1",
    "wsproto==1.3.2",
];
/// A clock that stands where a test wants it, for a server that knows nothing of it.
const CLOCK: &str = include_str!("agents/clock.c");
/// The time of the vectors.
const THEN: (u64, &str) = (1_767_323_100, "2026-01-02T03:05:00Z");
/// A client that sends every vector, over whichever transport it is told.
const VECTORS: &str =
    concat!(include_str!("agents/transports.py"), include_str!("agents/vectors_client.py"));
/// A client that reads a stream which is cut again and again.
const CUTS: &str =
    concat!(include_str!("agents/transports.py"), include_str!("agents/cuts_client.py"));
/// A file with so many frames, read in so many pieces that its stream is cut about so many times.
const SHORT: (usize, usize) = (200, 20);
const FULL: (usize, usize) = (10_000, 100);
/// How much of a file a frame carries.
const PIECE: usize = 24 << 10;
/// A web with good and bad documents.
const DOCUMENTS: &str = include_str!("agents/documents_client.py");
/// What everybody knows of whoever is named by a web address in the vectors.
const VECTORS_FILE: &str = "tests/vectors/uamp/vectors.json";
/// The example that people are given.
const EXAMPLE: &str = include_str!("../../../examples/uamp/ask.py");
/// A client that learns the service from the server itself.
const GRPC: &str = include_str!("agents/grpc_client.py");

/// The transports, with the names of what is shown on each.
const TRANSPORTS: [(&str, &str); 5] = [
    ("h2", "uamp_022_uamp_044_every_vector_over_http_2_by_curl"),
    ("h3", "uamp_061_every_vector_over_http_3_by_aioquic"),
    ("ws", "uamp_062_every_vector_over_websockets_by_websockets"),
    ("ws2", "uamp_060_every_vector_over_websockets_in_http_2_by_h2_and_wsproto"),
    ("grpc", "uamp_064_every_vector_over_grpc_by_grpcio"),
];

/// A server with an agent that has the owner's token, ready to be asked.
struct Scene {
    _serving: Serving,
    url: String,
    ca: String,
    token: String,
    key: String,
}

/// Lets foreign clients speak with the real server.
pub(super) fn run(book: &mut Book, full: bool) -> Result<()> {
    let python = Python::with("uamp", &PACKAGES)?;
    book.check("uamp_022_uamp_040_uamp_047_the_example_signs_asks_and_resumes", || {
        let scene = Scene::new(&python, "uamp-example")?;
        let mut ask = python.command();
        ask.args(["-c", EXAMPLE, "--url", &scene.url, "--ca", &scene.ca, "--key", &scene.key]);
        let said = succeed(ask.args(["--token", &scene.token, "what am I allergic to?"]))?;
        anyhow::ensure!(said.contains("peanuts"), "the answer is not in it:\n{said}");
        anyhow::ensure!(said.contains("2 frames over 2 connections"), "not resumed:\n{said}");
        Ok(())
    });
    book.check("uamp_064_a_grpc_client_learns_the_service_from_the_server_and_asks", || {
        let scene = Scene::new(&python, "uamp-grpc")?;
        let mut ask = python.command();
        ask.args(["-c", GRPC, &scene.url, &scene.ca, &scene.key, EXAMPLE]);
        let said = succeed(ask.env("UAMP_TOKEN", &scene.token))?;
        anyhow::ensure!(said.contains("peanuts"), "the answer is not in it:\n{said}");
        Ok(())
    });
    let name = "uamp_027_documents_that_redirect_overflow_lie_or_lie_within_are_refused";
    book.check(name, || documents(&python));
    book.check("uamp_047_uamp_056_a_stream_cut_at_random_goes_on_over_any_transport", || {
        cuts(&python, if full { FULL } else { SHORT })
    });
    if !cfg!(target_os = "linux") {
        for (_, name) in TRANSPORTS {
            book.not_run(name, "the clock of a server is set back on Linux only");
        }
        return Ok(());
    }
    let clock = clock()?;
    for (transport, name) in TRANSPORTS {
        book.check(name, || every_vector(&python, &clock, transport));
    }
    Ok(())
}

/// Lets the server fetch documents over real TLS: from a host it may reach, and then as if not.
fn documents(python: &Python) -> Result<()> {
    for allowed in [true, false] {
        let home = Home::new(&format!("uamp-documents-{allowed}"))?;
        let (certificate, key) = (home.path("web.pem"), home.path("web.key"));
        let mut prepare = python.command();
        prepare.args(["-c", DOCUMENTS, "prepare", &certificate, &key]);
        let port = succeed(&mut prepare)?.trim().to_owned();
        let home = home.with(&[("SSL_CERT_FILE", certificate.clone())]);
        let config = home.path("config.toml");
        let hosts = if allowed { format!("\"localhost:{port}\"") } else { String::new() };
        std::fs::write(&config, format!("[uamp]\nprivate_hosts = [{hosts}]\n"))?;
        let scene = Scene::of(&home, python, &["--config", &config], None)?;
        for name in ["good", "redirect", "large", "lies"] {
            let did = format!("did:web:localhost%3A{port}:{name}");
            succeed(&mut home.command(&["agent", "register", &did, "--own"]))?;
        }
        let mut send = python.command();
        send.args(["-c", DOCUMENTS, "send", &port, &certificate, &key, &scene.url, &scene.ca]);
        let sent = send.args([scene.token.as_str(), &scene.key, EXAMPLE]).output()?;
        let said = String::from_utf8_lossy(&sent.stderr);
        if allowed {
            anyhow::ensure!(sent.status.success(), "{said}");
        } else {
            // The first is refused as the others are, though its document is good.
            anyhow::ensure!(said.contains("('good', 401"), "a private address was asked:\n{said}");
        }
    }
    Ok(())
}

/// Reads a file as a stream over five transports in turn, by chance, and hangs up in between.
fn cuts(python: &Python, (frames, cuts): (usize, usize)) -> Result<()> {
    let home = Home::new("uamp-cuts")?;
    let scene = Scene::of(&home, python, &[], None)?;
    let file = home.path("file");
    // Bytes that nothing packs, the same each time.
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut bytes = vec![0_u8; frames * PIECE];
    for word in bytes.chunks_exact_mut(8) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        word.copy_from_slice(&state.to_le_bytes());
    }
    std::fs::write(&file, bytes)?;
    let kept = succeed(&mut home.command(&["attach", "add", &file, "--json"]))?;
    let kept: Value = serde_json::from_str(&kept)?;
    let blob = kept["blob"].as_str().context("the file has a hash")?;
    let mut read = python.command();
    read.args(["-c", CUTS, &scene.url, &scene.ca, &scene.key, EXAMPLE, blob]);
    read.args([(2 * frames / cuts).to_string(), "7".to_owned()]);
    let said = succeed(read.env("UAMP_TOKEN", &scene.token))?;
    let said: Value = serde_json::from_str(&said)?;
    let number = |name: &str| said[name].as_u64().unwrap_or_default();
    anyhow::ensure!(number("frames") >= frames as u64, "too few frames: {said}");
    anyhow::ensure!(number("readings") >= cuts as u64 / 2, "too few cuts: {said}");
    Ok(())
}

/// Makes the library that sets a clock back; returns where it lies.
fn clock() -> Result<String> {
    let place = target_dir()?.join("tools/clock");
    std::fs::create_dir_all(&place)?;
    let (source, library) = (place.join("clock.c"), place.join("clock.so"));
    std::fs::write(&source, CLOCK)?;
    let mut compile = Command::new("cc");
    compile.args(["-O1", "-shared", "-fPIC", "-o"]).arg(&library).arg(&source);
    succeed(&mut compile)?;
    Ok(library.display().to_string())
}

/// How many seconds ago the time of the vectors was.
#[expect(clippy::disallowed_methods, reason = "the programs' own clock is what is set back")]
fn back() -> Result<String> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    Ok(now.saturating_sub(THEN.0).to_string())
}

/// Sends every vector to a server at the time of the vectors.
///
/// The clients keep their clocks; they send what was signed then. So the server shows them a
/// certificate that holds at both times.
fn every_vector(python: &Python, clock: &str, transport: &str) -> Result<()> {
    // Two vectors have one id and say different things, which no vault takes in both.
    for (turn, sent) in
        [("first", "34 vectors and a question"), ("second", "1 vector and a question")]
    {
        let said = vectors_to_a_new_server(python, clock, transport, turn)?;
        anyhow::ensure!(said.contains(sent), "not all of them:\n{said}");
    }
    Ok(())
}

fn vectors_to_a_new_server(
    python: &Python,
    clock: &str,
    transport: &str,
    turn: &str,
) -> Result<String> {
    let then = [("LD_PRELOAD", clock.to_owned()), ("CLOCK_BACK", back()?)];
    let home = Home::new(&format!("uamp-vectors-{transport}-{turn}"))?.with(&then);
    let (certificate, key) = (home.path("web.pem"), home.path("web.key"));
    succeed(python.command().args(["-c", DOCUMENTS, "prepare", &certificate, &key]))?;
    let vectors_file = root().join(VECTORS_FILE);
    let vectors: Value = serde_json::from_slice(&std::fs::read(&vectors_file)?)?;
    let (document, config) = (home.path("worker.json"), home.path("config.toml"));
    std::fs::write(&document, vectors["documents"]["did_web"]["document"].to_string())?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let alice = text(&vectors["keys"]["alice"]["did"]);
    let settings = format!(
        "[tls]\ncertificate = \"{certificate}\"\nkey = \"{key}\"\n\
         [trust]\ndid = \"did:web:memory.example\"\nissuers = [\"{alice}\"]\n\
         [uamp.documents]\n\"did:web:worker.example\" = \"{document}\"\n"
    );
    std::fs::write(&config, settings)?;
    let scene = Scene::of(&home, python, &["--config", &config], Some(&certificate))?;
    let mut tokens = json!({ "owner": scene.token, "key": scene.key });
    for name in ["alice", "bob", "mallory", "worker"] {
        let did = match name {
            "worker" => "did:web:worker.example".to_owned(),
            name => text(&vectors["keys"][name]["did"]),
        };
        succeed(&mut home.command(&["agent", "register", &did, "--name", name]))?;
        let issue = ["token", "issue", "--agent", name, "--verbs", "read,write,derive"];
        tokens[did] = succeed(&mut home.command(&issue))?.trim().into();
    }
    let mut send = python.command();
    send.args(["-c", VECTORS, transport, &scene.url, &scene.ca]);
    send.arg(&vectors_file).arg(tokens.to_string()).args([EXAMPLE, THEN.1, turn]);
    succeed(&mut send)
}

impl Scene {
    fn new(python: &Python, name: &str) -> Result<Self> {
        Self::of(&Home::new(name)?, python, &[], None)
    }

    /// A server with more arguments; clients trust a certificate, or the one that it names.
    fn of(home: &Home, python: &Python, more: &[&str], trusted: Option<&str>) -> Result<Self> {
        let (serving, ready) = home.serve_tls_with(more)?;
        let said = |member: &str| -> Result<String> {
            let value = ready[member].as_str().map(str::to_owned);
            value.with_context(|| format!("the server names its {member}"))
        };
        let https = said("https")?;
        let ca = trusted.map_or_else(|| said("ca"), |trusted| Ok(trusted.to_owned()))?;
        let port = https.rsplit(':').next().context("an address has a port")?;
        let url = format!("https://localhost:{port}");
        let key = home.path("agent.pem");
        let did = succeed(python.command().args(["-c", EXAMPLE, "--did", "--key", &key]))?;
        succeed(&mut home.command(&["agent", "register", did.trim(), "--own"]))?;
        succeed(&mut home.command(&["remember", "I am allergic to peanuts"]))?;
        let token = succeed(&mut home.command(&["token", "owner"]))?.trim().to_owned();
        Ok(Self { _serving: serving, url, ca, token, key })
    }
}
