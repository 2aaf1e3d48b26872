//! The same memories, vectors, filter and questions through Yore and through its peers.
//!
//! Every system runs alone in a process of its own, one after the other. None of them computes a
//! vector for the peers' rows: those are supplied. Yore has no door for vectors from outside; it
//! makes the same ones itself, before questions are asked, and what that costs is a figure of its
//! own. What failed, was not supported or took too long is a row with its reason, never left out.
//!
//! `driver.py` and `adapters.py` ask the peers; `inside.rs` and `served.rs` ask Yore.

mod inside;
mod run;
mod scene;
mod served;
mod stage;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::report::{self, Report};

use scene::Scene;
use stage::Stage;

/// What is erased and looked for.
const CANARY: &str = "The key to the blue cellar lies under the third flowerpot, canary 7f3a";
/// Memories among which the one that is forgotten lies.
const FORGET_AMONG: usize = 300;
/// So many memories have vectors of their own; making one takes as long as some ten searches.
const REAL: usize = 2_000;
/// Adds during which calls of the system are counted.
const COUNTED: usize = 30;

/// The programs that ask the peers.
const DRIVER: [(&str, &str); 2] = [
    ("driver.py", include_str!("peers/driver.py")),
    ("adapters.py", include_str!("peers/adapters.py")),
];

/// How a system is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// By the driver, with packages under this name.
    Driven(&'static str),
    Inside,
    Served,
}

/// The systems, in the order of the table. The second row of Yore comes from the same run.
const SYSTEMS: [(&str, Way); 8] = [
    ("yore", Way::Inside),
    ("yore-http", Way::Served),
    ("mem0", Way::Driven("mem0")),
    ("chroma", Way::Driven("chroma")),
    ("lancedb", Way::Driven("lancedb")),
    ("lancedb-tuned", Way::Driven("lancedb")),
    ("memorywire", Way::Driven("memorywire")),
    ("server-memory", Way::Driven("server-memory")),
];
/// The row that comes out of the run of another.
const BESIDE: (&str, &str) = ("yore", "yore-static");
/// Rows that are ours.
const OURS: &str = "yore";
/// The peer that takes no vectors and knows no filter: its searches are no comparison.
const BARE: &str = "server-memory";

/// Arguments of `yore-bench peers`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Where the systems keep their files; must lie on a disk.
    #[arg(long)]
    work: PathBuf,
    /// Where texts and vectors are kept from run to run.
    #[arg(long)]
    scenes: PathBuf,
    /// The shipped binary.
    #[arg(long)]
    binary: PathBuf,
    /// Where the packages of a peer are: its name, `=`, a directory.
    #[arg(long)]
    packages: Vec<String>,
    /// Why a peer cannot be asked: its name, `=`, the reason.
    #[arg(long)]
    missing: Vec<String>,
    /// The command line of MCP server-memory, as a JSON array.
    #[arg(long)]
    server_memory: Option<String>,
    /// Write everything measured into this file; rows that are there and were not run again stay.
    #[arg(long)]
    json: Option<PathBuf>,
    /// The commit that is measured.
    #[arg(long, default_value = "unknown")]
    commit: String,
    /// How it was built, where not as it is shipped.
    #[arg(long, default_value = "as shipped")]
    build: String,
    /// The smallest size and few repetitions.
    #[arg(long)]
    quick: bool,
    /// Sizes of the stores, in memories.
    #[arg(long, value_delimiter = ',', default_values_t = [1_000, 10_000])]
    sizes: Vec<usize>,
    /// Up to this size Yore makes the transformer's vectors, at some 10 to 20 ms each.
    #[arg(long, default_value_t = 10_000)]
    dense: usize,
    /// Seconds after which filling a store gives up.
    #[arg(long, default_value_t = 420)]
    patience: u64,
    /// Only these systems; may be given several times.
    #[arg(long)]
    only: Vec<String>,
}

/// What a run is asked for, as its child reads it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Wanted {
    mode: String,
    size: usize,
    users: usize,
    /// Memories added by one client, and again by several.
    sample: usize,
    questions: usize,
    clients: usize,
    /// Up to this size our memories get the transformer's vectors.
    dense: usize,
    /// Seconds until filling gives up.
    fill_seconds: u64,
    /// Seconds after which a cell takes no more readings.
    stage_seconds: u64,
}

