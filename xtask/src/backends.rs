//! Real memory servers for the tests of their adapters: mem0's library, Letta and Cognee.
//!
//! All are installed below the target directory and run on the loopback interface. What they take
//! for a model is an endpoint of ours, whose vectors follow from the words; none of them reaches a
//! network.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::json;

use crate::foreign::{Python, Serving, succeed};
use crate::postgres::Postgres;
use crate::workspace::target_dir;

const EMBEDDER: &str = include_str!("backends/embedder.py");
const MEM0_SERVER: &str = include_str!("backends/mem0_server.py");
const LETTA_SCHEMA: &str = include_str!("backends/letta_schema.py");

const MEM0: [&str; 1] = ["mem0ai==2.2.1"];
const COGNEE: [&str; 1] = ["cognee==1.6.5"];
/// The last version that is a server. A newer pydantic breaks what it imports.
const LETTA: [&str; 7] = [
    "letta[sqlite,server]==0.16.8",
    "letta-client",
    "asyncpg",
    "pgvector",
    "pg8000",
    "psycopg2-binary",
    "pydantic==2.12.*",
];
/// Where a wheel that Cognee brings keeps the tables of tokens it would fetch.
const TOKENS: &str = "litellm/litellm_core_utils/tokenizers";
/// A name that such tables know; it means the endpoint of ours all the same.
const MODEL: &str = "text-embedding-3-small";
const WIDTH: u32 = 1536;
/// How long a server may take until it answers: importing alone takes minutes on a busy machine.
const START: Duration = Duration::from_secs(900);

/// Servers that run as long as the value lives.
#[derive(Debug)]
pub(crate) struct Backends {
    variables: Vec<(&'static str, String)>,
    _serving: Vec<Serving>,
}

impl Backends {
    /// Installs and starts them all.
    pub(crate) fn start(postgres: &Postgres) -> Result<Self> {
        let home = target_dir()?.join("tests/backends");
        if home.exists() {
            fs::remove_dir_all(&home)?;
        }
        fs::create_dir_all(&home)?;
        let plan = Plan { home };
        let (embedder, endpoint) = plan.embedder()?;
        let (mem0, mem0_url) = plan.mem0(&endpoint)?;
        let (letta, letta_url) = plan.letta(&endpoint, postgres)?;
        let (cognee, cognee_url) = plan.cognee(&endpoint)?;
        let embedding = json!({
            "embedding_endpoint_type": "openai",
            "embedding_endpoint": endpoint,
            "embedding_model": MODEL,
            "embedding_dim": WIDTH,
            "embedding_chunk_size": 300,
        });
        Ok(Self {
            variables: vec![
                ("YORE_TEST_MEM0", mem0_url),
                ("YORE_TEST_LETTA", letta_url),
                ("YORE_TEST_LETTA_EMBEDDING", embedding.to_string()),
                ("YORE_TEST_COGNEE", cognee_url),
            ],
            _serving: vec![embedder, mem0, letta, cognee],
        })
    }

    /// What tests find them by.
    pub(crate) fn variables(&self) -> &[(&'static str, String)] {
        &self.variables
    }
}

/// Where everything is put.
struct Plan {
    home: PathBuf,
}

impl Plan {
    /// A directory of a server's own.
    fn place(&self, name: &str) -> Result<PathBuf> {
        let place = self.home.join(name);
        fs::create_dir_all(&place)?;
        Ok(place)
    }

    fn script(&self, name: &str, text: &str) -> Result<PathBuf> {
        let script = self.home.join(name);
        fs::write(&script, text)?;
        Ok(script)
    }

    fn embedder(&self) -> Result<(Serving, String)> {
        let script = self.script("embedder.py", EMBEDDER)?;
        Serving::start(Command::new("python3").arg(script))
    }

    fn mem0(&self, endpoint: &str) -> Result<(Serving, String)> {
        let python = Python::resolved("mem0", &MEM0)?;
        let place = self.place("mem0")?;
        let mut server = python.command();
        server.arg(self.script("mem0_server.py", MEM0_SERVER)?).arg(&place).arg(endpoint);
        server.env("HOME", &place).env("MEM0_TELEMETRY", "false");
        Serving::start(server.stderr(fs::File::create(place.join("log"))?))
    }

