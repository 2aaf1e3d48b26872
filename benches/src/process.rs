//! Memory and cold start, measured in a process of its own.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use yore_domain::query::Effort;

use crate::corpus::Corpus;
use crate::meter::{cpu, pin, round};
use crate::recall::questions;
use crate::world::World;

/// Arguments of the child.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The data directory.
    #[arg(long)]
    data: PathBuf,
    /// How many memories lie there.
    #[arg(long)]
    size: usize,
    /// The seed of the corpus.
    #[arg(long)]
    seed: u64,
}

/// Opens the vault, recalls, and prints a line after the first answer and one after the last.
pub(crate) fn child(arguments: &Arguments) -> Result<()> {
    pin()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let corpus = Corpus::new(arguments.seed);
    let questions = questions(&corpus, arguments.size, 200);
    // Making up the questions is not part of a start.
    let made_up = cpu();
    println!("{}", json!({ "ready": true }));
    runtime.block_on(async {
        let world = World::open(&arguments.data).await?;
        let found = world.ask(&world.owner, &questions[0], Effort::Balanced).await?;
        ensure!(found > 0, "the first question was not answered");
        let spent = cpu().saturating_sub(made_up).as_secs_f64();
        println!("{}", json!({ "cpu_s": round(spent) }));
        for question in &questions {
            world.ask(&world.owner, question, Effort::Instant).await?;
        }
        println!("{}", json!({ "rss_kib": resident()? }));
        world.close().await
    })
}

/// What a process of its own needed.
#[derive(Debug)]
pub(crate) struct Needs {
    /// From the start to the first answer.
    pub(crate) start: Duration,
    cpu_s: Value,
    /// Resident memory after two hundred answers, in MB.
    pub(crate) resident_mb: f64,
}

impl Needs {
    pub(crate) fn to_json(&self) -> Value {
        json!({
            "cold_start_wall_s": round(self.start.as_secs_f64()),
            "cold_start_cpu_s": self.cpu_s,
            "resident_mb": round(self.resident_mb),
            "note": "the operating system's file cache is warm",
        })
    }
}

/// Starts a child on a closed vault and listens to it.
pub(crate) fn needs(data: &Path, size: usize, seed: u64) -> Result<Needs> {
    let mut child = Command::new(std::env::current_exe()?)
        .arg("child")
        .arg("--data")
        .arg(data)
        .args(["--size", &size.to_string(), "--seed", &seed.to_string()])
        .stdout(Stdio::piped())
        .spawn()?;
    let out = child.stdout.take().context("the child has no output")?;
    let mut lines = BufReader::new(out).lines();
    let mut next = || -> Result<Value> {
        Ok(serde_json::from_str(&lines.next().context("the child ended early")??)?)
    };
    next()?;
    let begin = Instant::now();
    let first = next()?;
    let start = begin.elapsed();
    let last = next()?;
    ensure!(child.wait()?.success(), "the child failed");
    let kib = last["rss_kib"].as_f64().context("the child said nothing of its memory")?;
    Ok(Needs { start, cpu_s: first["cpu_s"].clone(), resident_mb: kib * 1024.0 / 1e6 })
}

/// Resident memory of this process in KiB.
pub(crate) fn resident() -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}