impl Wanted {
    fn stage<'a>(&self, row: Option<&'a str>, cell: &'a str, clients: usize) -> Stage<'a> {
        Stage { row, cell, clients, time: Duration::from_secs(self.stage_seconds) }
    }
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    if arguments.work.exists() {
        std::fs::remove_dir_all(&arguments.work)?;
    }
    std::fs::create_dir_all(&arguments.work)?;
    let bench = Bench::of(arguments)?;
    let done = bench.all();
    std::fs::remove_dir_all(&arguments.work)?;
    done
}

struct Bench<'a> {
    arguments: &'a Arguments,
    sizes: Vec<usize>,
    wanted: Wanted,
    packages: BTreeMap<&'a str, &'a str>,
    missing: BTreeMap<&'a str, &'a str>,
}

impl<'a> Bench<'a> {
    fn of(arguments: &'a Arguments) -> Result<Self> {
        let pairs = |all: &'a [String]| {
            let split = |pair: &'a String| pair.split_once('=').context("a name, =, and a value");
            all.iter().map(split).collect::<Result<BTreeMap<_, _>>>()
        };
        let quick = arguments.quick;
        let sizes = if quick { vec![1_000] } else { arguments.sizes.clone() };
        let wanted = Wanted {
            mode: "cells".to_owned(),
            size: 0,
            users: 10,
            sample: if quick { 40 } else { 200 },
            questions: if quick { 40 } else { 200 },
            clients: 8,
            dense: if quick { 0 } else { arguments.dense },
            fill_seconds: if quick { 60 } else { arguments.patience },
            stage_seconds: if quick { 20 } else { 45 },
        };
        let (packages, missing) = (pairs(&arguments.packages)?, pairs(&arguments.missing)?);
        Ok(Self { arguments, sizes, wanted, packages, missing })
    }

    fn all(&self) -> Result<()> {
        let largest = self.sizes.iter().copied().max().unwrap_or(0).max(FORGET_AMONG);
        let real = if self.arguments.quick { 500 } else { REAL };
        let name = if self.arguments.quick { "quick" } else { "whole" };
        let place = self.arguments.scenes.join(name);
        let scene = Scene::make(&place, largest, self.wanted.questions, real)?;
        for (name, text) in DRIVER {
            std::fs::write(scene.place.join(name), text)?;
        }
        let mut found = Found::read(self.arguments.json.as_deref());
        for &size in &self.sizes {
            for (system, way) in SYSTEMS {
                if !self.chosen(system) {
                    continue;
                }
                for row in self.one(system, way, size, &scene)? {
                    println!("{row}");
                    found.put("rows", &["system", "size"], row);
                }
                self.write(&found)?;
            }
        }
        for (system, way) in SYSTEMS {
            if self.chosen(system) && system != "lancedb-tuned" {
                let syncs = self.syncs(system, way, &scene)?;
                println!("{syncs}");
                found.put("durability", &["system"], syncs);
                if way != Way::Served {
                    let forgotten = self.forget(system, way, &scene)?;
                    println!("{forgotten}");
                    found.put("forgetting", &["system"], forgotten);
                }
            }
        }
        self.write(&found)
    }

    fn chosen(&self, system: &str) -> bool {
        let only = &self.arguments.only;
        only.is_empty() || only.iter().any(|one| one == system)
    }

    /// Runs one system of one size and returns its rows.
    fn one(&self, system: &str, way: Way, size: usize, scene: &Scene) -> Result<Vec<Value>> {
        let wanted = Wanted { size, ..self.wanted.clone() };
        let clients = wanted.clients;
        let time = wanted.fill_seconds + 6 * wanted.stage_seconds + 60;
        // Making the vectors of a vault is done once, and may take its time.
        let time = if system.starts_with(OURS) { time + 1200 } else { time };
        let (load, begun) = (load(), Instant::now());
        let (lines, end) = self.child(system, way, &wanted, scene, Duration::from_secs(time))?;
        let mut rows = vec![system];
        if system == BESIDE.0 {
            rows.push(BESIDE.1);
        }
        let finish = |name: &str| {
            let mut row = run::row(name, size, clients, &lines, end.as_deref());
            row["commit"] = self.arguments.commit.clone().into();
            row["build"] = self.arguments.build.clone().into();
            row["load"] = json!(load);
            row["seconds"] = begun.elapsed().as_secs().into();
            row
        };
        Ok(rows.into_iter().map(finish).collect())
    }

    /// Has a child do what is wanted, in an empty folder, and returns what it said and how it
    /// ended, if not well.
    fn child(
        &self,
        system: &str,
        way: Way,
        wanted: &Wanted,
        scene: &Scene,
        time: Duration,
    ) -> Result<(Vec<Value>, Option<String>)> {
        let store = self.arguments.work.join(system);
        let mut command = match self.command(system, way, wanted, scene, &store)? {
            Ok(command) => command,
            Err(reason) => return Ok((Vec::new(), Some(reason))),
        };
        let said = run::listen(&mut command, time);
        if store.exists() {
            std::fs::remove_dir_all(store)?;
        }
        said
    }

    /// The command line, or why there is none.
    fn command(
        &self,
        system: &str,
        way: Way,
        wanted: &Wanted,
        scene: &Scene,
        store: &Path,
    ) -> Result<std::result::Result<Command, String>> {
        let wish = serde_json::to_string(wanted)?;
        let Way::Driven(packages) = way else {
            let mut command = Command::new(std::env::current_exe()?);
            command.arg("peer").arg("--scene").arg(&scene.place).arg("--store").arg(store);
            command.args(["--wanted", &wish]);
            if way == Way::Served {
                command.arg("--binary").arg(&self.arguments.binary);
            }
            return Ok(Ok(command));
        };
        if let Some(reason) = self.missing.get(packages) {
            return Ok(Err(format!("not installed: {reason}")));
        }
        let mut command = Command::new("python3");
        command.arg(scene.place.join("driver.py")).arg(system).arg(&scene.place).arg(store);
        command.arg(wish).env("TOKENIZERS_PARALLELISM", "false");
        if let Some(packages) = self.packages.get(packages) {
            command.env("PYTHONPATH", packages);
        }
        if let Some(line) = &self.arguments.server_memory {
            command.env("SERVER_MEMORY", line);
        } else if system == BARE {
            return Ok(Err("not installed: no command line was given".to_owned()));
        }
        Ok(Ok(command))
    }

    /// How often a system asks for something to be put on the disk for each add.
    fn syncs(&self, system: &str, way: Way, scene: &Scene) -> Result<Value> {
        let mut found = json!({ "system": system });
        if way == Way::Served {
            found["error"] = "as in process: the same engine".into();
            return Ok(found);
        }
        let wanted = Wanted { mode: "adds".to_owned(), size: COUNTED, ..self.wanted.clone() };
        let store = self.arguments.work.join(system);
        let told = match self.command(system, way, &wanted, scene, &store)? {
            Ok(command) => {
                let log = self.arguments.work.join("calls");
                run::syncs(&command, &log, Duration::from_secs(180))?
            }
            Err(reason) => json!({ "error": reason }),
        };
        if store.exists() {
            std::fs::remove_dir_all(store)?;
        }
        for (key, value) in told.as_object().into_iter().flatten() {
            found[key] = value.clone();
        }
        Ok(found)
    }

    /// What is left of a memory after it was deleted.
    fn forget(&self, system: &str, way: Way, scene: &Scene) -> Result<Value> {
        let wanted =
            Wanted { mode: "forget".to_owned(), size: FORGET_AMONG, ..self.wanted.clone() };
        let time = Duration::from_secs(240);
        let (lines, end) = self.child(system, way, &wanted, scene, time)?;
        let mut found = lines.into_iter().find(|line| line.get("decrypting").is_some());
        let found = found.get_or_insert_with(
            || json!({ "error": end.unwrap_or_else(|| "it said nothing".to_owned()) }),
        );
        found["system"] = system.into();
        Ok(found.clone())
    }

    /// Judges and writes what is known so far.
    fn write(&self, found: &Found) -> Result<()> {
        let mut report = Report::default();
        judge(found, &mut report);
        for (name, value) in &found.0 {
            report.keep(name, value.clone());
        }
        let wanted = serde_json::to_value(&self.wanted)?;
        report.keep("run", json!({ "quick": self.arguments.quick, "wanted": wanted }));
        print!("{}", report.table());
        if let Some(path) = &self.arguments.json {
            report::write(path, &report.to_json(&self.arguments.commit))
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
        Ok(())
    }
}

