//! What an agent host's tool call costs beside the recall itself, with the shipped binary.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use yore_domain::query::Effort;

use crate::meter::cpu;
use crate::world::{MASTER, World};

/// What is asked on both sides. The transformer would add as much to both, many times what is
/// measured, and take minutes to fill the vault.
pub(crate) const EFFORT: Effort = Effort::Instant;

/// CPU milliseconds in half a second that count as rest.
const QUIET: f64 = 10.0;

/// How long one answer may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// CPU milliseconds of one recall.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost {
    /// Inside the engine, in the same vault.
    pub(crate) engine: f64,
    /// Of the process that an agent host started, for a tool call over its pipes.
    pub(crate) call: f64,
}

/// Asks the engine, then the binary that serves the same vault over standard input and output.
/// Each question is asked twice and measured the second time: the first time a process looks up
/// the kin of tokens it has not met.
pub(crate) async fn cost(binary: &Path, data: &Path, questions: &[String]) -> Result<Cost> {
    let world = World::open_with(data, EFFORT).await?;
    for question in questions {
        world.ask(&world.owner, question, EFFORT).await?;
    }
    let before = cpu();
    for question in questions {
        world.ask(&world.owner, question, EFFORT).await?;
    }
    let engine = (cpu() - before).as_secs_f64() * 1e3 / questions.len() as f64;
    world.close().await?;
    let mut host = Host::start(binary, data)?;
    for question in questions {
        host.recall(question)?;
    }
    host.settle()?;
    let before = host.spent()?;
    for question in questions {
        host.recall(question)?;
    }
    let call = (host.spent()? - before) / questions.len() as f64;
    Ok(Cost { engine, call })
}

/// The binary as an agent host runs it.
struct Host {
    process: Child,
    input: ChildStdin,
    output: Receiver<std::io::Result<String>>,
    asked: u64,
}

impl Host {
    fn start(binary: &Path, data: &Path) -> Result<Self> {
        let mut process = Command::new(binary)
            .args(["mcp", "--data"])
            .arg(data)
            .env("YORE_MASTER_KEY", MASTER)
            .env("YORE_EFFORT", "instant")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}", binary.display()))?;
        let input = process.stdin.take().context("the input was asked for")?;
        let output = lines(process.stdout.take().context("the output was asked for")?);
        let mut host = Self { process, input, output, asked: 0 };
        let hello = json!({
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": { "name": "bench", "version": "0" },
        });
        host.ask("initialize", hello)?;
        writeln!(host.input, r#"{{"jsonrpc":"2.0","method":"notifications/initialized"}}"#)?;
        Ok(host)
    }

    fn recall(&mut self, question: &str) -> Result<()> {
        let arguments = json!({ "query": question, "limit": 10 });
        let answer =
            self.ask("tools/call", json!({ "name": "ump.recall", "arguments": arguments }))?;
        ensure!(answer["result"]["isError"] != true, "the recall failed: {answer}");
        let found = answer["result"]["structuredContent"]["results"].as_array();
        ensure!(found.is_some_and(|found| !found.is_empty()), "nothing was recalled: {answer}");
        Ok(())
    }

    fn ask(&mut self, method: &str, params: Value) -> Result<Value> {
        self.asked += 1;
        let frame =
            json!({ "jsonrpc": "2.0", "id": self.asked, "method": method, "params": params });
        writeln!(self.input, "{frame}")?;
        loop {
            let line = match self.output.recv_timeout(PATIENCE) {
                Ok(line) => line?,
                Err(RecvTimeoutError::Timeout) => bail!("no answer to {method} in {PATIENCE:?}"),
                Err(RecvTimeoutError::Disconnected) => {
                    bail!("the process ended before it answered {method}")
                }
            };
            let answer: Value = serde_json::from_str(&line)?;
            if answer["id"] == self.asked {
                return Ok(answer);
            }
        }
    }

    /// Waits until the process has nothing left to prepare.
    fn settle(&self) -> Result<()> {
        const LONGEST: usize = 60;
        for _ in 0..LONGEST {
            let before = self.spent()?;
            std::thread::sleep(Duration::from_millis(500));
            if self.spent()? - before <= QUIET {
                return Ok(());
            }
        }
        bail!("the process does not come to rest")
    }

    /// CPU milliseconds of all its threads so far, to the hundredth of a second.
    fn spent(&self) -> Result<f64> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.process.id()))?;
        let (_, fields) = stat.rsplit_once(')').context("the process has no name")?;
        let ticks: Vec<f64> = fields
            .split_whitespace()
            .skip(11)
            .take(2)
            .map(str::parse)
            .collect::<std::result::Result<_, _>>()?;
        let each = 1e3 / rustix::param::clock_ticks_per_second() as f64;
        Ok(ticks.iter().sum::<f64>() * each)
    }
}

/// Reads lines as they come, so that waiting for one can end.
fn lines(output: ChildStdout) -> Receiver<std::io::Result<String>> {
    let (send, receive) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines() {
            if send.send(line).is_err() {
                return;
            }
        }
    });
    receive
}

impl Drop for Host {
    fn drop(&mut self) {
        // It has answered everything; what it would still index is not measured.
        drop(self.process.kill());
        drop(self.process.wait());
    }
}
