//! `cargo xtask bench peers`: installs the peers from the registries and has everybody do the same.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde_json::Value;

use super::{binary, built, chosen, succeed};
use crate::figures;
use crate::foreign::{Node, Python};
use crate::workspace::{root, target_dir};

/// The peers that Python runs, each with packages of its own, so that none decides on what another
/// depends.
const PACKAGES: [(&str, &[&str]); 4] = [
    ("mem0", &["mem0ai==2.2.1"]),
    ("chroma", &["chromadb==1.5.9"]),
    ("lancedb", &["lancedb==0.40.0", "pyarrow==26.0.1"]),
    ("memorywire", &["memorywire==0.5.0", "sqlite-vec==0.1.9", "pysqlite3-binary==0.5.4.post2"]),
];
const SERVER_MEMORY: &str = "@modelcontextprotocol/server-memory@2026.8.31";
const SERVER_SCRIPT: &str = "@modelcontextprotocol/server-memory/dist/index.js";

#[derive(Debug, clap::Args)]
pub(super) struct Peers {
    /// Write everything measured into this file; `docs/benchmarks/peers.json`, from which the report,
    /// its pictures and the table of the README are written, unless it is given.
    #[arg(long)]
    json: Option<PathBuf>,
    /// 1000 memories and few repetitions, kept nowhere: shows that it runs, proves no bar.
    #[arg(long)]
    quick: bool,
    /// Sizes of the stores, in memories; 1000 and 10000 unless it is given.
    #[arg(long, value_delimiter = ',')]
    sizes: Vec<usize>,
    /// Seconds after which filling a store gives up.
    #[arg(long)]
    patience: Option<u64>,
    /// Only these systems: yore, yore-http, mem0, chroma, lancedb, lancedb-tuned, memorywire or
    /// server-memory. Rows of the others stay as they are.
    #[arg(long)]
    only: Vec<String>,
}

impl Peers {
    /// Everybody, at the usual sizes.
    pub(super) fn all(quick: bool) -> Self {
        Self { json: None, quick, sizes: Vec::new(), patience: None, only: Vec::new() }
    }

    pub(super) fn run(&self) -> Result<()> {
        let mut bench = built("peers", &["-p", "yore"])?;
        bench.arg("--binary").arg(binary()?);
        bench.arg("--scenes").arg(target_dir()?.join("bench-scenes"));
        for (name, packages) in PACKAGES {
            match Python::with(&format!("peer-{name}"), packages) {
                Ok(python) => bench.arg("--packages").arg(pair(name, python.home().display())),
                // The table says so in every cell.
                Err(error) => bench.arg("--missing").arg(pair(name, first_line(&error))),
            };
        }
        match Node::with("server-memory", &[SERVER_MEMORY]) {
            Ok(node) => {
                let command = node.script(SERVER_SCRIPT);
                let mut line = vec![Value::from(command.get_program().to_string_lossy())];
                line.extend(command.get_args().map(|arg| Value::from(arg.to_string_lossy())));
                bench.arg("--server-memory").arg(Value::from(line).to_string());
            }
            Err(error) => {
                bench.arg("--missing").arg(pair("server-memory", first_line(&error)));
            }
        }
        if let Some(seconds) = self.patience {
            bench.args(["--patience", &seconds.to_string()]);
        }
        // What was changed for a quicker build is said beside the figures.
        if let Ok(lto) = std::env::var("CARGO_PROFILE_RELEASE_LTO") {
            bench.arg("--build").arg(format!("release, link-time optimisation {lto}"));
        }
        let page = root().join(figures::PEERS);
        let json = match (&self.json, self.quick) {
            (Some(path), _) => Some(path.clone()),
            (None, true) => None,
            (None, false) => Some(page.clone()),
        };
        if let Some(folder) = json.as_deref().and_then(std::path::Path::parent) {
            fs::create_dir_all(folder).context("no place for the figures")?;
        }
        chosen(&mut bench, json.as_deref(), self.quick, &self.sizes, &self.only);
        succeed(&mut bench)?;
        if json == Some(page) { figures::write() } else { Ok(()) }
    }
}

fn pair(name: &str, value: impl std::fmt::Display) -> String {
    format!("{name}={value}")
}

fn first_line(error: &anyhow::Error) -> String {
    format!("{error:#}").lines().next().unwrap_or_default().to_owned()
}