/// What was found, by this run and by earlier ones.
#[derive(Debug, Default)]
struct Found(BTreeMap<String, Value>);

impl Found {
    fn read(path: Option<&Path>) -> Self {
        let mut found = Self::default();
        let before = path.and_then(|path| std::fs::read(path).ok());
        let before: Value =
            before.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
        for name in ["rows", "durability", "forgetting"] {
            let rows = before["figures"][name].as_array().cloned().unwrap_or_default();
            found.0.insert(name.to_owned(), rows.into());
        }
        found
    }

    /// Puts a row in the place of the one that is about the same.
    fn put(&mut self, name: &str, about: &[&str], row: Value) {
        let Some(rows) = self.0.entry(name.to_owned()).or_insert_with(|| json!([])).as_array_mut()
        else {
            return;
        };
        let same = |old: &Value| about.iter().all(|key| old[key] == row[key]);
        match rows.iter_mut().find(|old| same(old)) {
            Some(old) => *old = row,
            None => rows.push(row),
        }
    }

    /// CPU milliseconds of a cell.
    fn cpu(&self, system: &str, size: usize, cell: &str) -> Option<f64> {
        let rows = self.0.get("rows")?.as_array()?;
        let row = rows.iter().find(|row| row["system"] == system && row["size"] == size)?;
        let cell = &row["cells"][cell];
        // What follows in the background belongs to it.
        cell["settled_cpu_ms"].as_f64().or(cell["cpu_ms"].as_f64())
    }

