//! `cargo xtask chaos`: a real server, eight clients that speak different protocols, and
//! everything that may go wrong; a checker says whether anything was lost, doubled or leaked.
//!
//! It knows the server from outside only: the binary, its protocols, its audit chain. A client
//! writes down what was acknowledged to it (`journal.rs`), and the checker (`judge.rs`) compares
//! that with what is there. What happens to the server is a file each: `kills.rs`, `disks.rs`,
//! `clocks.rs`, `pages.rs`, `network.rs`, `memory.rs`, `soak.rs`.

mod client;
mod clocks;
mod disks;
mod faults;
mod journal;
mod judge;
mod kills;
mod memory;
mod network;
mod pages;
mod place;
mod power;
mod proxy;
mod random;
mod report;
mod room;
mod soak;
mod tongue;
mod wire;
mod world;

use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};

use self::random::Random;
use self::report::{End, Line, Outcome};
use crate::workspace::{cargo, target_dir};

/// Arguments of `cargo xtask chaos`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Run this scenario only; may be given several times.
    #[arg(long, value_enum)]
    only: Vec<Scenario>,
    /// The counts the requirements state, such as 1000 kills; takes hours.
    #[arg(long)]
    full: bool,
    /// Repeats the choices of another run.
    #[arg(long)]
    seed: Option<u64>,
    /// Write everything counted into this file.
    #[arg(long)]
    json: Option<PathBuf>,
    /// Keep the directories of the vaults; those of scenarios that fail are kept anyway.
    #[arg(long)]
    keep: bool,
    /// Do it to this build of the command instead of one that is made now.
    #[arg(long)]
    binary: Option<PathBuf>,
}

/// Something that goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Scenario {
    Kill,
    TornWrites,
    FullDisk,
    ReadOnlyDisk,
    FailingDisk,
    SlowDisk,
    CorruptPage,
    ClockJumps,
    BadNetwork,
    MemoryLimit,
    Soak,
}

const ORDER: [Scenario; 11] = [
    Scenario::Kill,
    Scenario::TornWrites,
    Scenario::FullDisk,
    Scenario::ReadOnlyDisk,
    Scenario::FailingDisk,
    Scenario::SlowDisk,
    Scenario::CorruptPage,
    Scenario::ClockJumps,
    Scenario::BadNetwork,
    Scenario::MemoryLimit,
    Scenario::Soak,
];

impl Scenario {
    fn name(self) -> &'static str {
        match self {
            Self::Kill => "kill",
            Self::TornWrites => "torn-writes",
            Self::FullDisk => "full-disk",
            Self::ReadOnlyDisk => "read-only-disk",
            Self::FailingDisk => "failing-disk",
            Self::SlowDisk => "slow-disk",
            Self::CorruptPage => "corrupt-page",
            Self::ClockJumps => "clock-jumps",
            Self::BadNetwork => "bad-network",
            Self::MemoryLimit => "memory-limit",
            Self::Soak => "soak",
        }
    }

    fn run(self, ground: &Ground) -> Result<End> {
        match self {
            Self::Kill => kills::kills(ground),
            Self::TornWrites => kills::cuts(ground),
            Self::FullDisk => disks::full(ground),
            Self::ReadOnlyDisk => disks::read_only(ground),
            Self::FailingDisk => disks::failing(ground),
            Self::SlowDisk => disks::slow(ground),
            Self::CorruptPage => pages::flips(ground),
            Self::ClockJumps => clocks::jumps(ground),
            Self::BadNetwork => network::connections(ground),
            Self::MemoryLimit => memory::limit(ground),
            Self::Soak => soak::mixed(ground),
        }
    }
}

/// What all scenarios stand on.
#[derive(Debug)]
struct Ground {
    yore: PathBuf,
    /// Where the vaults lie: beside the build, because the system's temporary directory may be
    /// memory, on which nothing is ever slow or torn.
    dir: PathBuf,
    full: bool,
    keep: bool,
    seed: u64,
}

impl Ground {
    fn new(yore: PathBuf, full: bool, keep: bool, seed: Option<u64>) -> Result<Self> {
        ensure!(yore.exists(), "{} is not there", yore.display());
        let dir = target_dir()?.join("chaos").join(std::process::id().to_string());
        fs::create_dir_all(&dir)?;
        let seed = seed.unwrap_or_else(|| u64::from(std::process::id()));
        Ok(Self { yore: yore.canonicalize()?, dir, full, keep, seed })
    }

    /// One of two counts: of the long run, or of the short one.
    fn of(&self, counts: [usize; 2]) -> usize {
        counts[usize::from(!self.full)]
    }

    /// Chance for a vault, which is another for each name.
    fn random(&self, name: &str) -> Random {
        let named = name
            .bytes()
            .fold(self.seed, |seed, byte| seed.wrapping_mul(31).wrapping_add(u64::from(byte)));
        Random::new(named)
    }

    /// Removes what is left when nothing in it is worth a look.
    fn clear(self) -> Result<()> {
        drop(fs::remove_file(self.dir.join("faults.c")));
        drop(fs::remove_file(self.dir.join("faults.so")));
        if fs::read_dir(&self.dir)?.next().is_none() {
            fs::remove_dir(&self.dir)?;
        } else {
            println!("kept: {}", self.dir.display());
        }
        Ok(())
    }
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let Arguments { only, full, seed, json, keep, binary } = arguments;
    let yore = match binary {
        Some(binary) => binary.clone(),
        None => built()?,
    };
    let ground = Ground::new(yore, *full, *keep, *seed)?;
    println!("seed {}", ground.seed);
    let mut lines = Vec::new();
    for scenario in ORDER {
        if !only.is_empty() && !only.contains(&scenario) {
            continue;
        }
        println!("== {}", scenario.name());
        let begun = Instant::now();
        let end = scenario.run(&ground).unwrap_or_else(|error| End::Failed(format!("{error:#}")));
        let line = Line { name: scenario.name(), end, took: begun.elapsed() };
        println!("{}", line.told());
        lines.push(line);
    }
    if let Some(path) = json {
        let document = report::document(&lines, ground.seed, ground.full);
        fs::write(path, format!("{document:#}\n"))?;
    }
    ground.clear()?;
    println!("\n{}", report::table(&lines));
    let (passed, failed) = report::count(&lines);
    println!("{passed} passed, {failed} failed");
    if failed > 0 {
        bail!("{failed} of {} scenarios failed", lines.len());
    }
    Ok(())
}

/// A few kills of the binary that the tests use, for the tests.
pub(crate) fn acknowledged_writes_survive_kill_9() -> Result<()> {
    let yore = target_dir()?.join("debug/yore");
    let ground = Ground::new(yore, false, false, None)?;
    let seed = ground.seed;
    let end = kills::few(&ground)?;
    let line = Line { name: "few-kills", end, took: std::time::Duration::ZERO };
    println!("{}", line.told());
    ground.clear()?;
    ensure!(report::count(std::slice::from_ref(&line)).1 == 0, "seed {seed}; see above");
    Ok(())
}

/// Builds the command in the profile of the tests.
fn built() -> Result<PathBuf> {
    // As a part of the tests, so that nothing is built a second time with other features.
    let status = cargo().args(["test", "--workspace", "--no-run", "--test", "suite"]).status();
    ensure!(status.context("cannot run cargo")?.success(), "yore cannot be built");
    Ok(target_dir()?.join("debug/yore"))
}