    fn letta(&self, endpoint: &str, postgres: &Postgres) -> Result<(Serving, String)> {
        let python = Python::resolved("letta", &LETTA)?;
        let place = self.place("letta")?;
        let dsn = postgres.database("letta")?;
        let command = || {
            let mut command = python.command();
            command.current_dir(&place).env("HOME", &place);
            command.env("LETTA_PG_URI", format!("{dsn}?sslmode=disable"));
            command.env("OPENAI_API_KEY", "none").env("OPENAI_BASE_URL", endpoint);
            command
        };
        let schema = self.script("letta_schema.py", LETTA_SCHEMA)?;
        let address = dsn.replacen("postgresql:", "postgresql+asyncpg:", 1);
        succeed(command().arg(schema).arg(format!("{address}?ssl=disable")))?;
        let port = free_port()?;
        let mut server = command();
        server.args(["-c", "from letta.main import app; app()", "server"]);
        server.args(["--host", "127.0.0.1", "--port", &port.to_string()]);
        let serving = answering(&mut server, &place, port, "/v1/health/")?;
        Ok((serving, format!("http://127.0.0.1:{port}")))
    }

    fn cognee(&self, endpoint: &str) -> Result<(Serving, String)> {
        let python = Python::resolved("cognee", &COGNEE)?;
        let place = self.place("cognee")?;
        let port = free_port()?;
        let (model, width) = (format!("openai/{MODEL}"), WIDTH.to_string());
        let mut server = python.command();
        server.args(["-m", "uvicorn", "cognee.api.client:app", "--host", "127.0.0.1"]);
        server.args(["--port", &port.to_string()]).current_dir(&place).env("HOME", &place);
        for (name, value) in [
            ("LLM_PROVIDER", "openai"),
            ("LLM_MODEL", "openai/gpt-4o-mini"),
            ("LLM_ENDPOINT", endpoint),
            ("LLM_API_KEY", "none"),
            ("EMBEDDING_PROVIDER", "openai"),
            ("EMBEDDING_MODEL", model.as_str()),
            ("EMBEDDING_ENDPOINT", endpoint),
            ("EMBEDDING_API_KEY", "none"),
            ("EMBEDDING_DIMENSIONS", width.as_str()),
            ("REQUIRE_AUTHENTICATION", "false"),
            ("ENABLE_BACKEND_ACCESS_CONTROL", "false"),
            ("COGNEE_SKIP_CONNECTION_TEST", "true"),
            ("TELEMETRY_DISABLED", "1"),
        ] {
            server.env(name, value);
        }
        server.env("DATA_ROOT_DIRECTORY", place.join("data"));
        server.env("SYSTEM_ROOT_DIRECTORY", place.join("system"));
        server.env("TIKTOKEN_CACHE_DIR", python.home().join(TOKENS));
        let serving = answering(&mut server, &place, port, "/health")?;
        Ok((serving, format!("http://127.0.0.1:{port}/api/v1")))
    }
}

/// Starts a server and waits until it answers at a path.
fn answering(server: &mut Command, place: &Path, port: u16, path: &str) -> Result<Serving> {
    let log = place.join("log");
    let mut serving = Serving::logging(server, &log)?;
    let begun = Instant::now();
    while !answers(port, path) {
        let said = || fs::read_to_string(&log).unwrap_or_default();
        ensure!(serving.is_running(), "{server:?} ended before it was ready:\n{}", said());
        ensure!(begun.elapsed() < START, "{server:?} does not answer:\n{}", said());
        std::thread::sleep(Duration::from_millis(500));
    }
    Ok(serving)
}

/// Whether a server on this machine answers that all is well.
fn answers(port: u16, path: &str) -> bool {
    let ask = || -> std::io::Result<Vec<u8>> {
        let mut stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        write!(stream, "GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")?;
        let mut head = [0; 15];
        stream.read_exact(&mut head)?;
        Ok(head.to_vec())
    };
    ask().is_ok_and(|head| head.starts_with(b"HTTP/1.1 200"))
}

fn free_port() -> Result<u16> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).context("no port is free")?;
    Ok(listener.local_addr()?.port())
}