    /// The fastest peer that did the same.
    fn fastest(&self, size: usize, cell: &str) -> Option<(&'static str, f64)> {
        let peers = SYSTEMS.iter().map(|(name, _)| *name);
        let peers = peers.filter(|name| !name.starts_with(OURS) && *name != BARE);
        let costs = peers.filter_map(|name| Some((name, self.cpu(name, size, cell)?)));
        costs.min_by(|one, other| one.1.total_cmp(&other.1))
    }
}

fn judge(found: &Found, report: &mut Report) {
    const SIZE: usize = 10_000;
    for (what, cell, bar) in
        [("filtered search", "search_1", 10.0), ("durable encrypted add", "add_1", 2.0)]
    {
        let (ours, fastest) = (found.cpu(OURS, SIZE, cell), found.fastest(SIZE, cell));
        let times = ours.zip(fastest).map(|(ours, (_, theirs))| theirs / ours);
        let name = fastest.map_or("the fastest peer", |(name, _)| name);
        report.at_least(format!("{what} at {SIZE}, CPU of {name}"), "times ours", bar, times);
    }
}

fn load() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    text.split(' ').next()?.parse().ok()
}

/// Bytes that the files below a folder take.
fn disk(place: &Path) -> Result<u64> {
    use std::os::unix::fs::MetadataExt;
    let mut bytes = 0;
    for entry in std::fs::read_dir(place)? {
        let entry = entry?;
        // A file may go while it is looked at.
        let Ok(about) = entry.metadata() else { continue };
        bytes += if about.is_dir() { disk(&entry.path())? } else { about.blocks() * 512 };
    }
    Ok(bytes)
}

/// Arguments of a child.
#[derive(Debug, clap::Args)]
pub(crate) struct Child {
    #[arg(long)]
    scene: PathBuf,
    #[arg(long)]
    store: PathBuf,
    #[arg(long)]
    wanted: String,
    /// Ask this binary over HTTP instead.
    #[arg(long)]
    binary: Option<PathBuf>,
}

/// Does what is wanted of Yore.
pub(crate) fn child(arguments: &Child) -> Result<()> {
    let wanted: Wanted = serde_json::from_str(&arguments.wanted)?;
    let (scene, store) = (arguments.scene.as_path(), arguments.store.as_path());
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        match (&arguments.binary, wanted.mode.as_str()) {
            (Some(binary), _) => served::cells(binary, scene, store, &wanted).await,
            (None, "adds") => inside::adds(scene, store, &wanted).await,
            (None, "forget") => inside::forget(scene, store, &wanted).await,
            (None, _) => inside::cells(scene, store, &wanted).await,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(system: &str, add: Value, search: Value) -> Value {
        json!({ "system": system, "size": 10_000, "cells": { "add_1": add, "search_1": search } })
    }

    #[test]
    fn the_fastest_peer_that_did_the_same_is_the_measure() {
        let mut found = Found::default();
        let cost = |ms: f64| json!({ "cpu_ms": ms });
        let about = ["system", "size"];
        found.put(
            "rows",
            &about,
            row("yore", json!({ "cpu_ms": 0.3, "settled_cpu_ms": 0.5 }), cost(1.0)),
        );
        found.put("rows", &about, row("chroma", cost(20.0), json!({ "error": "it broke" })));
        found.put("rows", &about, row("mem0", cost(9.0), cost(50.0)));
        found.put("rows", &about, row("mem0", cost(1.2), cost(50.0)));
        found.put("rows", &about, row("server-memory", cost(0.1), cost(0.1)));
        let mut report = Report::default();
        judge(&found, &mut report);
        let told = report.to_json("none");
        assert_eq!(told["bars"][0]["measured"], 50.0);
        assert_eq!(told["bars"][0]["verdict"], "holds");
        assert_eq!(told["bars"][1]["measured"], 2.4, "the background is part of an add");
    }
}
